"""Write docs/coverage.md from docs/coverage.toml.

    python docs/generate_coverage.py

A test fails where the page is not what this makes, where a line of the coverage list has no entry,
and where an entry names something that does not exist.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "coverage.toml"
PAGE = Path(__file__).parent / "coverage.md"
MADE = "<!-- Made by docs/generate_coverage.py from docs/coverage.toml: do not edit. -->"
NOT_TO_THE_LETTER = ("partly: ", "represented: ")


def read() -> dict[str, list[dict[str, Any]]]:
    """Lines with their parts, and goldens."""
    found: dict[str, list[dict[str, Any]]] = tomllib.loads(DATA.read_text(encoding="utf-8"))
    return found


def page(held: dict[str, list[dict[str, Any]]]) -> str:
    """The page: one table per line of the list, then the goldens."""
    lines, goldens = held["line"], held["golden"]
    parts = [part for line in lines for part in line["parts"]]
    loose = [part for part in parts if part.get("note", "").startswith(NOT_TO_THE_LETTER)]
    shown = [
        MADE,
        "# Coverage of the five papers",
        "Everything that the five papers describe, line by line: where it lives in fairweight, "
        "and the test that proves it. Places are below `src/fairweight`, or a command, or an "
        "experiment of a study; tests are below `tests`. SS is Simon Says, IO Bias in pruned "
        "vision models, SG the comparative study, HK Characterising bias, PA Prune responsibly.",
        f"{len(lines)} lines have {len(parts)} parts. {len(loose)} of these are not there to the "
        "letter, and their remark says so: *partly*, where something is missing, or *represented*, "
        "where another thing stands for it. A test of this page checks that places and tests "
        "exist; whether a claim of a paper holds is said on the pages of results, and what does "
        "not reconcile in the papers on the page of [errata](errata.md).",
    ]
    section = ""
    for line in lines:
        if line["section"] != section:
            section = line["section"]
            shown.append(f"## {section}")
        shown.append(f"**{plain(line['text'])}**")
        rows = (
            (part["what"], code(part["where"]), code(part["test"]), part.get("note", ""))
            for part in line["parts"]
        )
        shown.append(table(("part", "where", "test", "remark"), rows))
    shown += [
        "## Goldens",
        "Numbers that can be recomputed from what the papers print or their authors published, "
        "by the number of the golden, of the finding about the papers, or of the section that "
        "defines them. The tables of the papers are typed once, on the page of errata; counts of "
        "Simon Says and data are read from files beside the project, and their tests are skipped "
        "where these are absent.",
        table(
            ("golden", "what", "test", "remark"),
            (
                (golden["id"], golden["what"], code(golden["test"]), golden.get("note", ""))
                for golden in goldens
            ),
        ),
    ]
    return "\n\n".join(shown) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; what is no code is escaped."""
    shown = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    shown += [
        "| " + " | ".join(plain(cell).replace("|", "\\|") for cell in row) + " |" for row in rows
    ]
    return "\n".join(shown)


def code(text: str) -> str:
    return f"`{text}`" if text else "–"


def plain(text: str) -> str:
    """Text in which nothing but `code` is markup."""
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        for mark in ("*", "_", "<", "["):
            parts[i] = parts[i].replace(mark, f"\\{mark}")
    return "`".join(parts)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(read()), encoding="utf-8")


if __name__ == "__main__":
    main()
