"""Which properties of an example go with its right answer being lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.cube import GroupColumn
from fairweight.auditing.counts.groupings import level_name
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.explain.changed_answers import changes
from fairweight.auditing.explain.class_logit import class_logit
from fairweight.auditing.explain.measurements import measurements
from fairweight.auditing.explain.tables import COLUMNS
from fairweight.auditing.intervals.correction import benjamini_hochberg
from fairweight.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

FEWEST_LOSSES = 10  # and as many that were kept
FEWEST_CLUSTERS = 20
MOST_LEVELS = 50  # of a group column; one with more names individuals

# Of the score of a slope of 0. A level in which λ losses are expected has 1 / √λ: five of them.
MOST_SKEWED = 5**-0.5

Row = dict[str, Any]

PER_DEVIATION = "per standard deviation"
LEVEL = "level"


def example_properties(
    answers: Answers,
    variant: str,
    properties: Mapping[str, ArrayLike] | None = None,
    *,
    columns: Sequence[str] | None = None,
    alpha: float = 0.05,
) -> pd.DataFrame:
    """Log odds of losing a right answer, one property at a time, adjusted for the class.

    Parameters
    ----------
    properties
        Numbers per example, in the order of the answers; numeric columns of the data are added.
    columns
        Group columns, each level against the others of its column; all of them if not given.
    alpha
        One minus the confidence of the limits.

    Returns
    -------
    DataFrame
        `effect` is per standard deviation of a number (over the examples that were asked), or of a
        level against the others; `n` counts examples that the baseline has right (by any member)
        and that have a value; `mean_lost, mean_kept` are in the property's own units. `p_adjusted`
        is Benjamini and Hochberg's over all rows: they are exploratory.

    Notes
    -----
    Every pair of members asks each example that its baseline member has right: was it lost? With
    one pair and independent examples this is plain logistic regression with a dummy per class;
    errors are those of the model, z. With several pairs, clusters or weights the shares are
    regressed likewise, and errors are the sandwich over clusters (or examples; `class_logit`), t
    with G − 1 degrees of freedom. The effect is an association within classes, not a cause;
    properties that go together each show what they share.

    Not estimable: fewer than 10 losses (or answers kept; several members' losses count as their
    effective number), fewer than 20 clusters, a property that is constant within classes or
    separates losses, and one so unevenly spread that the normal approximation fails (a level in
    which fewer than about 5 losses are expected).
    Measured level and power: docs/statistics.md.
    """
    import pandas as pd

    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; give a number between 0 and 1, such as 0.05.")
    asked = _asked(answers, variant)
    rows = [
        {"property": name, "kind": PER_DEVIATION} | _of_number(asked, values, alpha)
        for name, values in measurements(answers, properties).items()
    ]
    for column in _chosen(answers, columns):
        if len(column.values) > MOST_LEVELS:
            status = f"not_estimable: {len(column.values)} levels"
            rows.append({"property": column.name, "kind": LEVEL} | _nothing(0, status))
            continue
        for name, inside in _levels(column):
            rows.append({"property": name, "kind": LEVEL} | _association(asked, inside, alpha))
    frame = pd.DataFrame(rows, columns=list(COLUMNS["example_properties"]))
    frame["variant"] = variant
    frame["p_adjusted"] = benjamini_hochberg(frame["p_value"].to_numpy(np.float64))
    return frame


@dataclass(frozen=True)
class _Asked:
    """Examples that the baseline has right, and what became of them."""

    lost: Floats  # (n,) share of pairs (times weight) in which the right answer was lost
    right: Floats  # (n,) share of pairs (times weight) in which there was one to lose
    label: NDArray[np.integer]
    unit: NDArray[np.int64] | None  # None: single answers, independent
    clustered: bool


def _asked(answers: Answers, variant: str) -> _Asked:
    changed = changes(answers, variant)
    weight = 1.0 if answers.weight is None else answers.weight
    unit = answers.cluster
    if unit is None and (changed.n_pairs > 1 or answers.weight is not None):
        unit = np.arange(answers.n_examples)
    return _Asked(
        weight * changed.lost,
        weight * changed.baseline,
        answers.label.astype(np.int64),
        unit,
        answers.cluster is not None,
    )


def _chosen(answers: Answers, names: Sequence[str] | None) -> list[GroupColumn]:
    known = {column.name: column for column in answers.columns}
    for name in names or ():
        if name not in known:
            raise UnknownNameError("The group column", name, list(known))
    return list(known.values()) if names is None else [known[name] for name in names]


def _levels(column: GroupColumn) -> Iterator[tuple[str, Floats]]:
    """Every level's name with who is in it; NaN where the value is missing."""
    missing = np.array([value is None for value in column.values])[column.code]
    for place, value in enumerate(column.values):
        if value is not None:
            yield (
                level_name(column.name, value),
                np.where(missing, np.nan, (column.code == place).astype(np.float64)),
            )


