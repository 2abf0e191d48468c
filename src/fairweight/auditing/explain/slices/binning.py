"""Numbers as levels: quantile bins, named by the values they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats

_DIGITS = range(3, 18)  # 17 significant digits tell any two numbers apart


def quantile_bins(values: Floats, bins: int) -> tuple[tuple[str | None, ...], NDArray[np.int32]]:
    """Levels and codes of a numeric column, None and the last code for missing values.

    Parameters
    ----------
    values
        NaN is missing.
    bins
        How many bins of about equal size. Equal values are never parted, so that there are fewer
        where many are equal.

    Examples
    --------
    >>> quantile_bins(np.array([1.0, 2.0, 3.0, 4.0, np.nan]), 2)
    (('1 to 2', '3 to 4', None), array([0, 0, 1, 1, 2], dtype=int32))
    """
    known = ~np.isnan(values)
    if not known.any():
        return (None,), np.zeros(values.size, dtype=np.int32)
    given = values if known.all() else values[known]
    inner = np.arange(1, bins) / bins
    # Quantiles that are values of the column: no arithmetic, so infinities are values too.
    uppers = np.unique(np.quantile(given, inner, method="inverted_cdf"))
    place = np.searchsorted(uppers, given, side="left")
    used, code = np.unique(place, return_inverse=True)
    least = np.full(used.size, np.inf)
    most = np.full(used.size, -np.inf)
    np.minimum.at(least, code, given)
    np.maximum.at(most, code, given)
    levels: tuple[str | None, ...] = _names(least, most)
    full = np.full(values.size, used.size, dtype=np.int32)
    full[known] = code
    return (levels, full) if known.all() else ((*levels, None), full)


def _names(least: Floats, most: Floats) -> tuple[str, ...]:
    """Ranges with as few digits as keep their ends apart."""
    ends = np.unique(np.concatenate([least, most]))
    for digits in _DIGITS:
        shown = {float(end): f"{end + 0.0:.{digits}g}" for end in ends}
        if len(set(shown.values())) == ends.size:
            break
    pairs = zip(least.tolist(), most.tolist(), strict=True)
    return tuple(shown[a] if a == b else f"{shown[a]} to {shown[b]}" for a, b in pairs)
