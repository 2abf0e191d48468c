"""Columns of text in a file: mapped, so that a million names cost nothing until one is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

COLUMN = "text"
CHUNK = 8192  # texts that are looked through together


def write_texts(path: Path, values: Iterable[str | None]) -> None:
    """Write a column of text; None is a missing value."""
    import pyarrow as pa
    import pyarrow.feather as feather

    # Text that came from files may hold lone surrogates, which Arrow cannot store.
    clean = [v if v is None else v.encode("utf-8", "replace").decode("utf-8") for v in values]
    table = pa.table({COLUMN: pa.array(clean, pa.large_string())})
    feather.write_feather(table, path, compression="uncompressed", chunksize=max(len(clean), 1))


class Texts(Sequence[Any]):
    """A column of text that `write_texts` wrote, by place."""

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        with pa.memory_map(str(path)) as file:
            self._column: pa.ChunkedArray = pa.ipc.open_file(file).read_all().column(COLUMN)

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self._column[place].to_pylist()
        return self._column[int(place)].as_py()

    def place(self, text: str | None) -> int | None:
        """The first place of a text, looked for one by one; None where it is not there."""
        # Without pyarrow.compute: importing it takes longer than looking through most columns.
        for start in range(0, len(self), CHUNK):
            part = self[start : start + CHUNK]
            if text in part:
                return start + int(part.index(text))
        return None

    def holds(self, texts: Collection[str]) -> set[str]:
        """Which of many texts are there; the column is read once."""
        wanted, found = set(texts), set[str]()
        for start in range(0, len(self), CHUNK):
            found |= wanted.intersection(self[start : start + CHUNK])
        return found

    def searched(self, text: str, order: NDArray[np.unsignedinteger[Any]]) -> int | None:
        """The same by halves, where `order` sorts the texts."""
        low, high = 0, len(order)
        while low < high:
            middle = (low + high) // 2
            if self[order[middle]] < text:
                low = middle + 1
            else:
                high = middle
        found = low < len(order) and self[order[low]] == text
        return int(order[low]) if found else None
