"""Groups of handwritten digits, measured on their strokes: how far they lean, how much ink."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

SLANTS = ("right", "upright", "left")  # in the order of rising tilt
INKS = ("light", "medium", "heavy")


def tilt(images: Floats, *, threshold: float = 0.5) -> Floats:
    """Slope of the least-squares line of column on row, over the pixels above `threshold`.

    cov(row, column) / var(row) (Prune Responsibly). Rows are counted downwards, so 0 is upright
    and negative leans right, as `/` does. NaN where no line is determined: fewer than two rows
    have such pixels.

    >>> slash = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]], dtype=float)
    >>> tilt(np.stack([slash, slash.T, slash[::-1], 0 * slash])).tolist()
    [-1.0, -1.0, 1.0, nan]
    """
    stroke = (images > threshold).astype(np.float64)
    size = stroke.sum(axis=(1, 2))
    rows = np.arange(images.shape[1], dtype=np.float64)[None, :, None]
    columns = np.arange(images.shape[2], dtype=np.float64)[None, None, :]
    inked = np.maximum(size, 1.0)[:, None, None]  # an empty image has no mean; its spread is 0
    row = rows - (stroke * rows).sum(axis=(1, 2), keepdims=True) / inked
    column = columns - (stroke * columns).sum(axis=(1, 2), keepdims=True) / inked
    spread = (stroke * row**2).sum(axis=(1, 2))
    together = (stroke * row * column).sum(axis=(1, 2))
    undefined = np.full(len(images), np.nan)
    slope: Floats = np.divide(together, spread, out=undefined, where=spread > 0)
    return slope


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
