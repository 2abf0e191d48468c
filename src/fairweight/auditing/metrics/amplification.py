"""Bias amplification and threshold bias, as the code of Iofinova et al. 2023 computes them.

The question of bias amplification (BA): among the examples *predicted* as positive, is the side
that has more positives in training even more frequent than among the true positives? Which side
that is, and whether there is enough to tell, is decided once on the data (`sides_of`) and held in
every replicate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.counts import Counts, ratio
from fairweight.auditing.metrics.registry import register
from fairweight.base.types import Floats
from fairweight.errors import InputError

MIN_POSITIVES = 10  # positive examples that a level, and the rest, must have in the test data
MIN_RELATIVE_DIFFERENCE = 0.1  # of the two positive rates in training: the whole test of bias


@dataclass(frozen=True)
class Sides:
    """For each level of a column, against the rest: which side is watched, and whether it can be.

    `toward` is true where the level itself has more positives in training, false where the rest
    has; `reason` is empty where `estimable`.
    """

    toward: NDArray[np.bool_]  # (L,)
    estimable: NDArray[np.bool_]  # (L,)
    reason: tuple[str, ...]
    from_training: bool


def sides_of(
    test: Counts,
    train: Counts | None,
    *,
    filters: bool = True,
    fixed_side: int | None = None,
) -> Sides:
    """Decide each level's side, one-vs-rest, and whether bias amplification is estimable.

    Parameters
    ----------
    test, train
        Counts (L, C) over the same levels in the same order. Without training data the sign comes
        from the test labels, and `from_training` is false.
    filters
        Skip a level if it or the rest has fewer than 10 positive test labels, or if the two
        positive rates differ by less than 10 % of the lower one (0 against more than 0 differs).
    fixed_side
        Index of the level whose side is always watched, whatever the data say (backdoors: use it
        with `filters=False`). With two levels both rows speak of that side; with more, only that
        level's row is estimable.

    Examples
    --------
    >>> def table(label):
    ...     zero = np.zeros_like(label)
    ...     return Counts(label, zero, zero, zero[:, 0], classes=("0", "1"), positive=1)
    >>> test = table(np.array([[60.0, 40.0], [80.0, 20.0]]))
    >>> train = table(np.array([[70.0, 30.0], [90.0, 10.0]]))  # 30 % against 10 %: toward the first
    >>> sides = sides_of(test, train)
    >>> sides.toward.tolist(), sides.estimable.tolist()
    ([True, False], [True, True])
    """
    levels = test.label.shape[-2]
    if test.positive is None:
        no = np.zeros(levels, dtype=np.bool_)
        return Sides(no, no, ("no positive class",) * levels, train is not None)

    own_positives, rest_positives = _own_and_rest(test.label[:, test.positive])
    reference = test if train is None else train
    own_n, rest_n = _own_and_rest(reference.n)
    positive = test.positive if reference.positive is None else reference.positive
    own, rest = _own_and_rest(reference.label[:, positive])
    own_rate, rest_rate = ratio(own, own_n), ratio(rest, rest_n)
    with np.errstate(invalid="ignore"):
        toward = own_rate > rest_rate
        lower, higher = np.minimum(own_rate, rest_rate), np.maximum(own_rate, rest_rate)
        # 0 against more than 0 has no relative difference (NaN) and counts as biased.
        alike = (ratio(higher - lower, lower) < MIN_RELATIVE_DIFFERENCE) | (higher == 0)

    where = "test labels" if train is None else "training data"
    reasons = [""] * levels

    def skip(which: NDArray[np.bool_], why: str) -> None:
        for level in np.flatnonzero(which):
            reasons[level] = reasons[level] or why

    if filters:
        few = f"fewer than {MIN_POSITIVES} positive examples in the "
        skip(own_positives < MIN_POSITIVES, few + "level")
        skip(rest_positives < MIN_POSITIVES, few + "rest")
    if fixed_side is None:
        skip(np.isnan(own_rate) | np.isnan(rest_rate), f"level or rest absent from the {where}")
        if filters:
            skip(alike, f"positive rates within 10 % of each other in the {where}")
    else:
        toward = np.arange(levels) == fixed_side
        if levels > 2:
            skip(~toward, "another level's side is fixed")
    estimable = np.array([not reason for reason in reasons], dtype=np.bool_)
    return Sides(toward, estimable, tuple(reasons), train is not None)


def _own_and_rest(values: Floats) -> tuple[Floats, Floats]:
    """Each level's value and the sum of the others', along the last axis."""
    rest: Floats = values.sum(axis=-1, keepdims=True) - values
    return values, rest


def _share_on_side(positives: Floats, sides: Sides) -> Floats:
    """Share of the positives (..., L) that lie on each level's watched side."""
    own, rest = _own_and_rest(positives)
    share = ratio(np.where(sides.toward, own, rest), positives.sum(axis=-1, keepdims=True))
    return np.where(sides.estimable, share, np.nan)


def _undefined(counts: Counts) -> Floats:
    return np.full(counts.label.shape[:-1], np.nan)


