"""Does bias go along with how far representations moved? Variants as points, a line per block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr, stdtrit

from fairweight.auditing import schema
from fairweight.auditing.metrics import metric as registered
from fairweight.auditing.result import AuditResult
from fairweight.base.types import Floats
from fairweight.errors import InputError

# A straight line over a few variants, with everything a reader needs to distrust it.

FEWEST = 4  # Fisher's z has n − 3 in its variance
_NAN = float("nan")
_EQUAL = 1e-12  # means of equal values over members differ by rounding


@dataclass(frozen=True)
class Regression:
    """Least squares of a bias metric on a distance; NaN with a reason in `status` if undefined.

    `residual_sd`, `mean_distance` and `spread` (the sum of squares of distances about their mean)
    are what `band` needs.
    """

    n: int
    slope: float = _NAN
    slope_low: float = _NAN
    slope_high: float = _NAN
    intercept: float = _NAN
    correlation: float = _NAN
    correlation_low: float = _NAN
    correlation_high: float = _NAN
    p_value: float = _NAN
    status: str = "ok"
    alpha: float = 0.05
    residual_sd: float = _NAN
    mean_distance: float = _NAN
    spread: float = _NAN


def regress(distance: ArrayLike, bias: ArrayLike, *, alpha: float = 0.05) -> Regression:
    """The line of `bias` on `distance`, one value of each per variant.

    Parameters
    ----------
    distance, bias
        Of the same variants in the same order; a variant that lacks either is left out.
    alpha
        One minus the confidence of the intervals.

    Notes
    -----
    The slope has a t interval with n − 2 degrees of freedom, Pearson's correlation Fisher's
    interval; the p-value is that of both (t test of slope = 0, two-sided). Variants are taken as
    independent draws, which they are not where they share dense models: the intervals may then
    be too narrow. Undefined with fewer than 4 variants, and where either side is constant.

    Examples
    --------
    >>> line = regress([1, 2, 3, 4], [2, 4, 5, 9])
    >>> round(line.slope, 6), round(line.intercept, 6), round(line.correlation, 4)
    (2.2, -0.5, 0.9648)
    >>> regress([1, 2, 3], [2, 4, 5]).status
    'not_estimable: 3 variants, 4 are needed'
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha cannot be {alpha!r}; give a level between 0 and 1, such as 0.05.")
    sides = []
    for name, given in (("distance", distance), ("bias", bias)):
        try:
            values = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"{name} must hold numbers, one per variant; got {given!r}.") from None
        if values.ndim != 1:
            raise InputError(
                f"{name} has the shape {values.shape}; give one number per variant, shape (n,)."
            )
        sides.append(values)
    x, y = sides
    if len(x) != len(y):
        raise InputError(
            f"distance has {len(x):,} values and bias {len(y):,}; give both for the same variants."
        )
    known = np.isfinite(x) & np.isfinite(y)
    x, y, n = x[known], y[known], int(known.sum())
    if n < FEWEST:
        counted = "1 variant" if n == 1 else f"{n} variants"
        return Regression(n, status=f"not_estimable: {counted}, {FEWEST} are needed", alpha=alpha)
    for values, words in ((x, "the distances"), (y, "the values")):
        if np.ptp(values) <= _EQUAL * np.abs(values).max():
            return Regression(n, status=f"not_estimable: {words} are all equal", alpha=alpha)
    away, up = x - x.mean(), y - y.mean()
    spread, height = float(away @ away), float(up @ up)
    slope = float(away @ up) / spread
    r = float(np.clip(away @ up / np.sqrt(spread * height), -1, 1))
    residual_sd = float(np.sqrt(((up - slope * away) ** 2).sum() / (n - 2)))
    error = residual_sd / np.sqrt(spread)
    reach = float(-stdtrit(n - 2, alpha / 2) * error)
    low, high = fisher_limits(r, n, alpha)
    return Regression(
        n=n,
        slope=slope,
        slope_low=slope - reach,
        slope_high=slope + reach,
        intercept=float(y.mean() - slope * x.mean()),
        correlation=r,
        correlation_low=low,
        correlation_high=high,
        p_value=float(2 * stdtr(n - 2, -abs(slope) / error)) if error > 0 else 0.0,
        alpha=alpha,
        residual_sd=residual_sd,
        mean_distance=float(x.mean()),
        spread=spread,
    )


