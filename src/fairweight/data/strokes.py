"""Groups of handwritten digits, measured on their strokes: how far they lean, how much ink."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

SLANTS = ("right", "upright", "left")  # in the order of rising tilt
INKS = ("light", "medium", "heavy")


def slope(foreground: NDArray[np.bool_]) -> Floats:
    """Slope of the least-squares line of column on row over the foreground, (n, height, width).

    cov(row, column) / var(row) (Prune Responsibly). Rows are counted downwards, so 0 is upright
    and negative leans right, as `/` does. NaN where no line is determined: fewer than two rows
    have foreground.

    >>> slash = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]], dtype=bool)
    >>> slope(np.stack([slash, slash.T, slash[::-1], slash & False])).tolist()
    [-1.0, -1.0, 1.0, nan]
    """
    _, height, width = foreground.shape
    # Counted from the middle in half pixels: whole numbers, so that sums are exact.
    row = 2.0 * np.arange(height) - (height - 1)
    column = 2.0 * np.arange(width) - (width - 1)
    size = foreground.sum(axis=2, dtype=np.float64)  # of every row of pixels
    along = foreground @ column
    n = size.sum(axis=1)
    rows, columns = size @ row, along.sum(axis=1)
    together = n * (along @ row) - rows * columns
    spread = n * (size @ row**2) - rows**2
    determined = (size > 0).sum(axis=1) >= 2
    undefined = np.full(len(foreground), np.nan)
    found: Floats = np.divide(together, spread, out=undefined, where=determined)
    return found


def tilt(images: Floats, *, threshold: float = 0.5) -> Floats:
    """`slope` of the pixels above `threshold`."""
    return slope(images > threshold)


def terciles(values: Floats) -> Floats:
    """The two cuts between three parts of equal size; undefined values do not count.

    >>> terciles(np.array([0.0, 1.0, 2.0, 3.0, np.nan])).tolist()
    [1.0, 2.0]
    """
    cuts: Floats = np.nanquantile(values, [1 / 3, 2 / 3])
    return cuts


def levels(values: Iterable[float], *, cuts: Floats, names: Sequence[str]) -> list[str | None]:
    """The name of the part in which each value lies; None where the value is undefined.

    >>> levels([0.0, 1.0, 9.0, np.nan], cuts=np.array([1.0, 2.0]), names=INKS)
    ['light', 'medium', 'heavy', None]
    """
    return [
        None if np.isnan(value) else names[int(np.searchsorted(cuts, value, side="right"))]
        for value in values
    ]
