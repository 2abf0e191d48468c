"""Does compression amplify bias where the dense model already did? Compressed on dense, by pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.explain.tables import COLUMNS
from fairweight.tables.names import grouping_of

if TYPE_CHECKING:
    import pandas as pd

BIAS_REGRESSION_COLUMNS = COLUMNS["bias_regression"]
METRIC = "bias_amplification"
FEWEST = 3
FEWEST_FOR_R2 = 4  # Fisher's z has n − 3 in its variance


def bias_regression(results: pd.DataFrame, *, alpha: float = 0.05) -> pd.DataFrame:
    """Least squares of compressed on dense bias amplification over (attribute, category) pairs.

    Source: Iofinova et al. 2023. An attribute is a task, a category a level of a group column; the
    two levels of a binary column speak of the same pair and count once.

    Parameters
    ----------
    results
        `AuditResult.results`; the rows of `bias_amplification` that have both values are used.

    Notes
    -----
    A slope above 1 means: where the dense model amplifies, the compressed one amplifies more. Pairs
    of one attribute are not independent, so attributes are what is sampled: the slope's interval is
    the jackknife over attributes with t(G − 1), that of R² is Fisher's z with as many observations
    as attributes (cut at 0). Both values are measured on the same examples, and the error of the
    dense ones draws the slope towards 0. An association: nothing here says that one is the cause
    of the other. Undefined with fewer than 3 attributes, or where the dense values are all equal.
    """
    import pandas as pd

    rows = results[(results["metric"] == METRIC) & (results["scope"].fillna("model") == "model")]
    variants = list(dict.fromkeys(results["variant"]))
    found = [{"variant": name, **_fit(rows[rows["variant"] == name], alpha)} for name in variants]
    return pd.DataFrame(found, columns=list(BIAS_REGRESSION_COLUMNS))


def _fit(rows: pd.DataFrame, alpha: float) -> dict[str, Any]:
    pairs = _pairs(rows)
    x = pairs["baseline"].to_numpy(dtype=np.float64)
    y = pairs["compressed"].to_numpy(dtype=np.float64)
    attribute = np.unique(pairs["task"].to_numpy(dtype=str), return_inverse=True)[1]
    groups = int(attribute.max(initial=-1)) + 1
    made: dict[str, Any] = {"n_attributes": groups, "n_pairs": len(x)}
    if groups < FEWEST:
        counted = "1 attribute" if groups == 1 else f"{groups} attributes"
        return made | {"status": f"not_estimable: {counted}, {FEWEST} are needed"}
    if np.ptp(x) == 0:
        return made | {"status": "not_estimable: the dense values are all equal"}
    slope, intercept = _line(x, y)
    r = 0.0 if np.ptp(y) == 0 else float(np.corrcoef(x, y)[0, 1])
    low, high = _slope_limits(x, y, attribute, slope, alpha)
    r2_low, r2_high = _r2_limits(r, groups, alpha)
    status = "ok"
    if np.isnan(low):
        status = "no interval of the slope: it rests on one attribute"
    elif np.isnan(r2_low):
        status = f"no interval of R²: {groups} attributes, {FEWEST_FOR_R2} are needed"
    return made | {
        "slope": slope, "slope_low": low, "slope_high": high, "intercept": intercept,
        "r2": r**2, "r2_low": r2_low, "r2_high": r2_high, "status": status,
    }  # fmt: skip


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with both values and an attribute; of a binary column's two levels, the first."""
    usable = rows[rows[["baseline", "compressed"]].notna().all(axis=1) & rows["task"].notna()]
    column = np.array([grouping_of(str(name)) for name in usable["group"]], dtype=object)
    keys = [usable["task"].to_numpy(), column]
    size = usable.groupby(keys, sort=False)["group"].transform("size")
    # Both levels of a binary column stand on one watched side, so their values are the same.
    place = usable.groupby(keys, sort=False).cumcount()
    first = usable.groupby(keys, sort=False)[["baseline", "compressed"]].transform("first")
    repeated = (place == 1) & (size == 2) & (first == usable[first.columns]).all(axis=1)
    return usable[~repeated]


def _line(x: Floats, y: Floats) -> tuple[float, float]:
    away = x - x.mean()
    slope = float(away @ (y - y.mean()) / (away @ away))
    return slope, float(y.mean() - slope * x.mean())


def _slope_limits(
    x: Floats, y: Floats, attribute: NDArray[np.intp], slope: float, alpha: float
) -> tuple[float, float]:
    """Delete-one-attribute jackknife, (G − 1) / G Σ (b₋ⱼ − b)², with t(G − 1)."""
    from scipy.special import stdtrit

    groups = int(attribute.max()) + 1
    without = []
    for left_out in range(groups):
        kept = attribute != left_out
        if np.ptp(x[kept]) == 0:
            return float("nan"), float("nan")
        without.append(_line(x[kept], y[kept])[0])
    error = np.sqrt((groups - 1) / groups * ((np.array(without) - slope) ** 2).sum())
    reach = float(-stdtrit(groups - 1, alpha / 2) * error)
    return slope - reach, slope + reach


def _r2_limits(r: float, n: int, alpha: float) -> tuple[float, float]:
    """Squares of Fisher's limits of r; from 0 where they lie on both sides of it."""
    from scipy.special import ndtri

    if n < FEWEST_FOR_R2:
        return float("nan"), float("nan")
    if abs(r) >= 1:
        return 1.0, 1.0
    reach = -ndtri(alpha / 2) / np.sqrt(n - 3)
    low, high = np.tanh(np.arctanh(r) - reach), np.tanh(np.arctanh(r) + reach)
    least = 0.0 if low <= 0 <= high else min(low**2, high**2)
    return float(least), float(max(low**2, high**2))
