"""What the site needs beyond the pages themselves, which stay plain Markdown for Git hosts.

Called by mkdocs (mkdocs.yml, `hooks`): pages of the repository's root become part of the site,
pictures that were just drawn take the place of stored ones, and Markdown that only Git hosts
understand is put into the words of the site's own reader.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

# Beside docs/, because that is where people look for them.
OF_THE_ROOT = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(?=[#)])")
# Code is no part of the site: there a link to it is its name.
TO_CODE = re.compile(r"(?<!!)\[([^\]]+)\]\((?:\.\./)*src/[^)\s]*\)")
ITEM = re.compile(r"\s*([-*+]|\d+\.) ")
FENCE = re.compile(r"\s*(```|~~~)")


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root, and lay fresh files over stored ones of the same name."""
    root = Path(config.config_file_path).parent
    for name, page in OF_THE_ROOT.items():
        _put(files, config, page, root / name)
    fresh = root / config.extra["fresh"]
    for path in sorted(fresh.rglob("*.*")) if fresh.is_dir() else ():
        _put(files, config, path.relative_to(fresh).as_posix(), path)
    return files


def _put(files: Any, config: Any, name: str, path: Path) -> None:
    stored = files.get_file_from_path(name)
    if stored is not None:
        files.remove(stored)
    files.append(File.generated(config, name, abs_src_path=str(path)))


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links that lead to the root, and lists and tables that stand right below a paragraph."""
    place = page.file.src_uri
    home = next((name for name, own in OF_THE_ROOT.items() if own == place), f"docs/{place}")

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(home), match[1]))
        inside = OF_THE_ROOT.get(target) or target.removeprefix("docs/")
        return posixpath.relpath(inside, posixpath.dirname(place) or ".")

    def changed(line: str) -> str:
        return LINK.sub(moved, TO_CODE.sub(r"\1", line))

    return "\n".join(apart(markdown.splitlines(), changed)) + "\n"


def on_page_content(html: str, **_: Any) -> str:
    """Pictures are loaded when they come into sight: the gallery has many."""
    return html.replace("<img ", '<img loading="lazy" ')


def apart(lines: list[str], changed: Callable[[str], str]) -> Iterator[str]:
    """The lines with a blank one before lists and tables; `changed` where they are no code.

    >>> list(apart(["Two:", "- a", "- b", "| c `d\\\\|e` |"], str))
    ['Two:', '', '- a', '- b', '', '| c `d|e` |']
    """
    fenced, before = False, ""
    for line in lines:
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            row, item = line.startswith("|"), bool(ITEM.match(line))
            in_list = bool(ITEM.match(before)) or before.startswith(" ")
            if before and ((row and not before.startswith("|")) or (item and not in_list)):
                yield ""
            # A pipe in code ends a cell for Git hosts unless it is escaped, and here it does not.
            line = (
                re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line) if row else line
            )
            line = changed(line)
        yield line
        before = line
