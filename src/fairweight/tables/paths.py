"""Paths as users write them: files, globs, folders of Parquet, `file.duckdb::SELECT ...`."""

from __future__ import annotations

import difflib
import glob
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fairweight.errors import InputError
from fairweight.tables.complaints import reading
from fairweight.tables.sql import literal

_PARQUET = frozenset((".parquet", ".pq", ".parq"))
_CSV = frozenset((".csv", ".tsv", ".txt", ".tab"))
_JSON = frozenset((".json", ".jsonl", ".ndjson"))
_ARROW = frozenset((".arrow", ".feather", ".ipc", ".arrows"))
_DATABASE = frozenset((".duckdb", ".db", ".sqlite", ".sqlite3", ".ddb"))
# How packed files begin, as patterns of bytes.
_PACKED = {".gz": rb"\x1f\x8b", ".zst": rb"\x28\xb5\x2f\xfd", ".bz2": rb"BZh[1-9]1AY&SY"}
_ARCHIVES = {rb"PK\x03\x04": "a zip archive or an Excel workbook", rb"\xfd7zXZ": "packed by xz"}
_READABLE = (
    "Parquet (.parquet), CSV or TSV (.csv, .tsv), Arrow (.arrow, .feather), JSON lines (.jsonl), "
    "DuckDB and SQLite files (.duckdb, .sqlite)"
)


@dataclass(frozen=True)
class Place:
    """A path as written, with the files it stands for."""

    text: str
    files: tuple[Path, ...]
    query: str | None = None
    hive: bool = False
    suffix: str = field(default="")


def find_files(text: str) -> Place:
    if not text.strip():
        raise InputError("An empty file name was given; name a file, a glob or a folder.")
    path, separator, query = text.partition("::")
    if "://" in path:
        raise InputError(
            f"'{path}' is a remote address; fairweight reads local files only: download it first."
        )
    given = Path(path).expanduser()
    asked = query.strip() if separator else None
    with reading(f"'{path}'"):
        if given.is_file():
            return Place(text, (given,), asked, suffix=_suffix(given))
        if given.is_dir():
            found = sorted(
                file
                for file in given.rglob("*")
                if file.suffix.lower() in _PARQUET
                and file.is_file()
                and not any(p.startswith((".", "_")) for p in file.relative_to(given).parts)
            )
            if not found:
                raise InputError(
                    f"The folder '{path}' holds no Parquet file; give a folder of Parquet files, "
                    "or name the files."
                )
            parts = {part for file in found for part in file.relative_to(given).parts[:-1]}
            hive = any("=" in part for part in parts)
            return Place(text, tuple(found), asked, hive=hive, suffix=".parquet")
        if any(mark in path for mark in "*?["):
            matched = sorted(Path(f) for f in glob.glob(str(given), recursive=True))
            found = [file for file in matched if file.is_file()]
            if not found:
                raise InputError(f"No file matches '{path}'; check the folder and the pattern.")
            kinds = {_suffix(file) for file in found}
            if len(kinds) > 1:
                raise InputError(
                    f"'{path}' matches files of several kinds ({', '.join(sorted(kinds))}); "
                    "narrow the pattern."
                )
            return Place(text, tuple(found), asked, "=" in path, kinds.pop())
    raise InputError(_missing_file(given, path))


def _missing_file(given: Path, text: str) -> str:
    folder = given.parent
    if not folder.is_dir():
        return f"The file '{text}' does not exist: there is no folder '{folder}'; check the path."
    near = difflib.get_close_matches(given.name, [f.name for f in folder.iterdir()], 1, 0.6)
    hint = f". Did you mean '{folder / near[0]}'?" if near else "; check the path."
    return f"The file '{text}' does not exist{hint}"


def _suffix(path: Path) -> str:
    """The suffix that tells the format, below a compression suffix."""
    name = path.name.lower()
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return Path(name).suffix


def kind_of_file(place: Place) -> str:
    heads = []
    for file in place.files:
        with reading(f"'{file}'"), file.open("rb") as stream:
            heads.append(stream.read(16))
        _check_packing(file, heads[-1])
    head = heads[0]
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1", b"FEA1")):
        return "arrow"
    if head.startswith(b"SQLite format 3"):
        return "sqlite"
    if head[8:12] == b"DUCK":
        return "duckdb"
    if place.suffix in _DATABASE:
        raise InputError(f"'{place.files[0]}' is neither a DuckDB nor a SQLite file.")
    for suffixes, kind in ((_PARQUET, "parquet"), (_CSV, "csv"), (_JSON, "json")):
        if place.suffix in suffixes:
            return kind
    if place.suffix in _ARROW:
        return "arrow"
    raise InputError(f"'{place.files[0]}' is of an unknown kind; fairweight reads {_READABLE}.")


def _check_packing(file: Path, head: bytes) -> None:
    """Raise where the first bytes and the name of a file disagree on how it is packed."""
    name = file.name.lower()
    packed = next((end for end, magic in _PACKED.items() if re.match(magic, head)), "")
    named = next((end for end in _PACKED if name.endswith(end)), "")
    archive = next((kind for magic, kind in _ARCHIVES.items() if re.match(magic, head)), None)
    if archive is not None:
        raise InputError(f"'{file}' is {archive}; unpack it, or save the table as CSV or Parquet.")
    if packed and packed != named:
        raise InputError(
            f"'{file}' is compressed ({packed}), but its name does not say so; rename it to "
            f"'{file.name}{packed}', or unpack it."
        )
    if named and not packed:
        raise InputError(
            f"'{file}' is named {named}, but it is not compressed; rename it to "
            f"'{file.name[: -len(named)]}'."
        )


def file_list(files: Iterable[Path]) -> str:
    """The files as an SQL list; characters that DuckDB would take for a pattern are bracketed."""
    shown = []
    for file in files:
        text = "".join(f"[{mark}]" if mark in "*?[" else mark for mark in str(file))
        shown.append(literal(text))
    return "[" + ", ".join(shown) + "]"
