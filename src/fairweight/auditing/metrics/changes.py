"""Comparisons of a compressed model with its baseline: CEV, SDE, normalised changes, flips.

Blakeney et al. 2021 ("Simon Says") measure how unevenly compression changes the classes' errors:
every class has a change of its false positive rate and one of its false negative rate, relative to
the baseline's. CEV is the variance of these changes over classes, SDE their mean distance from the
diagonal dFNR = dFPR. The `_pp` forms take the changes in percentage points; they are defined for
every class.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.counts import Counts, ratio
from fairweight.auditing.metrics.rates import EVERYWHERE, error_rate, fnr, fpr
from fairweight.auditing.metrics.registry import Event, register
from fairweight.base.types import Floats
from fairweight.errors import InputError

ZeroBaseline: TypeAlias = Literal["drop", "raise", "epsilon", "absolute"]
Kept: TypeAlias = NDArray[np.bool_]

EPSILON = 1e-3  # stands in for a baseline rate of 0 under zero_baseline="epsilon"
ZERO_BASELINE_POLICIES = ("drop", "raise", "epsilon", "absolute")
comparison = partial(
    register, kind="comparison", by=("overall", "group"), better="lower", low=0, high=np.inf
)


def estimable_classes(base: Counts) -> Kept:
    """Classes whose FPR and FNR are defined: they have examples, and so do the others, (..., C)."""
    return np.asarray((base.label > 0) & (base.n[..., None] - base.label > 0))


def kept_classes(base: Counts) -> Kept:
    """Classes whose baseline FPR and FNR are both above 0, (..., C): those CEV and SDE can use.

    Decide it once on the data and pass it as `kept`, so that replicates speak of the same classes.

    >>> base = Counts(label=np.array([4.0, 4.0, 4.0]), predicted=np.array([4.0, 3.0, 5.0]),
    ...               correct=np.array([4.0, 3.0, 3.0]), abstained=np.array(0.0),
    ...               classes=("a", "b", "c"))
    >>> kept_classes(base).tolist()  # "a" has no errors, "b" no false positives
    [False, False, True]
    """
    return np.asarray((fpr(base) > 0) & (fnr(base) > 0))


def _relative_changes(
    base: Counts, compressed: Counts, zero_baseline: str, kept: Kept | None
) -> tuple[Floats, Kept]:
    """Changes in percent of (FPR, FNR), shape (2, ..., C), and the classes that take part."""
    if zero_baseline not in ZERO_BASELINE_POLICIES:
        raise InputError(
            f"zero_baseline={zero_baseline!r} is not one of "
            f"{', '.join(map(repr, ZERO_BASELINE_POLICIES))}."
        )
    relative_to_zero = {"epsilon": EPSILON, "absolute": 1.0}
    if zero_baseline == "raise" and kept is None:
        axes = tuple(range(base.label.ndim - 1))
        zero = (estimable_classes(base) & ~kept_classes(base)).any(axis=axes)
        if zero.any():
            names = ", ".join(f"'{base.classes[i]}'" for i in np.flatnonzero(zero)[:10])
            raise InputError(
                "The baseline makes no false positive or no false negative errors in class "
                f"{names}, so a relative change does not exist; use zero_baseline='drop' or cev_pp "
                "and sde_pp."
            )
    if kept is None:
        kept = (estimable_classes if zero_baseline in relative_to_zero else kept_classes)(base)
    changes = []
    for rate in (fpr, fnr):
        before = rate(base)
        whole = np.where(before == 0, relative_to_zero.get(zero_baseline, np.nan), before)
        changes.append(100 * ratio(rate(compressed) - before, whole))
    return np.stack(changes), kept


def _point_changes(base: Counts, compressed: Counts) -> tuple[Floats, Kept]:
    """Changes in percentage points of (FPR, FNR), and the classes that take part."""
    changes = np.stack([fpr(compressed) - fpr(base), fnr(compressed) - fnr(base)])
    return 100 * changes, estimable_classes(base)


def _mean_over(values: Floats, used: Kept) -> Floats:
    """Mean over the classes (last axis) where `used`; NaN without any."""
    total = np.where(used, values, 0.0).sum(axis=-1)
    return ratio(total, np.broadcast_to(used, values.shape).sum(axis=-1))


def _combined_error_variance(changes: Floats, used: Kept) -> Floats:
    centred = changes - _mean_over(changes, used)[..., None]
    variances = _mean_over(centred**2, used)  # (2, ...): of the changes of FPR and of FNR
    # The variance of a single class would be 0: a perfect value for want of anything to compare.
    return np.where(used.sum(axis=-1) >= 2, variances.mean(axis=0), np.nan)


def _symmetric_distance_error(changes: Floats, used: Kept) -> Floats:
    return _mean_over(np.abs(changes[1] - changes[0]) / np.sqrt(2), used)


_BOTH_ERRORS = "both false positives and false negatives in the baseline"


@comparison(
    label="CEV",
    summary="combined error variance: how unevenly the classes' FPR and FNR change",
    formula="(Var_c(dFPR_c) + Var_c(dFNR_c)) / 2, d = 100 (compressed - baseline) / baseline",
    source="Blakeney et al. 2021, eq. 3 (ddof 0, mean rates of the models); gives its Table 3",
    undefined=f"fewer than two classes have {_BOTH_ERRORS}",
    options={"zero_baseline"},
    relative=True,
    instead="cev_pp",
    signature="zero_baseline",
)
def cev(
    base: Counts,
    compressed: Counts,
    *,
    zero_baseline: ZeroBaseline = "drop",
    kept: Kept | None = None,
) -> Floats:
    """Combined error variance: the variance over classes of the relative changes of errors.

    Lower is better; in [0, inf), in squared percent. Not symmetric in its two models.

    Parameters
    ----------
    base, compressed
        Counts (..., C); of populations, their means (`Counts.averaged`).
    zero_baseline
        What to do with a class whose baseline FPR or FNR is 0. `drop` it from both rates, `raise`,
        put `EPSILON` in the place of the 0 (`epsilon`), or use its change in percentage points
        (`absolute`).
    kept
        Classes to use, decided beforehand (`kept_classes`); a replicate in which one of them has a
        baseline rate of 0 is NaN.

    Examples
    --------
    >>> def counts(predicted, correct):
    ...     return Counts(np.array([10.0, 10.0]), np.array(predicted), np.array(correct),
    ...                   np.array(0.0), classes=("a", "b"))
    >>> base = counts([10.0, 10.0], [8.0, 8.0])  # FPR and FNR .2 in both classes
    >>> after = counts([8.0, 12.0], [7.0, 9.0])  # FPR .1, .3; FNR .3, .1
    >>> round(float(cev(base, after)), 9)  # dFPR = -50, 50; dFNR = 50, -50: both variances 2500
    2500.0
    """
    return _combined_error_variance(*_relative_changes(base, compressed, zero_baseline, kept))


@comparison(
    label="SDE",
    summary="symmetric distance error: how far a class's FNR and FPR change differently",
    formula="mean_c |dFNR_c - dFPR_c| / sqrt(2), d = 100 (compressed - baseline) / baseline",
    source="Blakeney et al. 2021, eq. 6 (mean rates of the models); gives its Table 3",
    undefined=f"no class has {_BOTH_ERRORS}",
    inflation="absolute",
    options={"zero_baseline"},
    relative=True,
    instead="sde_pp",
    signature="zero_baseline",
)
def sde(
    base: Counts,
    compressed: Counts,
    *,
    zero_baseline: ZeroBaseline = "drop",
    kept: Kept | None = None,
) -> Floats:
    """Symmetric distance error: mean distance of the classes from the line dFNR = dFPR.

    Lower is better; in [0, inf), in percent. Parameters as of `cev`.

    >>> def counts(predicted, correct):
    ...     return Counts(np.array([10.0, 10.0]), np.array(predicted), np.array(correct),
    ...                   np.array(0.0), classes=("a", "b"))
    >>> base = counts([10.0, 10.0], [8.0, 8.0])
    >>> after = counts([8.0, 12.0], [7.0, 9.0])
    >>> round(float(sde(base, after)), 3)  # |50 - -50| / sqrt(2) in both classes
    70.711
    """
    return _symmetric_distance_error(*_relative_changes(base, compressed, zero_baseline, kept))


@comparison(
    high=10_000,
    label="CEV in points",
    summary="CEV on percentage points instead of relative changes; no class is left out",
    formula="(Var_c(dFPR_c) + Var_c(dFNR_c)) / 2, d = 100 (compressed - baseline)",
    source="fairweight, after Blakeney et al. 2021",
    undefined="fewer than two classes have examples",
)
def cev_pp(base: Counts, compressed: Counts) -> Floats:
    """CEV with changes in percentage points: defined whatever the baseline's errors.

    >>> def counts(predicted, correct):
    ...     return Counts(np.array([10.0, 10.0]), np.array(predicted), np.array(correct),
    ...                   np.array(0.0), classes=("a", "b"))
    >>> perfect = counts([10.0, 10.0], [10.0, 10.0])
    >>> after = counts([8.0, 12.0], [8.0, 10.0])  # FPR 0, .2; FNR .2, 0
    >>> round(float(cev_pp(perfect, after)), 9)  # both variances 10^2
    100.0
    """
    return _combined_error_variance(*_point_changes(base, compressed))


@comparison(
    high=200 / 2**0.5,
    label="SDE in points",
    summary="SDE on percentage points instead of relative changes; no class is left out",
    formula="mean_c |dFNR_c - dFPR_c| / sqrt(2), d = 100 (compressed - baseline)",
    source="fairweight, after Blakeney et al. 2021",
    undefined="fewer than two classes have examples",
    inflation="absolute",
)
def sde_pp(base: Counts, compressed: Counts) -> Floats:
    """SDE with changes in percentage points: defined whatever the baseline's errors.

    >>> def counts(predicted, correct):
    ...     return Counts(np.array([10.0, 10.0]), np.array(predicted), np.array(correct),
    ...                   np.array(0.0), classes=("a", "b"))
    >>> perfect = counts([10.0, 10.0], [10.0, 10.0])
    >>> after = counts([8.0, 12.0], [8.0, 10.0])
    >>> round(float(sde_pp(perfect, after)), 3)  # |20 - 0| / sqrt(2), |0 - 20| / sqrt(2)
    14.142
    """
    return _symmetric_distance_error(*_point_changes(base, compressed))


def normalized_change(before: Floats, after: Floats) -> Floats:
    """Change in percent of the value before, 100 (after - before) / before; NaN from 0.

    >>> normalized_change(np.array([0.04, 0.0]), np.array([0.05, 0.1])).round(9).tolist()
    [25.0, nan]
    """
    return 100 * ratio(np.asarray(after) - np.asarray(before), before)


@comparison(
    low=-100,
    summary="change of the error rate in percent of the baseline's",
    formula="100 (error_compressed - error_baseline) / error_baseline",
    source="Hooker et al. 2020, normalized difference (Table 3)",
    undefined="the baseline makes no errors",
    changed=Event("wrong"),
    inflation=None,
    relative=True,
    instead="error_rate",
)
def normalized_error_change(base: Counts, compressed: Counts) -> Floats:
    """Change of the error rate in percent of the baseline's.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y = [0, 0, 1, 1]
    >>> float(normalized_error_change(count_arrays(y, [0, 0, 0, 1]), count_arrays(y, [0, 0, 0, 0])))
    100.0
    """
    return normalized_change(error_rate(base), error_rate(compressed))


@comparison(
    by=EVERYWHERE,
    low=-100,
    summary="change of the false positive rate in percent of the baseline's",
    formula="100 (FPR_compressed - FPR_baseline) / FPR_baseline",
    source="Hooker et al. 2020, normalized difference (Table 3)",
    undefined="the baseline has no false positives; overall: no positive class",
    per_class=True,
    needs={"positive"},
    changed=Event("predicted", "not_label"),
    relative=True,
    instead="fpr",
)
def normalized_fpr_change(base: Counts, compressed: Counts) -> Floats:
    """Change of each class's false positive rate in percent of the baseline's, (..., C).

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y = [0, 0, 1, 1]
    >>> base, after = count_arrays(y, [0, 1, 0, 1]), count_arrays(y, [1, 1, 1, 1])
    >>> normalized_fpr_change(base, after).tolist()
    [-100.0, 100.0]
    """
    return normalized_change(fpr(base), fpr(compressed))


@comparison(
    by=EVERYWHERE,
    low=-100,
    summary="change of the false negative rate in percent of the baseline's",
    formula="100 (FNR_compressed - FNR_baseline) / FNR_baseline",
    source="Hooker et al. 2020, normalized difference (Table 3)",
    undefined="the baseline has no false negatives; overall: no positive class",
    per_class=True,
    needs={"positive"},
    changed=Event("wrong", "label"),
    relative=True,
    instead="fnr",
)
def normalized_fnr_change(base: Counts, compressed: Counts) -> Floats:
    """Change of each class's false negative rate in percent of the baseline's, (..., C).

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y = [0, 0, 1, 1]
    >>> base, after = count_arrays(y, [0, 1, 0, 1]), count_arrays(y, [1, 1, 1, 1])
    >>> normalized_fnr_change(base, after).tolist()
    [100.0, -100.0]
    """
    return normalized_change(fnr(base), fnr(compressed))


flip_metric = partial(
    register,
    kind="table",
    by=EVERYWHERE,
    low=0,
    high=1,
    undefined="no examples",
    aggregation="pairs",
    unit="share",
    is_change=True,
    choosable=False,
    signature="flips",
)
_FLIPS = "negative and positive flips (Yan et al. 2021); accuracy shift = helpful - harmful"


# Decorators run from the last to the first: tables show `flips` before the others.
@flip_metric(
    name="helpful_flips",
    better="higher",
    summary="share of examples that the baseline has wrong and the compressed model right",
    formula="N(baseline wrong, compressed right) / n",
    source=_FLIPS,
    pairs="gained",
)
@flip_metric(
    name="harmful_flips",
    better="lower",
    summary="share of examples that the baseline has right and the compressed model wrong",
    formula="N(baseline right, compressed wrong) / n",
    source=_FLIPS,
    pairs="lost",
)
@flip_metric(
    name="flips",
    better="lower",
    summary="share of examples whose prediction changed",
    formula="N(prediction of compressed != prediction of baseline) / n",
    source="prediction churn (Milani Fard et al. 2016)",
    pairs="changed",
)
def share_of_flips(flipped: Floats, n: Floats) -> Floats:
    """Share of examples whose prediction changed, was lost or was gained, from their number.

    >>> float(share_of_flips(np.array(3.0), np.array(12.0)))
    0.25
    """
    return ratio(flipped, n)


# How far the class probabilities of two models lie apart: what can be said without labels.

_distance = partial(
    register,
    kind="table",
    by=("overall", "group"),
    better="none",
    low=0,
    needs=frozenset({"scores"}),
    only_unlabelled=True,
    undefined="no class probabilities",
    aggregation="pairs",
    is_change=True,
    choosable=False,
)


@_distance(
    high=1,
    unit="number",
    label="total variation",
    summary="half the sum of absolute differences between the two models' class probabilities",
    formula="mean of sum_k |p_k - q_k| / 2, p the baseline's probabilities and q the compressed",
    source="total variation distance",
)
def total_variation(p: Floats, q: Floats) -> Floats:
    """The largest difference in probability that the two models give to any set of classes.

    >>> float(total_variation(np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.2, 0.3])).round(12))
    0.2
    """
    half: Floats = np.abs(p - q).sum(axis=-1) / 2
    return half


@_distance(
    high=np.inf,
    unit="number",
    label="Kullback–Leibler divergence",
    summary="information lost where the compressed model's probabilities stand for the baseline's",
    formula="mean of sum_k p_k log(p_k / q_k), in nats",
    source="Kullback and Leibler 1951",
)
def kl_divergence(p: Floats, q: Floats) -> Floats:
    """In nats; infinite where q is 0 and p is not.

    >>> float(kl_divergence(np.array([0.5, 0.5]), np.array([0.25, 0.75])).round(6))
    0.143841
    >>> float(kl_divergence(np.array([0.0, 1.0]), np.array([0.5, 0.5])).round(6))
    0.693147
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = np.where(p > 0, p * np.log(p / q), 0.0)
    found: Floats = np.maximum(parts.sum(axis=-1), 0.0)
    return found


@_distance(
    high=1,
    unit="share",
    label="agreement on the first choice",
    summary="share of examples to which both models give the same most probable class",
    formula="N(argmax p == argmax q) / n",
    source="top-1 agreement",
)
def first_choice_agreement(p: Floats, q: Floats) -> Floats:
    """Of equal probabilities the first class is the choice.

    >>> p, q = np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([[0.6, 0.4], [0.7, 0.3]])
    >>> float(first_choice_agreement(p, q))
    0.5
    """
    return np.asarray((p.argmax(axis=-1) == q.argmax(axis=-1)).mean(axis=-1), dtype=np.float64)