def _of_number(asked: _Asked, values: Floats, alpha: float) -> Row:
    """The association per standard deviation."""
    there = (asked.right > 0) & ~np.isnan(values)
    if not there.any():
        return _nothing(0, "not_estimable: no right answer with a value")
    middle = np.average(values[there], weights=asked.right[there])
    spread = np.sqrt(np.average((values[there] - middle) ** 2, weights=asked.right[there]))
    if not spread > 1e-12 * abs(middle):
        return _nothing(int(there.sum()), "not_estimable: the property is constant")
    found = _association(asked, (values - middle) / spread, alpha)
    for name in ("mean_lost", "mean_kept"):
        found[name] = middle + spread * found[name]
    return found


def _association(asked: _Asked, x: Floats, alpha: float) -> Row:
    there = (asked.right > 0) & ~np.isnan(x)
    x, lost, right = x[there], asked.lost[there], asked.right[there]
    unit = None if asked.unit is None else asked.unit[there]
    found = _nothing(len(x), "ok")
    kept = right - lost
    losses, keeps = _effective(lost), _effective(kept)
    if losses > 0:
        found["mean_lost"] = float(np.average(x, weights=lost))
    if keeps > 0:
        found["mean_kept"] = float(np.average(x, weights=kept))
    if losses < FEWEST_LOSSES or keeps < FEWEST_LOSSES:
        few, what = min((losses, "lost"), (keeps, "kept"))
        return found | {"status": f"not_estimable: {few:.0f} right answers {what}"}
    fit = class_logit(x, lost, right, asked.label[there], unit)
    if fit.status == "constant":
        return found | {"status": "not_estimable: the property is constant within classes"}
    # Shares of several pairs come in smaller portions than single losses: less skewed by as much.
    if abs(fit.skewness) * np.sqrt(lost.sum() / losses) > MOST_SKEWED:
        return found | {"status": "not_estimable: too few losses for so uneven a property"}
    if fit.status == "separated":
        return found | {"status": "not_estimable: the property separates losses"}
    if asked.clustered and fit.n_units < FEWEST_CLUSTERS:
        return found | {"status": f"not_estimable: {fit.n_units} clusters"}
    if not fit.std_error > 0:
        return found | {"status": "not_estimable: the losses leave no spread to judge by"}
    freedom = np.inf if unit is None else fit.n_units - 1.0
    reach = float(stdtrit(freedom, 1 - alpha / 2)) * fit.std_error
    return found | {
        "effect": fit.slope,
        "low": fit.slope - reach,
        "high": fit.slope + reach,
        "p_value": 2 * float(stdtr(freedom, -abs(fit.slope) / fit.std_error)),
    }


def _effective(amounts: Floats) -> float:
    """How many equal amounts are worth these (Kish): a plain count where all are 0 or 1."""
    square = float(amounts @ amounts)
    return float(amounts.sum()) ** 2 / square if square > 0 else 0.0


def _nothing(n: int, status: str) -> Row:
    names = ("effect", "low", "high", "p_value", "mean_lost", "mean_kept")
    return {"n": n, "status": status} | {name: float("nan") for name in names}
