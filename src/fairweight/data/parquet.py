"""Images in Parquet files: encoded bytes in one column, labels and groups in others."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fairweight.data.codecs import Fit, decode_all, shape_of
from fairweight.data.dataset import ALL, MISSING, Images, Pixels, Texts, Whole
from fairweight.data.photographs import Progress, Size, filled, target_of
from fairweight.data.registry import AGAIN
from fairweight.errors import InputError, UnknownNameError


class ParquetTable:
    """A Parquet file of encoded images, read by DuckDB; every failure names the file."""

    def __init__(self, path: Path) -> None:
        import duckdb  # not by whoever only lists data sets

        self.path = path
        self._connection, self._error = duckdb.connect(), duckdb.Error
        described = self._ask("DESCRIBE SELECT * FROM read_parquet(?)")
        self.columns: list[str] = [row[0] for row in described]
        self.n: int = self._ask("SELECT count(*) FROM read_parquet(?)")[0][0]

    def texts(self, columns: Sequence[str]) -> list[tuple[str | None, ...]]:
        """A row of text per row of the file; None where a value is missing."""
        asked = ", ".join(f"CAST({self._quoted(column)} AS VARCHAR)" for column in columns)
        return self._ask(f"SELECT {asked} FROM read_parquet(?)")

    def encoded(self, image: str, start: int, stop: int) -> list[bytes]:
        """Encoded images of the rows from `start` to `stop`."""
        rows = self._ask(
            f"SELECT {self._quoted(image)} FROM read_parquet(?, file_row_number = true) "
            "WHERE file_row_number >= ? AND file_row_number < ? ORDER BY file_row_number",
            start,
            stop,
        )
        for number, row in enumerate(rows, start=start):
            if not isinstance(row[0], bytes):
                raise InputError(
                    f"'{self.named(number)}' has no bytes of an image in the column '{image}'; "
                    "give the column that has (image=...), or remove the row."
                )
        return [row[0] for row in rows]

    def named(self, row: int) -> str:
        """A row as a message calls it."""
        return f"{self.path}, row {row}"

    def _ask(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._connection.execute(query, [str(self.path), *values]).fetchall()
        except self._error as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"'{self.path}' cannot be read as Parquet ({reason}); {AGAIN}."
            ) from error

    def _quoted(self, column: str) -> str:
        if column not in self.columns:
            raise UnknownNameError(f"Column of '{self.path}'", column, self.columns)
        return '"' + column.replace('"', '""') + '"'


def parquet_files(place: Path) -> dict[Path, str]:
    """Parquet files of a folder (or the one given) and the split of each, by its name."""
    found = [place] if place.is_file() else sorted(place.glob("*.parquet"))
    order = ("train", "val", "test", ALL)
    files = {path: next((s for s in order if path.name.startswith(s)), ALL) for path in found}
    return dict(sorted(files.items(), key=lambda item: order.index(item[1])))


def read_parquet_images(
    name: str,
    files: Mapping[Path, str],
    *,
    label: str | Sequence[str],
    groups: Sequence[str] = (),
    classes: tuple[str, ...] | None = None,
    id: str = "example_id",
    image: str = "image",
    size: Size = None,
    fit: Fit = "crop",
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    """Images of Parquet files, in their order.

    Parameters
    ----------
    label
        One column of classes, or several columns of yes or no: the tasks.
    classes
        Names of the classes 0, 1 … of an integer column; by default the values themselves.
    """
    tables = [ParquetTable(path) for path in files]
    tasks = (label,) if isinstance(label, str) else tuple(label)
    columns = list(dict.fromkeys((id, *groups, *tasks)))
    rows = [row for table in tables for row in table.texts(columns)]
    text: dict[str, Texts] = {
        column: np.array([row[i] or MISSING for row in rows], dtype=str)
        for i, column in enumerate(columns)
    }
    if isinstance(label, str):
        labels, names = _places(label, text[label], classes)
    else:
        truth = [_places(task, text[task], ("false", "true"))[0] for task in tasks]
        labels, names = np.stack(truth, axis=1), tasks
    return Images(
        name=name,
        images=_pixels(tables, image, size, fit, cache, progress),
        labels=labels,
        classes=names,
        groups={column: text[column] for column in groups},
        example_id=text[id],
        split=np.repeat(list(files.values()), [table.n for table in tables]),
    )


def _places(
    column: str, given: Texts, classes: tuple[str, ...] | None
) -> tuple[Whole, tuple[str, ...]]:
    empty = int((given == MISSING).sum())
    if empty:
        raise InputError(f"Column '{column}' has {empty} empty labels; remove those rows.")
    if classes is None:
        # Whole numbers by size, then text by alphabet.
        number = re.compile(r"-?\d+")
        values = set(given.tolist())
        whole = sorted(filter(number.fullmatch, values), key=lambda value: (int(value), value))
        classes = (*whole, *sorted(values - set(whole)))
    places = {name: i for i, name in enumerate(classes)}
    places |= {str(i): i for i in range(len(classes)) if str(i) not in places}
    unknown = sorted(set(given.tolist()) - set(places))
    if unknown:
        raise UnknownNameError(f"Class in the column '{column}'", unknown[0], classes)
    return np.array([places[value] for value in given.tolist()], dtype=np.int64), classes


def _pixels(
    tables: Sequence[ParquetTable],
    image: str,
    size: Size,
    fit: Fit,
    cache: Path | None,
    progress: Progress | None,
) -> Pixels:
    ends = np.cumsum([table.n for table in tables]).tolist()
    if not ends[-1]:
        raise InputError(f"'{tables[0].path}' has no rows; {AGAIN}.")
    first = next(table for table in tables if table.n)
    target = target_of(size, fit, shape_of(first.encoded(image, 0, 1)[0], named=first.named(0)))

    def rows(start: int, stop: int) -> Pixels:
        sources: list[tuple[bytes | Path, str]] = []
        while start < stop:
            which = bisect_right(ends, start)
            table, before = tables[which], ends[which] - tables[which].n
            until = min(stop, ends[which])
            found = table.encoded(image, start - before, until - before)
            sources += [(c, table.named(i)) for i, c in enumerate(found, start=start - before)]
            start = until
        return decode_all(sources, target)

    facts = [[t.path.name, t.path.stat().st_size, t.path.stat().st_mtime_ns] for t in tables]
    return filled(
        [target.fit, image, facts],
        (ends[-1], *target.shape),
        rows,
        folder=cache,
        progress=progress,
    )
