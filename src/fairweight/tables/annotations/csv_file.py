"""`annotations.csv`: the one format of the report's page, the viewer and `mitigate overrides`.

A spreadsheet runs cells that begin with =, +, - or @. They are written behind an apostrophe, which
is taken away again on reading; a cell that has apostrophes before such a sign gets one more, so
that every text comes back as it was.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from fairweight.errors import InputError
from fairweight.tables.annotations.verdict import Annotation

COLUMNS = ("example_id", "task", "verdict", "label", "note", "annotator", "time")
NEEDED = ("example_id", "verdict")
# Some spreadsheets skip tabs and ends of lines before they look for a formula, and some take the
# wide signs of Asian keyboards for one.
_FORMULA = r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
_RUNS = re.compile("'*" + _FORMULA)
_GUARDED = re.compile("'+" + _FORMULA)


def to_csv(rows: Iterable[Annotation]) -> str:
    r"""The text of a file with these annotations.

    >>> to_csv([Annotation("-7", "fine", label="cat", note="=1+1")]).splitlines()[1]
    "'-7,,fine,cat,'=1+1,,"
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_guarded(getattr(row, name)) for name in COLUMNS])
    return stream.getvalue()


def read_csv(source: Path | str, shown: str | None = None) -> list[Annotation]:
    """The annotations of a file, or of a text that was a file.

    Parameters
    ----------
    source
        A `Path` is read; a `str` is the text itself.
    shown
        How errors name it.
    """
    if isinstance(source, Path):
        return read_csv(_text(source), shown or source.name)
    shown = shown or "annotations.csv"
    lines = _lines(source.removeprefix("\ufeff"), shown)
    try:
        header = [cell.strip() for cell in next(lines)]
    except StopIteration:
        raise InputError(f"{shown} is empty; its first line names the columns.") from None
    for name in NEEDED:
        if name not in header:
            raise InputError(
                f"{shown} has no column '{name}'; it needs {', '.join(COLUMNS)} (only "
                f"{' and '.join(NEEDED)} must be there)."
            )
    if len(set(header)) < len(header):
        raise InputError(f"{shown} has two columns of one name; leave one of them out.")
    return [_row(header, cells, f"{shown}, row {n}") for n, cells in enumerate(lines, 1) if cells]


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(
            f"The annotations '{path}' cannot be read ({error.strerror}); check the path."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"The annotations '{path}' are not UTF-8 (byte {error.start}); save them as UTF-8."
        ) from error


def _lines(text: str, shown: str) -> Iterator[list[str]]:
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)  # spreadsheets of some countries write semicolons
    try:
        yield from csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    except csv.Error as error:
        raise InputError(f"{shown} is no CSV file ({error}); export it once more.") from error


def _row(header: list[str], cells: list[str], place: str) -> Annotation:
    if len(cells) > len(header) and any(cells[len(header) :]):
        raise InputError(
            f"{place} has {len(cells)} cells, more than the {len(header)} columns; put texts with "
            "commas between quotes."
        )
    known = {
        name: _unguarded(cell) for name, cell in zip(header, cells, strict=False) if name in COLUMNS
    }
    try:
        return Annotation(**{name: known.get(name, "") for name in COLUMNS})
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _guarded(cell: str) -> str:
    return f"'{cell}" if _RUNS.match(cell) else cell


def _unguarded(cell: str) -> str:
    return cell[1:] if _GUARDED.match(cell) else cell
