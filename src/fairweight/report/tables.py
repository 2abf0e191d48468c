"""The tables of an audit as CSV and Parquet files."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.report.frames import FRAMES

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

    from fairweight.auditing.result import AuditResult

_VIEWS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "overall": lambda f: f["by"] == "overall",
    "by_class": lambda f: f["by"] == "class",
    "by_group": lambda f: f["by"].isin(["group", "group*class"]),
    "groupings": lambda f: f["by"] == "grouping",
}
TABLES = (*FRAMES, *_VIEWS)  # of every audit


def write_tables(result: AuditResult, directory: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Every frame as CSV; results, bounds and explanations as Parquet; the paths written.

    Frames without rows are written too, so that a script finds the same files after every audit.
    Names are exact in Parquet and JSON. In CSV, text that a spreadsheet would run as a formula
    (`=…`, `+…`, `-…`, `@…`, but not a plain number such as `-1`) gets a leading apostrophe.
    """
    import duckdb

    folder = Path(directory)
    frames = {name: getattr(result, name) for name in FRAMES}
    frames |= {name: result.results[keep(result.results)] for name, keep in _VIEWS.items()}
    if result.variants_table is not None:
        frames["variants"] = result.variants_table
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        written = [
            _copy(connection, _guarded(frame), folder / f"{name}.csv", "FORMAT csv, HEADER")
            for name, frame in frames.items()
        ]
        written += [
            _copy(connection, frames[name], folder / f"{name}.parquet", "FORMAT parquet")
            for name in ("results", "bounds")
        ]
        written += [
            _copy(connection, frame, folder / f"{name}.parquet", "FORMAT parquet")
            for name, frame in result.explanations.items()
            if len(frame.columns)
        ]
    return tuple(written)


def write_frames(
    frames: Mapping[str, pd.DataFrame], directory: str | os.PathLike[str]
) -> tuple[Path, ...]:
    """Every frame as CSV and as Parquet under its name; the paths written."""
    import duckdb

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with duckdb.connect() as connection:
        for name, frame in frames.items():
            csv, parquet = folder / f"{name}.csv", folder / f"{name}.parquet"
            written.append(_copy(connection, _guarded(frame), csv, "FORMAT csv, HEADER"))
            written.append(_copy(connection, frame, parquet, "FORMAT parquet"))
    return tuple(written)


def _copy(connection: duckdb.DuckDBPyConnection, frame: pd.DataFrame, path: Path, how: str) -> Path:
    """Write a frame by DuckDB, which is fast and writes numbers so that they read back exactly."""
    import duckdb

    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        connection.register("frame", _typed(frame))
        columns = ", ".join(_column(str(name), str(frame[name].dtype)) for name in frame.columns)
        connection.execute(f"COPY (SELECT {columns} FROM frame) TO ? ({how})", [str(temporary)])
        os.replace(temporary, path)
    except duckdb.IOException as error:
        # DuckDB says only in words what the system answered; whoever writes the folder needs both.
        code = errno.ENOSPC if "No space left" in str(error) else errno.EIO
        raise OSError(code, os.strerror(code), str(path)) from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
    return path


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of text typed as text: DuckDB would have to guess the type of objects."""
    return frame.astype({name: "str" for name in frame.columns if frame[name].dtype == object})


def _column(name: str, dtype: str) -> str:
    """A column in SQL; NaN is null."""
    quoted = '"' + name.replace('"', '""') + '"'
    if dtype.startswith("float"):
        return f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} END AS {quoted}"
    return quoted


_FORMULA = re.compile(r"'*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")  # the last four are full width
_PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def cell_text(text: str) -> str:
    """Text that a spreadsheet shows and does not run; different names stay different.

    >>> [cell_text(t) for t in ("=1+1", "-1", "+1.5e3", "-a", "'=x", "a=b")]
    ["'=1+1", '-1', '+1.5e3', "'-a", "''=x", 'a=b']
    """
    if _FORMULA.match(text) and not _PLAIN_NUMBER.fullmatch(text):
        return "'" + text
    return text


def _guarded(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with every text cell safe for a spreadsheet."""
    changed = {}
    for name in frame.columns:
        if frame[name].dtype.kind not in "OUSTV":
            continue
        cells = {v: cell_text(v) for v in frame[name].unique() if isinstance(v, str)}
        if any(before != after for before, after in cells.items()):
            changed[name] = frame[name].astype(object).map(lambda v, c=cells: c.get(v, v))
    return frame.assign(**changed)
