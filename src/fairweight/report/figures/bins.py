"""Histograms counted before drawing: a figure holds bins, not a million rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def edges(values: Sequence[float], most: int = 24) -> NDArray[np.float64]:
    """Edges of equal bins over finite values, as many as the square root of their number.

    >>> edges([0.0, 1.0, 2.0, 3.0], 2).tolist()
    [0.0, 1.5, 3.0]
    """
    import numpy as np

    low, high = min(values), max(values)
    if low == high:
        low, high = low - 0.5, high + 0.5
    n = max(2, min(most, round(len(values) ** 0.5)))
    return np.linspace(low, high, n + 1)


def histogram(values: Sequence[float], at: NDArray[np.float64]) -> list[dict[str, Any]]:
    """One bar per bin: low, high, its middle and how many values lie in it.

    >>> [bar["n"] for bar in histogram([0.0, 0.1, 0.9, 1.0], edges([0.0, 1.0], 2))]
    [2, 2]
    """
    import numpy as np

    counts, _ = np.histogram(values, bins=at)
    return [
        {"low": float(a), "high": float(b), "middle": float((a + b) / 2), "n": int(n)}
        for a, b, n in zip(at[:-1], at[1:], counts, strict=True)
    ]


def shares_by_column(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    at_x: NDArray[np.float64],
    at_y: NDArray[np.float64],
) -> list[dict[str, Any]]:
    """Cells of a two-way histogram as percent of their column; cells without values are left out.

    >>> import numpy as np
    >>> two = np.array([0.0, 1.0, 2.0])
    >>> cells = shares_by_column(np.array([.5, .5, 1.5]), np.array([.5, 1.5, 1.5]), two, two)
    >>> [(c["x"], c["y"], c["share"], c["n"]) for c in cells]
    [(0.0, 0.0, 50.0, 1), (0.0, 1.0, 50.0, 1), (1.0, 1.0, 100.0, 1)]
    """
    import numpy as np

    counts, _, _ = np.histogram2d(x, y, bins=(at_x, at_y))
    totals = counts.sum(axis=1)
    return [
        {
            "x": float(at_x[i]), "x2": float(at_x[i + 1]),
            "y": float(at_y[j]), "y2": float(at_y[j + 1]),
            "share": float(100 * counts[i, j] / totals[i]),
            "n": int(counts[i, j]),
        }
        for i, j in zip(*np.nonzero(counts), strict=True)
    ]  # fmt: skip
