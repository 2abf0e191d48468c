"""Which properties of an example go with its right answer being lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, stdtr, stdtrit

from fairweight.auditing import schema
from fairweight.auditing.intervals.multiplicity import benjamini_hochberg
from fairweight.auditing.pairing import pair_members
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.types import Floats
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.companions import parents
from fairweight.tables.names import level_name

# Logistic regression on one number, with an intercept for every class.

_STEPS = 60  # of Newton's method; it needs five to ten unless the data are separated
_LARGEST_STEP = 2.0  # log odds per standard deviation that one step may move
_SEPARATED = 25.0  # log odds beyond which the estimate runs away
_CONVERGED = 1e-9
_MOST_LEVERAGE = 0.99  # of one unit on the slope
_ROUNDING = 1e-10  # share of a sum of squares below which nothing is left of it


@dataclass(frozen=True)
class ClassLogit:
    """The slope with its standard error, or why there is none."""

    slope: float
    std_error: float
    n_units: int  # sampled independently: clusters or examples
    skewness: float  # of the slope's score where the slope is 0; near 0, the error is normal
    status: str  # ok, "constant" or "separated"


def class_logit(
    x: Floats,
    events: Floats,
    trials: Floats,
    label: NDArray[np.integer],
    unit: NDArray[np.int64] | None = None,
) -> ClassLogit:
    """Log odds of an event per unit of x, adjusted for the class.

    Parameters
    ----------
    x
        (n,) finite; of about unit spread.
    events, trials
        (n,) events among trials, 0 ≤ events ≤ trials. They need not be whole: shares over
        members, weights.
    label
        (n,) class of every row. Classes in which every trial or none is an event say nothing
        about the slope and are left out, which is the limit of their maximum likelihood.
    unit
        (n,) what is sampled independently; None where each row is a single trial of its own, and
        the information of the model itself gives the error.

    Notes
    -----
    Maximum likelihood by Newton's method. The class intercepts' part of the information matrix is
    diagonal, so that a thousand classes cost what one does. With units the variance is the
    sandwich (G − 1) / G Σ (s_g / (1 − h_g))² / I², with the sums s_g of scores and the shares h_g
    of the information I: nearly the jackknife that leaves out one unit at a time. Without the
    h_g it finds too much where a few units have most of a property.
    """
    n_classes = int(label.max(initial=-1)) + 1
    had, asked = (np.bincount(label, v, minlength=n_classes) for v in (events, trials))
    mixed = ((had > 0) & (had < asked))[label] & (trials > 0)
    undefined = ClassLogit(np.nan, np.nan, 0, np.nan, "constant")
    if not mixed.any():
        return undefined
    kept, label = np.unique(label[mixed], return_inverse=True)
    x, events, trials = x[mixed], events[mixed], trials[mixed]
    intercept = np.log(had[kept] / (asked - had)[kept])
    slope, skewness = 0.0, np.nan
    for step in range(_STEPS):
        chance = expit(intercept[label] + slope * x)
        residual = events - trials * chance
        variance = trials * chance * (1 - chance)
        weight = np.bincount(label, variance)
        towards = np.bincount(label, variance * x)
        if weight.min() <= 0:
            return ClassLogit(np.nan, np.nan, 0, skewness, "separated")
        away = x - (towards / weight)[label]  # what the classes leave of x
        information = float(variance @ away**2)
        if step == 0:
            if information <= _ROUNDING * float(variance @ x**2):
                return undefined
            skewness = float((variance * (1 - 2 * chance)) @ away**3) / information**1.5
        pull = np.bincount(label, residual)
        move = np.clip(float(residual @ away) / information, -_LARGEST_STEP, _LARGEST_STEP)
        shifts = (pull - towards * move) / weight
        slope += move
        intercept = intercept + np.clip(shifts, -2 * _LARGEST_STEP, 2 * _LARGEST_STEP)
        if abs(slope) > _SEPARATED:
            break
        if abs(move) < _CONVERGED and np.abs(shifts).max() < _CONVERGED:
            units, error = _error(
                residual * away, variance * away**2, None if unit is None else unit[mixed]
            )
            return ClassLogit(slope, error, units, skewness, "ok")
    return ClassLogit(np.nan, np.nan, 0, skewness, "separated")


def _error(score: Floats, part: Floats, unit: NDArray[np.int64] | None) -> tuple[int, float]:
    """Number of units and standard error, from each row's score and its part of the information."""
    information = float(part.sum())
    if unit is None:
        return len(score), information**-0.5
    _, place = np.unique(unit, return_inverse=True)
    n = int(place.max()) + 1
    leverage = np.minimum(np.bincount(place, part) / information, _MOST_LEVERAGE)
    without = np.bincount(place, score) / (1 - leverage)
    return n, float(np.sqrt((n - 1) / n * (without @ without))) / information


