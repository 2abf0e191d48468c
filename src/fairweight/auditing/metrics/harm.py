"""How unevenly classes and groups fare: spread over classes, and who pays for a compression.

The functions here are the point estimates. Intervals, tests and reference values belong to a whole
variant and are computed in `auditing/compare`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing.counts.counts import Counts, ratio
from fairweight.auditing.metrics.rates import accuracy, mean_over_present, recall
from fairweight.auditing.metrics.registry import Event, register
from fairweight.base.types import Floats
from fairweight.errors import InputError


def _lowest_recall(counts: Counts) -> Floats:
    lowest: Floats = np.where(counts.present, recall(counts), np.inf).min(axis=-1)
    return lowest


def _where_two_classes(values: Floats, counts: Counts) -> Floats:
    return np.where(counts.n_present >= 2, values, np.nan)


@register(
    kind="value",
    by=("overall", "group"),
    better="lower",
    low=0,
    high=1,
    label="gap between classes",
    summary="highest minus lowest class accuracy",
    formula="max_c recall_c - min_c recall_c over classes with examples",
    source="Paganini 2020, Fig. 4a (unfairness)",
    undefined="fewer than two classes have examples",
    changed=Event("correct", "label"),
    unit="share",
)
def class_gap(counts: Counts) -> Floats:
    """Highest minus lowest recall among the classes with examples.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> float(class_gap(count_arrays([0, 0, 1, 1], [0, 1, 1, 1])))
    0.5
    """
    highest = np.where(counts.present, recall(counts), -np.inf).max(axis=-1)
    with np.errstate(invalid="ignore"):
        return _where_two_classes(highest - _lowest_recall(counts), counts)


@register(
    kind="value",
    by=("overall", "group"),
    better="lower",
    low=0,
    high=1,
    summary="mean minus lowest class accuracy",
    formula="mean_c recall_c - min_c recall_c over classes with examples",
    source="Paganini 2020, Fig. 4b (unfairness); the mean is unweighted",
    undefined="fewer than two classes have examples",
    changed=Event("correct", "label"),
    unit="share",
)
def class_shortfall(counts: Counts) -> Floats:
    """Unweighted mean minus lowest recall among the classes with examples.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> float(class_shortfall(count_arrays([0, 0, 1, 1], [0, 1, 1, 1])))  # (.5 + 1) / 2 - .5
    0.25
    """
    mean = mean_over_present(recall(counts), counts)
    return _where_two_classes(mean - _lowest_recall(counts), counts)


WORST_GROUP_SHIFT = "worst_group_shift"  # its name, wherever its rows are looked for


def worst_shift_level(base: Counts, compressed: Counts) -> NDArray[np.intp]:
    """Index of the level whose accuracy fell most (the first of equals); -1 where undefined."""
    shift = accuracy(compressed) - accuracy(base)
    if shift.shape[-1] < 1:
        return np.full(shift.shape[:-1], -1, dtype=np.intp)
    return np.where(np.isnan(shift).any(axis=-1), -1, shift.argmin(axis=-1))


@register(
    name=WORST_GROUP_SHIFT,
    kind="table",
    by=("grouping",),
    better="higher",
    low=-1,
    high=1,
    label="worst-group shift",
    summary="lowest accuracy shift of any group, with the group's name",
    formula="min_g (accuracy_g of compressed - accuracy_g of baseline)",
    source="fairweight (interval: minimum of simultaneous Tango limits)",
    undefined="no usable level",
    level=worst_shift_level,
    aggregation="rates_first",
    unit="points",
    of="accuracy",
    is_change=True,
    signature="pair_by_group",
)
def worst_group_shift(base: Counts, compressed: Counts) -> Floats:
    """Lowest accuracy shift over the levels, counts (..., L, C); `worst_shift_level` says whose.

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, sex = [0, 1, 0, 1], ["f", "f", "m", "m"]
    >>> base = count_arrays(y, [0, 1, 0, 0], sensitive_features=sex)
    >>> after = count_arrays(y, [0, 0, 0, 1], sensitive_features=sex)
    >>> float(worst_group_shift(base, after)), int(worst_shift_level(base, after))
    (-0.5, 0)
    """
    shift = accuracy(compressed) - accuracy(base)
    if shift.shape[-1] < 1:
        return np.full(shift.shape[:-1], np.nan)
    return np.asarray(shift.min(axis=-1))


@register(
    kind="table",
    by=("group",),
    better="higher",
    low=-2,
    high=2,
    summary="excess shift with every label weighted equally in the group and in the others",
    formula="mean over labels c in both of (recall shift_gc - recall shift of the others_c)",
    source="direct standardisation, against Simpson's paradox",
    undefined="no label has examples both in the group and in the others",
    unit="points",
    is_change=True,
    choosable=False,
    signature="pair_by_group",
)
def excess_shift_standardised(base: Counts, compressed: Counts) -> Floats:
    """Each level's shift minus that of all others, label by label, averaged over labels: (..., L).

    A group of mostly hard labels loses more even if no label treats it worse; equal weights of the
    labels take that away. Labels without examples on either side are left out. Below 0 the group
    pays more than the others; in [-2, 2].

    >>> from fairweight.auditing.metrics.arrays import count_arrays
    >>> y, sex = [0, 0, 1, 0, 1, 1], ["f", "f", "f", "m", "m", "m"]
    >>> base = count_arrays(y, y, sensitive_features=sex)
    >>> after = count_arrays(y, [0, 0, 0, 0, 0, 0], sensitive_features=sex)  # every 1 is lost
    >>> excess_shift_standardised(base, after).tolist()
    [0.0, 0.0]
    """
    own = recall(compressed) - recall(base)
    lost = compressed.correct - base.correct
    others_change = lost.sum(axis=-2, keepdims=True) - lost
    others_label = base.label.sum(axis=-2, keepdims=True) - base.label
    both = (base.label > 0) & (others_label > 0)
    difference = np.where(both, own - ratio(others_change, others_label), 0.0)
    return ratio(difference.sum(axis=-1), both.sum(axis=-1))


@register(
    kind="table",
    by=("grouping",),
    better="lower",
    low=0,
    high=np.inf,
    summary="does the change differ between the groups: largest z of a group's excess",
    formula="max_g z_g, z_g where the limits of the excess touch 0; p from random signs",
    source="fairweight (random signs on scores centred at the shift of all)",
    undefined="fewer than two groups of the least size",
    directed=False,
    choosable=False,
    instead="group_gap",
)
def heterogeneity(excess_p: Floats) -> Floats:
    """Largest z of an excess over the groups (last axis), from the p of every excess.

    Lower means more alike; in [0, inf). Its p-value comes from random signs, which keep every
    group's own churn. NaN where no excess has a p.

    >>> float(heterogeneity(np.array([0.05, 0.5])).round(2))
    1.96
    """
    # With scipy, which counting does without.
    from fairweight.auditing.intervals.excess import normal_z

    return _largest(normal_z(excess_p))


@register(
    kind="table",
    by=("grouping",),
    better="lower",
    low=0,
    high=np.inf,
    summary="does the change differ between groups within classes: largest z of a group's score",
    formula="max_g |sum_i u_ig| / sqrt(sum_i u_ig^2), scores centred within classes; p from signs",
    source="fairweight (random signs on scores centred at the shift of the class)",
    undefined="one class; classes and groups coincide; fewer than two groups of the least size",
    directed=False,
    choosable=False,
    instead="group_gap",
)
def heterogeneity_within_classes(z: Floats) -> Floats:
    """Largest deviation over the groups (last axis) once every class has its own mean change.

    Lower means more alike; in [0, inf). Where `heterogeneity` is large and this is not, the
    classes explain the difference: the group has more of the classes that lose. NaN where no
    group has a deviation.

    >>> float(heterogeneity_within_classes(np.array([-2.0, 1.0, np.nan])))
    2.0
    """
    return _largest(np.abs(np.asarray(z, dtype=np.float64)))


def _largest(z: Floats) -> Floats:
    largest = np.where(np.isnan(z), -np.inf, z).max(axis=-1, initial=-np.inf)
    return np.where(np.isfinite(largest), largest, np.nan)


@register(
    kind="table",
    by=("group",),
    better="none",
    low=0,
    high=1,
    summary="share of all lost answers that falls on a group (or on the hardest-hit clusters)",
    formula="lost_g / sum_g lost_g, beside the same for gained and the group's share of examples",
    source="fairweight (beside a Poisson reference)",
    undefined="no answer was lost",
    aggregation="pairs",
    choosable=False,
    instead="harmful_flips",
    signature="lost",
)
def concentration(lost: Floats) -> Floats:
    """Each level's share of all lost answers (last axis).

    To be read beside the level's share of examples and of gained answers; in [0, 1]. NaN where
    nothing was lost.

    >>> concentration(np.array([30.0, 10.0])).tolist()
    [0.75, 0.25]
    """
    return ratio(lost, np.asarray(lost).sum(axis=-1, keepdims=True))


@dataclass(frozen=True)
class ClassImpact:
    """Welch's test for each class (last axis of every field)."""

    difference: Floats  # compressed - baseline, of mean (recall - accuracy)
    statistic: Floats
    degrees_of_freedom: Floats
    p_value: Floats


