"""Corrections of p-values for the size of their family."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from fairweight.base.types import Floats
from fairweight.errors import UnknownNameError

Correction = Literal["holm", "bh", "none"]


def holm(p: ArrayLike) -> Floats:
    """Holm's step-down adjustment: controls the chance of any false claim in the family.

    The i-th smallest of m p-values is multiplied by m − i + 1, made monotone and cut at 1. The
    whole array is one family; NaN is no member of it and stays NaN.

    Examples
    --------
    m = 3: 0.01 · 3, 0.02 · 2, 0.04 · 1.

    >>> holm([0.04, 0.01, 0.02, float("nan")]).round(3).tolist()
    [0.04, 0.03, 0.04, nan]
    """
    return adjust(p, "holm")


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Benjamini and Hochberg's step-up adjustment: controls the share of false claims.

    The i-th smallest of m p-values is multiplied by m / i, made monotone from above and cut at 1.
    The whole array is one family; NaN is no member of it and stays NaN.

    Examples
    --------
    m = 3: 0.01 · 3/1 = 0.03 and 0.04 · 3/2 = 0.06, but no larger than 0.05 · 3/3.

    >>> benjamini_hochberg([0.05, 0.01, 0.04]).round(3).tolist()
    [0.05, 0.03, 0.05]
    """
    return adjust(p, "bh")


def adjust(p: ArrayLike, method: Correction | str) -> Floats:
    """Adjusted p-values by the correction of that name: `holm`, `bh` or `none`.

    >>> adjust([0.01, 0.5], "holm").tolist()
    [0.02, 0.5]
    """
    if method not in ("holm", "bh", "none"):
        raise UnknownNameError("Correction", method, ("holm", "bh", "none"))
    values = np.array(p, dtype=np.float64)
    if method == "none":
        return values
    order = np.argsort(values, axis=None, kind="stable")  # NaN comes last
    order = order[: values.size - int(np.isnan(values).sum())]
    m, known = order.size, values.flat[order]
    if method == "holm":
        stepped = np.maximum.accumulate(known * np.arange(m, 0, -1))
    else:
        stepped = np.minimum.accumulate((known * m / np.arange(1, m + 1))[::-1])[::-1]
    values.flat[order] = np.minimum(stepped, 1.0)
    return values
