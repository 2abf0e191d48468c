"""Finding and reading the files of a download, with an error that names the file."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path

from fairweight.errors import InputError, UnknownNameError

AGAIN = "download it again"
_GZIP = b"\x1f\x8b"


def find_folder(root: Path, *places: str) -> Path:
    """The first of these folders below `root` that exists; `root` itself where none does."""
    return next((root / place for place in places if (root / place).is_dir()), root)


def find_file(folder: Path, *names: str) -> Path | None:
    """The first of these files, compressed with gzip or not."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    return None


def need_file(folder: Path, *names: str, dataset: str, remedy: str = "") -> Path:
    """The first of these files, or an error that says which one is missing."""
    found = find_file(folder, *names)
    if found is None:
        raise InputError(
            f"Data set '{dataset}' needs the file '{names[0]}', which is not in '{folder}'; put "
            f"the official download there{f', or {remedy}' if remedy else ''}."
        )
    return found


def need_folder(folder: Path, *names: str, dataset: str) -> Path:
    """The first of these folders, or an error that says which one is missing."""
    for name in names:
        if (folder / name).is_dir():
            return folder / name
    raise InputError(
        f"Data set '{dataset}' needs the folder '{names[0]}', which is not in '{folder}'; unpack "
        "the official download there."
    )


def entries(folder: Path) -> list[Path]:
    """What is in a folder, by name; hidden files do not count."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        raise InputError(
            f"'{folder}' cannot be listed ({error.strerror}); give the folder of the data set."
        ) from error


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked where it is compressed with gzip."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content.startswith(_GZIP) else content
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"'{path}' is truncated or damaged ({error}); {AGAIN}.") from error
    except OSError as error:
        raise InputError(f"'{path}' cannot be read ({error.strerror}); {AGAIN}.") from error


def read_lines(path: Path) -> list[str]:
    """Lines of text without their ends; empty ones are left out."""
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"'{path}' is not text ({error.reason}); {AGAIN}.") from error
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def read_csv(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Rows of a comma-separated file that must have these columns."""
    reader = csv.DictReader(io.StringIO("\n".join(read_lines(path))))
    try:
        for column in columns:
            if column not in (reader.fieldnames or ()):
                raise InputError(f"'{path}' has no column '{column}'; {AGAIN}.")
        rows = list(reader)
    except csv.Error as error:
        raise InputError(f"'{path}' is not comma-separated text ({error}); {AGAIN}.") from error
    for number, row in enumerate(rows, start=2):
        if any(row[column] is None for column in columns):
            raise InputError(f"'{path}' ends within line {number}; {AGAIN}.")
    return rows


def whole_number(text: str, path: Path) -> int:
    """A number of an annotation file."""
    try:
        return int(text)
    except ValueError:
        raise InputError(f"'{path}' has '{text}' where a number should be; {AGAIN}.") from None


def chosen(splits: str | Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The splits that were asked for, one or several."""
    names = (splits,) if isinstance(splits, str) else tuple(splits)
    for name in names:
        if name not in known:
            raise UnknownNameError("Split", name, known)
    if not names or len(set(names)) != len(names):
        raise InputError(f"splits is {list(names)}; name each of {list(known)} at most once.")
    return names
