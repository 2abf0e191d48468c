"""The JavaScript that draws figures offline: Vega, Vega-Lite and Vega-Embed in one string.

vl-convert holds the libraries and takes about two seconds to bundle them, so the bundle is kept in
the user's cache folder. It is named by the version that made it and carries its own checksum: a
damaged copy is made again, and a folder that cannot be written costs time, not the report.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

_MARK = "/* fairweight bundle sha256 "
_END = " */\n"
_HEADER_LENGTH = len(_MARK) + 64 + len(_END)


def javascript() -> str:
    """The bundle; `vegaEmbed` is then a global function of the page."""
    path = cache_folder() / f"vega-bundle-{version('vl-convert-python')}.js"
    kept = _read(path)
    if kept is not None:
        return kept
    made = _make()
    _write(path, made)
    return made


def cache_folder() -> Path:
    """`FAIRWEIGHT_CACHE`, else `XDG_CACHE_HOME/fairweight`, else the system's usual place."""
    own = os.environ.get("FAIRWEIGHT_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    with suppress(RuntimeError):  # no home folder: a service account
        return (Path(base) if base else Path.home() / ".cache") / "fairweight"
    return _own_temporary()


@cache
def _own_temporary() -> Path:
    """A folder for temporary files that nobody else can have put anything into."""
    folder = Path(tempfile.gettempdir()) / f"fairweight-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        private = found.st_uid == os.getuid() and not found.st_mode & 0o022
        if stat.S_ISDIR(found.st_mode) and private:
            return folder
    return Path(tempfile.mkdtemp(prefix="fairweight-"))


def _make() -> str:
    import vl_convert

    made: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Inside <script> the text must not contain what ends or reopens a script.
    return made.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _header(text: str) -> str:
    return _MARK + hashlib.sha256(text.encode()).hexdigest() + _END


def _read(path: Path) -> str | None:
    try:
        kept = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    body = kept[_HEADER_LENGTH:]
    return body if body and kept.startswith(_header(body)) else None


def _write(path: Path, text: str) -> None:
    """Keep the bundle; in one step, so that another process never reads half of it."""
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(_header(text) + text)
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
