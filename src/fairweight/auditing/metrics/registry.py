"""The registry of metrics: each is one pure function of counts (or of sorted scores).

`kind` says what the function receives and how its uncertainty is found:

kind        function receives                                   returns   interval, test
rate        Counts (..., C); `event` is the paired event        (...)     Wilson, Tango, McNemar
value       Counts (..., C)                                     (...)     bootstrap, swap null
grouping    Counts (..., L, C), usable levels of one column     (...)     bootstrap, swap null
identity    Counts (..., L, C) and Sides, levels of a column    (..., L)  bootstrap, swap null
score       ScoreColumn, weights (R, n)                         (R, S)    bootstrap, swap null
comparison  two Counts (..., C), baseline and compressed        (...)     basic bootstrap, swap null
            (with inflation=None, and per class: percentile bootstrap)
table       arguments of its own: called by its own module in auditing/compare
outcome     numerators and denominators (..., n)                (...)     skewed t; Tango of 0/1

A `linear` metric of scores is the mean of what examples add: t limits and test, without draws.

A function with `per_class` returns (..., C); for overall and group rows the value of the positive
class is taken if the labels are binary, else the unweighted mean over classes.

Other packages add metrics by an entry point of the group `fairweight.metrics` that names a module;
it is imported when metrics are first listed, and registers its own with `@register`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from typing import Any, Literal, TypeAlias

import numpy as np

from fairweight.auditing.counts.counts import Counts, ratio
from fairweight.base.registry import Registry
from fairweight.base.types import Floats
from fairweight.errors import UnknownNameError

# The most that a number of changed predictions can cost a metric, all of them harmful.
#
# Where fewer than ten predictions changed there are no limits of precision, kappa, AUC and the
# like; a gate then asks how bad it could be. Each function takes the counts of the *baseline*,
# (..., S, C), and how many predictions change in each slice, (..., S); it returns the largest
# loss, at least 0. Changes need not be whole: they are an upper limit. What is harmful differs
# between metrics, so each has its own worst case; none is a guess about what a compressed model
# would do.

Loss: TypeAlias = Callable[[Counts, Floats], Floats]


@dataclass(frozen=True)
class Harm:
    """The largest loss of a metric, and which changes can cause it.

    relevant  `prediction`: any other prediction; `correct`: right becomes wrong, or wrong right;
              `score`: any other score
    of_class  for rows by class, (..., S, C), from the changes into and out of each class
    """

    loss: Loss
    relevant: Literal["prediction", "correct", "score"] = "prediction"
    of_class: Loss | None = None


def precision_loss(counts: Counts, changes: Floats) -> Floats:
    """Of TP / P in every class, P predictions of it of which TP are right; changes are (..., S, C).

    Either examples of other classes are predicted as it, TP / (P + h), or its right predictions go
    elsewhere, (TP − h) / (P − h). A mixture is never worse than the worse of the two.

    TP = 80, P = 100 and 5 changes: 80 / 105 = .762 is below 75 / 95 = .789, so .8 − .762.

    >>> counts = Counts(np.array([[90.0, 110.0]]), np.array([[100.0, 100.0]]),
    ...                 np.array([[80.0, 90.0]]), np.zeros(1), ("a", "b"))
    >>> precision_loss(counts, np.array([[5.0, 0.0]])).round(4).tolist()
    [[0.0381, 0.0]]
    """
    had = ratio(counts.correct, counts.predicted)
    entering = ratio(counts.correct, counts.predicted + changes)
    return np.maximum(had - entering, _leaving(counts, changes))


def _leaving(counts: Counts, changes: Floats) -> Floats:
    """What precision loses when right predictions of a class go elsewhere."""
    had = ratio(counts.correct, counts.predicted)
    left = np.maximum(counts.correct - changes, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        after = np.where(left > 0, left / (counts.predicted - changes), 0.0)
    loss: Floats = np.maximum(had - after, 0.0)
    return loss


def summary_precision_loss(counts: Counts, changes: Floats) -> Floats:
    """Of the positive class's precision, or of the mean over classes that have examples.

    A change takes one right prediction from a class and adds a wrong one to another. Leaving costs
    most where all leave one class; the first one that enters a class costs it TP / P² at most, the
    next ones less.
    """
    if counts.positive is not None:
        of_positive: Floats = precision_loss(counts, changes[..., None])[..., counts.positive]
        return of_positive
    present = counts.label > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        entering = changes * _most(counts.correct / counts.predicted**2, present)
    leaving = _most(_leaving(counts, changes[..., None]), present)
    return ratio(leaving + entering, present.sum(axis=-1))


def f1_loss(counts: Counts, changes: Floats) -> Floats:
    """Of 2 TP / (P + N) in every class; changes are (..., S, C).

    Right predictions that go elsewhere, 2 (TP − h) / (P + N − h), cost more than wrong ones that
    come, 2 TP / (P + N + h), because TP is at most P and at most N.

    TP = 80, P = 100, N = 90 and 5 changes: 160 / 190 = .842 falls to 150 / 185 = .811.

    >>> counts = Counts(np.array([[90.0, 110.0]]), np.array([[100.0, 100.0]]),
    ...                 np.array([[80.0, 90.0]]), np.zeros(1), ("a", "b"))
    >>> f1_loss(counts, np.array([[5.0, 0.0]])).round(4).tolist()
    [[0.0313, 0.0]]
    """
    both = counts.predicted + counts.label
    left = np.maximum(counts.correct - changes, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        after = np.where(left > 0, 2 * left / (both - changes), 0.0)
    loss: Floats = np.maximum(ratio(2 * counts.correct, both) - after, 0.0)
    return loss


def summary_f1_loss(counts: Counts, changes: Floats) -> Floats:
    """Of the positive class's F1, or of the mean over classes that have examples.

    A change takes a right prediction from one class, which costs 2 / (P + N) at most and most in
    the smallest class, and adds a wrong one to another, which costs 2 TP / (P + N)² at most.
    """
    if counts.positive is not None:
        of_positive: Floats = f1_loss(counts, changes[..., None])[..., counts.positive]
        return of_positive
    present = counts.label > 0
    both = np.where(present, counts.predicted + counts.label, np.inf)
    order = np.argsort(both, axis=-1)
    size = np.take_along_axis(both, order, axis=-1)
    right = np.take_along_axis(np.where(present, counts.correct, 0.0), order, axis=-1)
    before = np.cumsum(right, axis=-1) - right
    lost = np.clip(changes[..., None] - before, 0.0, right)
    entering = changes * (2 * counts.correct / both**2).max(axis=-1)
    total = (2 * lost / size).sum(axis=-1) + entering
    return np.minimum(ratio(total, present.sum(axis=-1)), 1.0)


def mean_recall_loss(counts: Counts, changes: Floats) -> Floats:
    """Of the mean over classes of TP / N: right predictions are lost in the smallest classes first.

    Classes of 80 and 20 examples, 3 changes: (0 / 80 + 3 / 20) / 2 = .075.

    >>> counts = Counts(np.array([[80.0, 20.0]]), np.array([[76.0, 24.0]]),
    ...                 np.array([[72.0, 16.0]]), np.zeros(1), ("a", "b"))
    >>> mean_recall_loss(counts, np.array([3.0])).round(4).tolist()
    [0.075]
    """
    order = np.argsort(np.where(counts.label > 0, counts.label, np.inf), axis=-1)
    size = np.take_along_axis(counts.label, order, axis=-1)
    right = np.take_along_axis(counts.correct, order, axis=-1)
    before = np.cumsum(right, axis=-1) - right
    lost = np.clip(changes[..., None] - before, 0.0, right)
    share = np.where(size > 0, lost / np.where(size > 0, size, 1.0), 0.0)
    return ratio(share.sum(axis=-1), (counts.label > 0).sum(axis=-1))


def mean_fpr_loss(counts: Counts, changes: Floats) -> Floats:
    """Of the mean over classes of FP / (n − N): all become false positives of the largest class."""
    present = counts.label > 0
    others = np.where(present, counts.n[..., None] - counts.label, np.inf)
    others = np.where(others > 0, others, np.inf)
    return np.minimum(ratio(changes / others.min(axis=-1), present.sum(axis=-1)), 1.0)


def kappa_loss(counts: Counts, changes: Floats) -> Floats:
    """Of 1 − (1 − p_o) / (1 − p_e): every change is a right prediction that becomes wrong.

    p_o falls by 1 / n. p_e rises by (N_j − N_i) / n² when a prediction goes from class i to j, most
    from the smallest class to the largest.

    n = 100 in two equal classes, 90 right, 2 changes: κ falls from 1 − .1 / .5 to 1 − .12 / .5.

    >>> counts = Counts(np.array([[50.0, 50.0]]), np.array([[50.0, 50.0]]),
    ...                 np.array([[45.0, 45.0]]), np.zeros(1), ("a", "b"))
    >>> kappa_loss(counts, np.array([2.0])).round(4).tolist()
    [0.04]
    """
    n = counts.n
    right = ratio(counts.correct.sum(axis=-1), n)
    chance = ratio((counts.label * counts.predicted).sum(axis=-1), n**2)
    smallest = np.where(counts.label > 0, counts.label, np.inf).min(axis=-1)
    worse = chance + ratio(changes * (counts.label.max(axis=-1) - smallest), n**2)
    wrong = np.minimum(1.0 - right + ratio(changes, n), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        after = np.where(worse < 1, np.maximum(1.0 - wrong / (1.0 - worse), -1.0), -1.0)
    loss: Floats = ratio(right - chance, 1.0 - chance) - after
    return loss


def auc_loss(counts: Counts, changes: Floats) -> Floats:
    """Of the AUC: the scores that change go to the wrong end, all of the smaller side.

    Every pair with such an example is then out of order. h of P positives (or of N negatives) are
    h / P (or h / N) of all pairs, and sharing them out over both sides is never worse. With more
    than two classes: the mean over classes.

    20 positives, 80 negatives, 3 changes: 3 / 20.

    >>> counts = Counts(np.array([[80.0, 20.0]]), np.array([[80.0, 20.0]]),
    ...                 np.array([[80.0, 20.0]]), np.zeros(1), ("a", "b"), positive=1)
    >>> auc_loss(counts, np.array([3.0])).round(4).tolist()
    [0.15]
    """
    smaller = np.minimum(counts.label, counts.n[..., None] - counts.label)
    loss: Floats = np.minimum(ratio(changes[..., None], smaller), 1.0).mean(axis=-1)
    return loss


def brier_loss(counts: Counts, changes: Floats) -> Floats:
    """Of the Brier score: from no loss to the largest, 1 with two classes and 2 with more."""
    return ratio(changes * (1.0 if counts.positive is not None else 2.0), counts.n)


def _most(values: Floats, present: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Floats:
    """The largest value of the classes that have examples; NaN where one of them has none."""
    largest: Floats = np.where(present, values, -np.inf).max(axis=-1)
    return largest


ENTRY_POINTS = "fairweight.metrics"

Kind = Literal["rate", "value", "grouping", "identity", "score", "comparison", "table", "outcome"]
Given = Literal["all", "label", "not_label"]
Happens = Literal["correct", "wrong", "predicted", "abstained", "uncertain", "top5"]
Signature = Literal[
    "uncertain", "ranks", "rarer", "top_label", "promise", "worst_identity", "zero_baseline",
    "flips", "pair_by_group", "lost",
]  # fmt: skip
PairEvent = Literal["changed", "lost", "gained"]  # of two predictions of one example
Level = Literal["overall", "class", "group", "group*class", "grouping"]


@dataclass(frozen=True)
class Event:
    """A yes-or-no event of one example: `happens` among the examples in `given`.

    `label` and `not_label` are relative to the class of the row (or the positive class).
    """

    happens: Happens
    given: Given = "all"


@dataclass(frozen=True, kw_only=True)
class Metric:
    name: str
    kind: Kind
    function: Callable[..., Any]
    by: tuple[Level, ...]
    better: Literal["higher", "lower", "zero", "one", "none"]
    low: float
    high: float
    summary: str  # one line, shown by `fairweight metrics`
    formula: str
    source: str
    undefined: str  # when the value is NaN
    label: str = ""  # short title, on axes and in sentences; by default the name
    unit: Literal["share", "points", "number"] = "number"  # points: a difference of shares
    per_class: bool = False
    event: Event | None = None
    pairs: PairEvent | None = None  # a share of pairs of predictions
    needs: frozenset[str] = field(default_factory=frozenset)  # positive, train, score, scores, ...
    # With several members: compute and average, average rates and compute, or mean over pairs.
    aggregation: Literal["seeds_first", "rates_first", "pairs"] = "seeds_first"

    # What it is computed from beside the counts.
    of: str | None = None  # the metric that it is a gap, or the worst, of
    in_class: str | None = None  # the metric that it is within one class
    reference: Literal["rarer", "sides"] | None = None  # read off the training data first
    options: frozenset[str] = field(default_factory=frozenset)  # of the audit, passed on to it
    per_level: Callable[..., Any] | None = None  # same input: a value for every level
    level: Callable[..., Any] | None = None  # same input: index of the level that the value is of

    signature: Signature | None = None  # what it takes on plain arrays; None: by its kind

    # Which rows it has.
    crossed: bool = False  # also by group and class
    confirmatory: tuple[str, ...] = ()  # kinds of rows that are: else exploratory
    one_row_if_zero: bool = False  # where it is 0 for everybody, groups and classes are left out
    only_unlabelled: bool = False  # audits with labels have other rows in its place

    # Of a column: how many are right in each level is enough, whatever their classes.
    without_classes: bool = False

    headline: bool = False  # on the page beside the usual ones, not in the tables alone

    # How limits are made of it.
    changed: Event | None = None  # which changed predictions enter the value; None: all of them
    linear: bool = False  # t limits from what every example adds, not from draws
    no_limits: str | None = None  # why the value has neither limits nor a test
    # What noise alone adds to: a sum of squares, or a mean of absolute changes. Such a number is
    # never negative, its interval is the basic one, its test one-sided.
    inflation: Literal["squares", "absolute"] | None = None

    # What may be asked of it.
    relative: bool = False  # percent of a baseline that may be near 0: no gate
    chance: float | None = None  # what guessing gives: a baseline below it is read the wrong way
    directed: bool = True  # `better` is a direction in its own unit
    is_change: bool = False  # the value is itself a change against the baseline
    choosable: bool = True  # a value of a variant, of which replicates can be drawn
    instead: str | None = None  # what a gate can ask for instead
    harm: Harm | None = None  # the most that few changed predictions can cost it, for the gate

    @property
    def of_scores(self) -> bool:
        """Whether it is computed from scores or ranks, not from predictions."""
        return self.kind == "score" or bool(self.needs & {"score", "label_rank"})

    @property
    def is_ratio(self) -> bool:
        """Whether its best value is its largest, 1: it has a floor, and no margin."""
        return self.better == "one" and self.high <= 1

    @property
    def gated(self) -> frozenset[str]:
        """Of what a policy may demand something: its `shift`, its `value`, both or neither.

        Limits for the gate are made and stored of these alone.
        """
        if self.relative or self.no_limits is not None:
            return frozenset()
        if self.directed and self.better in ("higher", "lower"):
            return frozenset({"value"} if self.is_change else {"shift", "value"})
        return frozenset({"value"} if self.is_ratio else ())


METRICS: Registry[Metric] = Registry("metric", group=ENTRY_POINTS)
metric = METRICS.__getitem__
unregister = METRICS.remove


def register(**fields: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a metric; the decorated function stays usable as it is.

    >>> from fairweight.auditing.metrics.registry import register
    >>> @register(name="doctest_share_right", kind="value", by=("overall", "group"),
    ...           better="higher", low=0, high=1, summary="share of right answers",
    ...           formula="sum correct / n", source="example", undefined="no examples")
    ... def share_right(counts):
    ...     return counts.correct.sum(-1) / counts.n
    >>> metric("doctest_share_right").kind
    'value'
    >>> unregister("doctest_share_right")
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        fields.setdefault("name", function.__name__)
        fields.setdefault("label", fields["name"].replace("_", " "))
        known = [each.name for each in dataclass_fields(Metric)]
        for name in fields:
            if name not in known:
                raise UnknownNameError(f"The field of the metric '{fields['name']}'", name, known)
        for name in ("needs", "options"):
            fields[name] = frozenset(fields.get(name, ()))
        if fields.get("kind") == "comparison":
            fields.setdefault("is_change", True)
            fields.setdefault("aggregation", "rates_first")
            # Noise adds to most of them; one that may be negative says inflation=None.
            fields.setdefault("inflation", None if fields.get("per_class") else "squares")
        entry = Metric(function=function, **fields)
        METRICS.add(entry.name, entry)
        return function

    return add


def metrics() -> tuple[Metric, ...]:
    """Every registered metric, in order of registration; those of other packages last."""
    return tuple(METRICS.values())


def confirmatory() -> tuple[tuple[str, str], ...]:
    """The (metric, kind of rows) pairs that are decided before the data are seen."""
    return tuple((entry.name, kind) for entry in metrics() for kind in entry.confirmatory)