@register(
    kind="table",
    by=("class",),
    better="none",
    low=-2,
    high=2,
    summary="does compression move a class differently than the whole: Welch test over members",
    formula="Welch t of (recall_c - mean accuracy of the population), compressed against baseline",
    source="Hooker et al. 2020, public code (class-level impact)",
    undefined="fewer than two members on a side; members do not differ at all",
    choosable=False,
    instead="recall",
)
def class_impact(
    baseline_recall: Floats,
    baseline_accuracy: Floats,
    compressed_recall: Floats,
    compressed_accuracy: Floats,
) -> ClassImpact:
    """Welch's t-test between populations on class recall minus the population's mean accuracy.

    Recalls are (members, C), accuracies (members,). Below 0 the class lost more than the whole.
    NaN with fewer than two members on a side, and where the members of both sides do not vary.

    >>> before = np.array([[0.90], [0.92], [0.94]])
    >>> after = np.array([[0.80], [0.82], [0.84]])
    >>> same = np.array([0.9, 0.9, 0.9])
    >>> impact = class_impact(before, same, after, same)
    >>> float(impact.difference[0].round(9)), float(impact.statistic[0].round(3))  # .1 / .01633
    (-0.1, -6.124)
    """
    from scipy.special import stdtr

    mean_b, error_b, df_b = _mean_and_error(baseline_recall, baseline_accuracy)
    mean_c, error_c, df_c = _mean_and_error(compressed_recall, compressed_accuracy)
    difference = mean_c - mean_b
    variance = error_b + error_c
    statistic = np.asarray(ratio(difference, np.sqrt(variance)))
    degrees = ratio(variance**2, error_b**2 / max(df_b, 1) + error_c**2 / max(df_c, 1))
    if min(df_b, df_c) < 1:
        statistic, degrees = np.full_like(statistic, np.nan), np.full_like(degrees, np.nan)
    p_value = 2 * stdtr(degrees, -np.abs(statistic))
    return ClassImpact(difference, statistic, degrees, np.asarray(p_value, dtype=np.float64))