@register(
    kind="identity",
    by=("group",),
    better="none",
    low=0,
    high=1,
    summary="share of positive predictions on the side with more positives in training",
    formula="N(prediction = 1, side) / N(prediction = 1)",
    source="Iofinova et al. 2023, bias; Zhao et al. 2017",
    undefined="no positive predictions; skipped by the rules of bias_amplification",
    needs={"positive"},
    unit="share",
    reference="sides",
    instead="worst_case_bias_amplification",
)
def bias(counts: Counts, sides: Sides) -> Floats:
    """Share of the positive predictions that fall on each level's watched side, (..., L).

    In [0, 1]; its counterpart in the labels is subtracted in `bias_amplification`. NaN without
    positive predictions and where `sides` says not estimable.

    >>> counts = Counts(label=np.array([[5.0, 30.0], [5.0, 10.0]]),
    ...                 predicted=np.array([[3.0, 32.0], [7.0, 8.0]]),
    ...                 correct=np.zeros((2, 2)), abstained=np.zeros(2),
    ...                 classes=("0", "1"), positive=1)
    >>> bias(counts, sides_of(counts, None)).tolist()  # 32 / 40, both rows speak of one side
    [0.8, 0.8]
    """
    if counts.positive is None:
        return _undefined(counts)
    return _share_on_side(counts.predicted[..., counts.positive], sides)


@register(
    kind="identity",
    by=("group",),
    better="zero",
    low=-1,
    high=1,
    summary="how much more the positive predictions lean to a side than the positive labels do",
    formula="N(pred = 1, side) / N(pred = 1) - N(label = 1, side) / N(label = 1), side = level or "
    "rest, whichever has the higher share of positives in training",
    source="Iofinova et al. 2023 code (sign from training data); Zhao et al. 2017",
    undefined="no positive predictions; fewer than 10 positive test labels in level or rest; "
    "training rates within 10 % of each other",
    needs={"positive"},
    unit="share",
    reference="sides",
    instead="worst_case_bias_amplification",
)
def bias_amplification(counts: Counts, sides: Sides) -> Floats:
    """`bias` of the predictions minus that of the labels, each level against the rest: (..., L).

    Above 0 the model exaggerates what the training data show; in [-1, 1]. NaN without positive
    predictions and where `sides` says not estimable.

    >>> counts = Counts(label=np.array([[5.0, 30.0], [5.0, 10.0]]),
    ...                 predicted=np.array([[3.0, 32.0], [7.0, 8.0]]),
    ...                 correct=np.zeros((2, 2)), abstained=np.zeros(2),
    ...                 classes=("0", "1"), positive=1)
    >>> bias_amplification(counts, sides_of(counts, None)).round(12).tolist()  # 32/40 - 30/40
    [0.05, 0.05]
    """
    if counts.positive is None:
        return _undefined(counts)
    in_labels = _share_on_side(counts.label[..., counts.positive], sides)
    return np.asarray(bias(counts, sides) - in_labels)


@register(
    name="worst_case_bias_amplification",
    kind="table",
    by=("overall",),
    better="lower",
    low=-1,
    high=1,
    label="worst-case bias amplification",
    summary="highest bias amplification over all estimable identities",
    formula="max over estimable identities of bias_amplification (signed)",
    source="Iofinova et al. 2023, worst-case BA",
    undefined="no identity is estimable, or one has no positive predictions",
    needs={"positive"},
    unit="share",
    reference="sides",
    of="bias_amplification",
    signature="worst_identity",
)
def worst_case(values: Floats, sides: Sides) -> Floats:
    """Signed maximum of bias amplification over the estimable identities (last axis).

    >>> sides = Sides(np.array([True, True]), np.array([True, False]), ("", "few"), True)
    >>> float(worst_case(np.array([-0.02, np.nan]), sides))
    -0.02
    """
    if not sides.estimable.any():
        return np.full(values.shape[:-1], np.nan)
    return np.asarray(values[..., sides.estimable].max(axis=-1))


def rarer_value(train_or_test: Counts) -> tuple[int, bool]:
    """Index of the rarer of two classes, and whether both are equally frequent.

    At a mean of exactly one half it is the positive class (else the second): value 1.

    >>> counts = Counts(label=np.array([30.0, 70.0]), predicted=np.zeros(2), correct=np.zeros(2),
    ...                 abstained=np.array(0.0), classes=("0", "1"), positive=1)
    >>> rarer_value(counts)
    (0, False)
    """
    if not train_or_test.binary:
        raise InputError(
            f"tcb needs binary labels, but there are {len(train_or_test.classes)} classes; "
            "use it per task of a multi-label table."
        )
    first, second = train_or_test.label.reshape(-1, 2).sum(axis=0)
    if first == second:
        return (1 if train_or_test.positive is None else train_or_test.positive), True
    return int(second < first), False


@register(
    kind="value",
    by=("overall", "group"),
    better="one",
    low=0,
    high=np.inf,
    label="threshold bias (TCB)",
    summary="threshold calibration bias: predictions over labels of the rarer value",
    formula="N(prediction = v) / N(label = v), v the rarer value in training",
    source="Iofinova et al. 2023, TCB (rarer on the training mean; at exactly .5: value 1)",
    undefined="no examples with the rarer label; more than two classes",
    needs={"binary"},
    reference="rarer",
    instead="selection_rate_group_gap",
    signature="rarer",
)
def tcb(counts: Counts, rarer: int | None = None) -> Floats:
    """How often the rarer value is predicted relative to how often it is true.

    1 is calibrated, below 1 the rarer value is predicted too seldom; in [0, inf). `rarer` is its
    class index, from `rarer_value` of the training data; without it the counts given decide, all
    slices together. NaN where no label has the rarer value, and with more than two classes.

    >>> counts = Counts(label=np.array([70.0, 30.0]), predicted=np.array([85.0, 15.0]),
    ...                 correct=np.zeros(2), abstained=np.array(0.0), classes=("0", "1"))
    >>> float(tcb(counts, rarer=1))
    0.5
    """
    if not counts.binary:
        return _undefined(counts)
    value = rarer_value(counts)[0] if rarer is None else rarer
    return ratio(counts.predicted[..., value], counts.label[..., value])
