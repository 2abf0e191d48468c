"""Lines through individuals: accuracy before and after against a property, per group.

Table 1 of Prune Responsibly: a writer's accuracy (from 0 to 1) on the mean absolute tilt of the
writer's digits, by ordinary least squares, within each group of writers and over all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.explain.tables import COLUMNS
from fairweight.errors import UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

SIDES = ("baseline", "compressed", "shift")
FEWEST = 4  # individuals below which a line and its errors mean nothing


def individual_fits(
    individuals: pd.DataFrame,
    properties: Sequence[str] | None = None,
    *,
    sides: Sequence[str] = SIDES[:2],
) -> pd.DataFrame:
    """Slope and intercept of every side on every property, in each group and over all.

    Parameters
    ----------
    individuals
        As `individuals` returns it.
    properties
        Which of its property columns; all of them if not given.
    sides
        Of `baseline`, `compressed` and `shift` (the change of accuracy): raw rates, as in the
        paper. Shrunken ones would flatten the slopes.

    Returns
    -------
    DataFrame
        `group` is empty in the rows over all individuals.

    Notes
    -----
    Every individual counts once. Standard errors are HC3 (MacKinnon and White 1985), because
    accuracies near 1 from 8 or 130 examples scatter differently. The slope is an association
    among these individuals.
    """
    import pandas as pd

    offered = [name for name in individuals.columns if name not in COLUMNS["individuals"]]
    wanted = offered if properties is None else list(properties)
    for name in wanted:
        if name not in offered:
            raise UnknownNameError("The property", name, offered)
    for side in sides:
        if side not in SIDES:
            raise UnknownNameError("The side", side, SIDES)
    rows = []
    for variant, part in individuals.groupby("variant", sort=False):
        groups = [*sorted(part["group"].dropna().unique()), None]
        for side in sides:
            for name in wanted:
                for group in groups:
                    chosen = part if group is None else part[part["group"] == group]
                    line = fit_line(
                        chosen[name].to_numpy(np.float64), chosen[side].to_numpy(np.float64)
                    )
                    told = {"variant": variant, "side": side, "group": group, "property": name}
                    rows.append(told | line)
    return pd.DataFrame(rows, columns=list(COLUMNS["individual_fits"]))


def fit_line(x: Floats, y: Floats) -> dict[str, Any]:
    """Least squares of y on x with HC3 errors; pairs with a missing value are left out.

    Examples
    --------
    Points (0, 0), (1, 1), (2, 1), (3, 2): slope Σ(x − 1.5)(y − 1) / Σ(x − 1.5)² = 3 / 5,
    intercept 1 − 0.6 · 1.5 = 0.1, residuals −.1, .3, −.3, .1, so R² = 1 − 0.2 / 2.

    >>> line = fit_line(np.array([0.0, 1, 2, 3]), np.array([0.0, 1, 1, 2]))
    >>> {name: round(line[name], 3) for name in ("slope", "intercept", "r2")}
    {'slope': 0.6, 'intercept': 0.1, 'r2': 0.9}
    """
    there = ~(np.isnan(x) | np.isnan(y))
    x, y = x[there], y[there]
    names = ("slope", "slope_se", "intercept", "intercept_se", "r2")
    undefined: dict[str, Any] = {name: float("nan") for name in names}
    undefined["n"] = len(x)
    if len(x) < FEWEST:
        return undefined | {"status": f"not_estimable: {len(x)} individuals"}
    middle = float(x.mean())
    away = x - middle
    spread = float(away @ away)
    if spread <= len(x) * (1e-12 * max(abs(middle), 1e-300)) ** 2:
        return undefined | {"status": "not_estimable: the property is constant"}
    slope = float(away @ y) / spread
    intercept = float(y.mean()) - slope * middle
    residual = y - intercept - slope * x
    leverage = 1 / len(x) + away**2 / spread
    line = undefined | {"slope": slope, "intercept": intercept, "status": "ok"}
    total = float(((y - y.mean()) ** 2).sum())
    if total > 0:
        line["r2"] = 1 - float(residual @ residual) / total
    if leverage.max() > 1 - 1e-9:
        return line | {"status": "no standard error: one individual decides the slope"}
    squared = (residual / (1 - leverage)) ** 2
    line["slope_se"] = float(np.sqrt(squared @ away**2)) / spread
    line["intercept_se"] = float(np.sqrt(squared @ (1 / len(x) - middle * away / spread) ** 2))
    return line
