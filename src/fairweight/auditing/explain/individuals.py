"""Who among the people (writers, patients, cameras) loses: accuracy of each, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing import schema
from fairweight.auditing.explain.properties import changes, measurements
from fairweight.auditing.explain.shrinkage import (
    effective_answers,
    share_limits,
    shift_limits,
    shrink,
)
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.types import Floats
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical, class_order
from fairweight.tables.names import MISSING

SEVERAL = "(several)"  # the group of an individual whose examples are of more than one

Codes = NDArray[np.int64]


def individuals(
    answers: Answers,
    variant: str,
    *,
    by: str = "cluster",
    group: str | None = None,
    properties: Mapping[str, ArrayLike] | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """One row per individual: raw rates, shrunken ones and their credible limits.

    Parameters
    ----------
    by
        `cluster`, or the column that says whose an example is. Examples without a value are left
        out.
    group
        Group column to name beside each individual. It takes no part in the shrinkage: nobody is
        drawn towards the mean of a group.
    properties
        Further numbers per example, in the order of the answers; the individual's mean of each,
        and of the numeric columns of the data, is a column of its own.
    alpha
        One minus the probability of the credible limits.

    Returns
    -------
    DataFrame
        `baseline, compressed, lost, gained, shift` are shares of the individual's examples, means
        over (pairs of) members; `*_shrunk` are posterior means; `rank` orders by `shift_shrunk`,
        1 loses most, equal ones share a rank.

    Notes
    -----
    The models are fixed; the limits speak of further examples of the same individual. Accuracy is
    beta-binomial, the shift Dirichlet-multinomial on (lost, gained, same); see `shrink`. With
    several members the example is the unit and its mean over members the observation, worth
    `effective_answers` answers; taking members' answers as independent would pretend to more
    examples than there are. Weights are not used.

    On average over individuals the limits cover as stated, and so they do for those ranked worst
    where all are draws from one distribution. Where a few are of another kind, they are drawn
    towards the rest, and the limits of those ranked worst say too little loss: 79–87 % instead of
    95 % (docs/statistics.md). The raw values stand beside them.
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; give a number between 0 and 1, such as 0.05.")
    every, code = _whose(answers, by)
    present, dense = np.unique(code[code >= 0], return_inverse=True)
    if not len(present):
        raise InputError(f"No example has a value in '{by}', so there are no individuals.")
    names = [every[i] for i in present]
    code = code.astype(np.int64)
    code[code >= 0] = dense
    measured = measurements(answers, properties)
    measured.pop(by, None)
    clash = sorted(set(measured) & set(schema.column_names("individuals")))
    if clash:
        raise InputError(
            f"The property '{clash[0]}' has the name of a column of the result; rename it."
        )
    known = code >= 0
    size = np.bincount(code[known], minlength=len(names)).astype(np.float64)
    changed = changes(answers, variant)

    def mean(values: Floats) -> Floats:
        """Over every individual's examples that have a value; NaN where none has."""
        there = known & ~np.isnan(values)
        total = np.bincount(code[there], values[there], minlength=len(names))
        n = np.bincount(code[there], minlength=len(names))
        found: Floats = np.divide(total, n, out=np.full(len(names), np.nan), where=n > 0)
        return found

    columns: dict[str, object] = {
        "variant": variant,
        "task": answers.task,
        "individual": names,
        "group": _groups(answers, group, code, len(names)),
        "n": size.astype(np.int64),
    }
    for side, right in (("baseline", changed.baseline), ("compressed", changed.compressed)):
        rate = mean(right)
        worth = effective_answers(rate, _within(mean(right**2), rate, size), size)
        shrunk = shrink(
            (worth * size)[:, None] * np.stack([rate, 1 - rate], axis=1), np.array([1.0, 0.0])
        )
        columns[side], columns[f"{side}_shrunk"] = rate, shrunk.mean[:, 0]
        columns[f"{side}_low"], columns[f"{side}_high"] = share_limits(shrunk, alpha)
    lost, gained = mean(changed.lost), mean(changed.gained)
    shift = gained - lost
    spread = _within(mean((changed.gained - changed.lost) ** 2), shift, size)
    worth = effective_answers(shift, spread, size, second_moment=lost + gained)
    shares = np.stack([lost, gained, np.maximum(1 - lost - gained, 0.0)], axis=1)
    shrunk = shrink((worth * size)[:, None] * shares, np.array([-1.0, 1.0, 0.0]))
    low, high = shift_limits(shrunk, alpha)
    expected = shrunk.mean[:, 1] - shrunk.mean[:, 0]
    rounded = np.round(expected, 12)  # values that are equal up to rounding errors share a rank
    columns |= {
        "lost": lost,
        "gained": gained,
        "shift": shift,
        "shift_shrunk": expected,
        "shift_low": low,
        "shift_high": high,
        "rank": 1 + np.searchsorted(np.sort(rounded), rounded),
    }
    columns |= {name: mean(values) for name, values in measured.items()}
    return pd.DataFrame(columns)[[*schema.column_names("individuals"), *measured]]