def band(line: Regression, at: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """The line at these distances, and the limits of its mean there (not of a new variant).

    >>> line = regress([1, 2, 3, 4], [2, 4, 5, 9])
    >>> middle, low, high = band(line, [2.5])
    >>> round(float(middle[0]), 6), bool(low[0] < middle[0] < high[0])
    (5.0, True)
    """
    x = np.asarray(at, dtype=np.float64)
    middle = line.intercept + line.slope * x
    error = line.residual_sd * np.sqrt(1 / line.n + (x - line.mean_distance) ** 2 / line.spread)
    reach = -stdtrit(line.n - 2, line.alpha / 2) * error
    return middle, middle - reach, middle + reach


def fisher_limits(r: float, n: int, alpha: float) -> tuple[float, float]:
    """Limits of a correlation of n pairs by Fisher's z; itself where it is 1 or −1."""
    if abs(r) >= 1:
        return r, r
    reach = -ndtri(alpha / 2) / np.sqrt(n - 3)
    return float(np.tanh(np.arctanh(r) - reach)), float(np.tanh(np.arctanh(r) + reach))


__all__ = ["MEASURES", "METRICS", "Regression", "distance_columns", "regress",
           "similarity", "similarity_points"]  # fmt: skip

MEASURES = ("svcca", "cka")
METRICS = ("cev", "sde", "accuracy")


def distance_columns(variants_table: pd.DataFrame | None) -> list[tuple[str, str]]:
    """The (measure, block) pairs whose distances a variants table holds, in its order.

    >>> import pandas as pd
    >>> distance_columns(pd.DataFrame(columns=["variant", "svcca.block1", "svcca_status"]))
    [('svcca', 'block1')]
    """
    names = [] if variants_table is None else [str(name) for name in variants_table.columns]
    return [
        (measure, name.removeprefix(f"{measure}."))
        for measure in MEASURES
        for name in names
        if name.startswith(f"{measure}.")
    ]


def similarity_points(result: AuditResult) -> pd.DataFrame:
    """Each variant's mean distance to its own dense models beside its bias, per measure and block.

    Notes
    -----
    `floor` is the mean distance between dense models: what retraining alone gives. A member
    without a distance takes no part in the mean. CEV and SDE are as published, of scope `model`,
    and NaN where the audit cannot estimate them.
    """
    columns = distance_columns(result.variants_table)
    names = list(schema.column_names("similarity_points"))
    table = result.variants_table
    if table is None or not columns:
        return pd.DataFrame(columns=names)
    whose = table["variant"].astype(str)
    rows = result.results
    whole = rows[
        (rows["by"] == "overall")
        & (rows["scope"].fillna("model") == "model")
        & rows["task"].isna()
        & (rows["status"].fillna("ok") == "ok")
    ]
    values = {
        metric: whole[whole["metric"] == metric].set_index("variant")["compressed"]
        for metric in METRICS
    }
    sparsity = _means(table, whose, "sparsity")
    points = []
    for measure, block in columns:
        distance = _means(table, whose, f"{measure}.{block}")
        for variant in result.variants:
            points.append(
                {
                    "measure": measure,
                    "block": block,
                    "variant": variant,
                    "distance": distance.get(variant),
                    "floor": distance.get(result.baseline),
                    **{metric: values[metric].get(variant) for metric in METRICS},
                    "sparsity": sparsity.get(variant),
                }
            )
    numbers = names[names.index("distance") :]
    return pd.DataFrame(points, columns=names).astype(dict.fromkeys(numbers, "float64"))


def similarity(points: pd.DataFrame, *, alpha: float = 0.05) -> pd.DataFrame:
    """The line of every bias metric on every distance, over the variants.

    Parameters
    ----------
    points
        As `similarity_points` makes them.

    Notes
    -----
    An association over variants: what moves representations (sparsity, above all) also moves
    errors, and variants made from the same dense models are not independent. Rows with fewer than
    4 variants, equal distances or an undefined metric are NaN, and `status` says why.
    """
    rows = []
    for (measure, block), own in points.groupby(["measure", "block"], sort=False):
        for metric in METRICS:
            line = regress(own["distance"].to_numpy(), own[metric].to_numpy(), alpha=alpha)
            lacking = own.loc[own[["distance", metric]].isna().any(axis=1), "variant"].tolist()
            status = line.status
            if lacking:
                more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
                some = ", ".join(lacking[:3]) + more
                label = registered(metric).label
                left_out = f"left out for want of a distance or {label}: {some}"
                status = left_out if status == "ok" else f"{status} ({left_out})"
            rows.append(
                {
                    "measure": measure,
                    "block": block,
                    "metric": metric,
                    "n_variants": line.n,
                    "slope": line.slope,
                    "slope_low": line.slope_low,
                    "slope_high": line.slope_high,
                    "correlation": line.correlation,
                    "correlation_low": line.correlation_low,
                    "correlation_high": line.correlation_high,
                    "p_value": line.p_value,
                    "status": status,
                }
            )
    return schema.frame("similarity", rows)


def _means(table: pd.DataFrame, whose: pd.Series, column: str) -> dict[str, float]:
    """The mean over members of each variant; variants without any value are NaN."""
    if column not in table.columns:
        return {}
    values = pd.to_numeric(table[column], errors="coerce").astype("float64")
    return {str(name): float(mean) for name, mean in values.groupby(whose).mean().items()}