# What became of every example's answers: right before, right after, lost, gained.


@dataclass(frozen=True)
class Changes:
    """Per example, the share of the pairs of members in which it is so; 0 or 1 with one pair."""

    baseline: Floats  # (n,): the baseline's member is right
    compressed: Floats  # (n,)
    lost: Floats  # (n,): right before, wrong after
    gained: Floats  # (n,): wrong before, right after
    n_pairs: int


def changes(answers: Answers, variant: str) -> Changes:
    """Compare the members of a variant with those of the baseline that they belong to.

    Members are paired by parent or seed, else each with each, so that `gained` − `lost` is
    `compressed` − `baseline` on every example.
    """
    if variant == answers.baseline:
        raise InputError(
            f"The variant '{variant}' is the baseline itself; name a compressed one: "
            f"{', '.join(answers.variants)}."
        )
    first, second = answers.correct(answers.baseline), answers.correct(variant)
    pairing = pair_members(
        answers.members[answers.rows(answers.baseline)],
        answers.members[answers.rows(variant)],
        parents(answers.variants_table),
    )
    if pairing.how == "independent":
        before, after = first.mean(axis=0), second.mean(axis=0)
        return Changes(
            before, after, before * (1 - after), (1 - before) * after, len(first) * len(second)
        )
    parent, child = np.array(pairing.pairs).T
    right, still = first[parent], second[child - len(first)]
    return Changes(
        right.mean(axis=0),
        still.mean(axis=0),
        (right & ~still).mean(axis=0),
        (still & ~right).mean(axis=0),
        len(parent),
    )


# Numbers known of every example: those that came with the answers, and those measured since.


def measurements(answers: Answers, properties: Mapping[str, ArrayLike] | None) -> dict[str, Floats]:
    """The numeric columns of the answers and the given properties, one value per example.

    Properties stand in the order of `answers.example_id`; infinite values count as missing.
    """
    found: dict[str, Floats] = {}
    for name, values in (*answers.numbers.items(), *(properties or {}).items()):
        if name in found:
            raise InputError(
                f"The property '{name}' is a column of the data already; give it another name."
            )
        try:
            column = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"The property '{name}' is not made of numbers; give text as a group column."
            ) from None
        if column.shape != (answers.n_examples,):
            raise InputError(
                f"The property '{name}' has shape {column.shape} for {answers.n_examples} "
                "examples; give one value per example, in the order of the answers."
            )
        found[name] = np.where(np.isfinite(column), column, np.nan)
    return found


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
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; give a number between 0 and 1, such as 0.05.")
    known = {column.name: column for column in answers.columns}
    for name in columns or ():
        if name not in known:
            raise UnknownNameError("The group column", name, list(known))
    changed = changes(answers, variant)
    weight = 1.0 if answers.weight is None else answers.weight
    unit = answers.cluster
    if unit is None and (changed.n_pairs > 1 or answers.weight is not None):
        unit = np.arange(answers.n_examples)
    asked = _RightAnswers(
        weight * changed.lost,
        weight * changed.baseline,
        answers.label.astype(np.int64),
        unit,
        answers.cluster is not None,
    )
    rows = [
        {"property": name, "kind": PER_DEVIATION} | _of_number(asked, values, alpha)
        for name, values in measurements(answers, properties).items()
    ]
    for column in (known[name] for name in (known if columns is None else columns)):
        if len(column.values) > MOST_LEVELS:
            status = f"not_estimable: {len(column.values)} levels"
            rows.append({"property": column.name, "kind": LEVEL} | _nothing(0, status))
            continue
        missing = np.array([value is None for value in column.values])[column.code]
        for place, value in enumerate(column.values):
            if value is not None:
                inside = np.where(missing, np.nan, (column.code == place).astype(np.float64))
                found = _association(asked, inside, alpha)
                name = level_name(column.name, value)
                rows.append({"property": name, "kind": LEVEL} | found)
    frame = schema.frame("example_properties", rows)
    frame["variant"] = variant
    frame["p_adjusted"] = benjamini_hochberg(frame["p_value"].to_numpy(np.float64))
    return frame


@dataclass(frozen=True)
class _RightAnswers:
    """Examples that the baseline has right, and what became of them."""

    lost: Floats  # (n,) share of pairs (times weight) in which the right answer was lost
    right: Floats  # (n,) share of pairs (times weight) in which there was one to lose
    label: NDArray[np.integer]
    unit: NDArray[np.int64] | None  # None: single answers, independent
    clustered: bool


def _of_number(asked: _RightAnswers, values: Floats, alpha: float) -> Row:
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


def _association(asked: _RightAnswers, x: Floats, alpha: float) -> Row:
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