def _whose(answers: Answers, by: str) -> tuple[list[str], Codes]:
    """Names of the individuals, and whose each example is; −1 where it is not known."""
    if by == "cluster" and answers.cluster is not None:
        last = int(answers.cluster.max(initial=-1))
        return list(answers.cluster_names) or [str(i) for i in range(last + 1)], answers.cluster
    for column in answers.columns:
        if column.name == by:
            names = [MISSING if value is None else value for value in column.values]
            missing = np.array([value is None for value in column.values])
            return names, np.where(missing[column.code], -1, column.code)
    if by in answers.texts or by in answers.numbers:
        values = answers.texts[by] if by in answers.texts else answers.numbers[by]
        texts = [canonical(value) for value in values.tolist()]
        names = list(class_order(text for text in texts if text is not None))
        place: dict[str | None, int] = {name: i for i, name in enumerate(names)} | {None: -1}
        return names, np.array([place[text] for text in texts], dtype=np.int64)
    if by == "cluster":
        raise InputError(
            "The data have no cluster column, so whose an example is is unknown; name the column "
            "of individuals (by='writer') or give it as the cluster."
        )
    known = [column.name for column in answers.columns] + [*answers.texts, *answers.numbers]
    raise UnknownNameError("The column of individuals", by, known)


def _groups(answers: Answers, group: str | None, code: Codes, n: int) -> list[str | None]:
    """The level of each individual; (several) where its examples are of more than one."""
    if group is None:
        return [None] * n
    columns = {column.name: column for column in answers.columns}
    if group not in columns:
        raise UnknownNameError("The group column", group, list(columns))
    known = code >= 0
    level, whose = columns[group].code[known], code[known]
    lowest, highest = np.full(n, len(columns[group].values)), np.full(n, -1)
    np.minimum.at(lowest, whose, level)
    np.maximum.at(highest, whose, level)
    values = [MISSING if value is None else value for value in columns[group].values]
    return [
        values[low] if low == high else SEVERAL for low, high in zip(lowest, highest, strict=True)
    ]


def _within(mean_square: Floats, mean: Floats, n: Floats) -> Floats:
    """Unbiased variance over an individual's examples; 0 where there is one."""
    several = np.maximum(n - 1, 1)
    return np.maximum(mean_square - mean**2, 0.0) * n / several


# Lines through individuals: accuracy before and after against a property, per group.
#
# Table 1 of Prune Responsibly: a writer's accuracy (from 0 to 1) on the mean absolute tilt of the
# writer's digits, by ordinary least squares, within each group of writers and over all.

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
    own = schema.column_names("individuals")
    offered = [name for name in individuals.columns if name not in own]
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
    return schema.frame("individual_fits", rows)


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