def _mean_and_error(recalls: Floats, accuracies: Floats) -> tuple[Floats, Floats, int]:
    """Mean of (recall - mean accuracy), its squared standard error, and degrees of freedom."""
    recalls = np.asarray(recalls, dtype=np.float64)
    members = recalls.shape[0]
    relative = recalls - np.mean(accuracies)
    centred = relative - relative.mean(axis=0)
    squared_error = (centred**2).sum(axis=0) / max(members - 1, 1) / members
    return relative.mean(axis=0), squared_error, members - 1


# How few units bear the lost answers, against what chance alone would do.

# Draws × units of the reference; the mean over few draws is exact enough where units are many.
_MOST_DRAWN = 10_000_000
_MOST_LOST = 2**53  # beyond, draws do not differ from their mean, and numpy draws no more


def share_of_top(
    values_per_unit: ArrayLike,
    shares: Sequence[float] = (0.01, 0.05, 0.10),
    *,
    exposure: ArrayLike | None = None,
    n_draws: int = 200,
    rng: np.random.Generator | None = None,
) -> tuple[Floats, Floats]:
    """Share of the total borne by the top x % of units, and the same under chance.

    Parameters
    ----------
    values_per_unit
        Lost (or gained) answers of each unit.
    shares
        The x: the top ceil(x · units) units are taken, at least one.
    exposure
        Examples of each unit; equal if not given.
    n_draws, rng
        Draws of the reference, and their source.

    Returns
    -------
    observed, reference
        One number per share. The reference is the mean over draws in which the same total falls
        on the units at random with rates in proportion to their exposure (Poisson, given the
        total). NaN where nothing was lost.

    Examples
    --------
    Ten units, one of which bears 6 of 10 losses:

    >>> observed, reference = share_of_top([6, 1, 1, 1, 1, 0, 0, 0, 0, 0], (0.1, 0.5),
    ...                                    rng=np.random.default_rng(0))
    >>> observed.tolist(), bool(reference[0] < 0.4)
    ([0.6, 1.0], True)
    """
    values = np.asarray(values_per_unit, dtype=np.float64)
    size = np.ones_like(values) if exposure is None else np.asarray(exposure, dtype=np.float64)
    if values.ndim != 1 or size.shape != values.shape:
        raise InputError(
            f"exposure has the shape {size.shape} and values_per_unit {values.shape}; "
            "give one number per unit in both."
        )
    total = values.sum()
    if values.size == 0 or not total > 0 or not size.sum() > 0:
        undefined = np.full(len(shares), np.nan)
        return undefined, undefined.copy()
    tops = [max(1, int(np.ceil(round(share * values.size, 9)))) for share in shares]
    rng = np.random.default_rng() if rng is None else rng
    draws = int(np.clip(_MOST_DRAWN // values.size, 5, n_draws))
    reference = np.zeros(len(shares))
    # A mean over members may be a fraction of one answer; weights may be astronomical.
    whole = max(1, round(min(total, _MOST_LOST)))
    for _ in range(draws):
        drawn = rng.multinomial(whole, size / size.sum())
        reference += _top(drawn.astype(np.float64), tops)
    return _top(values, tops), reference / draws


def _top(values: Floats, tops: list[int]) -> Floats:
    cumulative = np.cumsum(np.sort(values)[::-1])
    shares: Floats = cumulative[np.array(tops) - 1] / cumulative[-1]
    return shares
