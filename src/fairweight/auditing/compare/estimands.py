"""What is bootstrapped: every metric without a closed form, its rows, how to evaluate them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import (
    MIN_CLUSTERS,
    Comparison,
    Names,
    Slots,
    TrainingCounts,
    groupings_of,
    join_slots,
    kept_slots,
    plain_slots,
    slots_of,
)
from fairweight.auditing.compare.influence import Changed, changed_predictions
from fairweight.auditing.compare.members import Both, Evaluate, PerMember
from fairweight.auditing.counts.counts import Counts, Tally, sums
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.metrics.amplification import Sides, rarer_value, sides_of
from fairweight.auditing.metrics.changes import kept_classes
from fairweight.auditing.metrics.rates import summary_of
from fairweight.auditing.metrics.registry import Metric, metric, metrics
from fairweight.base.types import Floats

NO_POSITIVE = "not_estimable: no positive class (name it: --positive, positive=)"


@dataclass(frozen=True)
class Estimand:
    """One family of rows of one metric that is computed from counts."""

    metric: Metric
    slots: Slots
    n: Floats
    evaluate: Evaluate | None  # None: there is no value, and `status` says why
    status: Names | None = None
    level: Callable[[Both], str | None] | None = None  # the level that the compressed value is of
    p_value: Floats | None = None  # from a test of its own; else the swap null's
    members_drawn: bool = False  # scope `method` draws members too, and its p relabels them
    changed: Callable[[], Changed] | None = None  # what its limits rest on; None: not asked

    @property
    def rates_first(self) -> bool:
        """Whether rates are averaged over members before the metric is computed."""
        return self.metric.aggregation == "rates_first"


def estimands(
    c: Comparison,
    training: TrainingCounts | None,
    *,
    filters: bool = True,
    fixed_side: str | None = None,
    only: Set[str] | None = None,
) -> Iterator[Estimand]:
    """Everything that this comparison can have of what is drawn, or that of some metrics."""
    wanted = [entry for entry in metrics() if only is None or entry.name in only]
    for entry in wanted:
        if entry.kind == "value" or (entry.kind == "rate" and entry.per_class):
            yield from _values(c, entry, training)
        elif entry.kind == "grouping":
            yield from _gaps(c, entry)
        elif entry.kind == "comparison":
            yield from _changes(c, entry)
    amplified = [entry for entry in wanted if entry.reference == "sides"]
    if amplified:
        yield from _amplification(c, amplified, training, filters=filters, fixed_side=fixed_side)


def impossible(c: Comparison, entry: Metric) -> str | None:
    """Why a metric that needs binary labels has no value here."""
    if not ({"positive", "binary"} & entry.needs):
        return None
    if len(c.classes) != 2:
        return f"not_estimable: for binary labels, and there are {len(c.classes)} classes"
    if "positive" in entry.needs and c.positive is None:
        return NO_POSITIVE
    return None


def sizes(c: Comparison, grouping: Grouping) -> Floats:
    """Examples in each level."""
    return sums(grouping.code, c.cube.count, len(grouping.levels))


def _values(c: Comparison, entry: Metric, training: TrainingCounts | None) -> Iterator[Estimand]:
    reason = impossible(c, entry)
    if reason is None and entry.per_class and len(c.classes) == 2 and c.positive is None:
        reason = NO_POSITIVE
    closed = entry.kind == "rate"  # rates have a closed form wherever they are of one class
    function = _with_training(c, entry, training)
    if entry.per_class and "class" in entry.by and not closed:
        yield Estimand(
            entry,
            slots_of(c, c.whole, "class"),
            _class_sizes(c),
            _per_class(function),
            changed=partial(changed_predictions, c, entry.changed, [c.whole], by_class=True),
        )
    if closed and reason is None and c.positive is not None:
        return
    if reason is not None:
        yield _without_value(c, entry, "overall", reason)
        return
    for kind in ("overall", "group", "intersection"):
        chosen = groupings_of(c, kind)
        level = "group" if kind == "intersection" else kind
        if chosen and level in entry.by:
            yield Estimand(
                entry,
                join_slots([slots_of(c, g, kind) for g in chosen], kind),
                np.concatenate([sizes(c, g) for g in chosen]),
                per_slice(c, entry, function, chosen, rest=kind != "overall"),
                changed=changed_in(c, entry, chosen),
            )


def changed_in(c: Comparison, entry: Metric, chosen: Sequence[Grouping]) -> Callable[[], Changed]:
    """How many changed predictions enter a metric in the levels of some groupings."""
    mean = not entry.per_class or c.positive is None
    return partial(changed_predictions, c, entry.changed or entry.event, chosen, mean=mean)


def _with_training(
    c: Comparison, entry: Metric, training: TrainingCounts | None
) -> Callable[[Counts], Floats]:
    if entry.reference != "rarer" or len(c.classes) != 2:
        return entry.function
    reference = training.counts(c, c.whole) if training else None
    rarer, _ = rarer_value(reference if reference is not None else _labels(c, c.whole))
    return lambda counts: np.asarray(entry.function(counts, rarer))


def _labels(c: Comparison, grouping: Grouping) -> Counts:
    """Label counts (L, C) of the test data as Counts without predictions."""
    label = c.pairs[grouping.name].label
    zero = np.zeros_like(label)
    return Counts(label, zero, zero, zero[:, 0], c.classes, c.positive)


def _class_sizes(c: Comparison) -> Floats:
    """Examples that any member predicts as the class: the denominators of precision."""
    cube, n_classes = c.cube, len(c.classes)
    cells = np.arange(cube.n_cells)
    known = (cube.prediction >= 0) & (cube.prediction < n_classes)
    pairs = np.unique((cells[:, None] * n_classes + cube.prediction)[known])
    return sums(pairs % n_classes, cube.count[pairs // n_classes], n_classes)


def _per_class(function: Callable[[Counts], Floats]) -> Evaluate:
    def evaluate(both: Both) -> PerMember:
        base, compressed = (function(side)[..., 0, :] for side in both[""])
        return PerMember(base, compressed)

    return evaluate


def per_slice(
    c: Comparison,
    entry: Metric,
    function: Callable[[Counts], Floats],
    chosen: list[Grouping],
    *,
    rest: bool,
) -> Evaluate:
    """The metric in every slice, and its excess over everyone outside the slice.

    Slices below `min_group` get a value but no interval, so replicates leave them out.
    """
    large = [sizes(c, g) >= c.options.min_group for g in chosen]

    def value(counts: Counts) -> Floats:
        return summary_of(entry, function(counts), counts)

    def spread(parts: list[Floats], keep: list[NDArray[np.bool_]]) -> Floats:
        """Values of the kept slices in the places of all of them."""
        if all(k.all() for k in keep):
            return np.concatenate(parts, axis=-1)
        everyone = np.full((*parts[0].shape[:-1], sum(len(k) for k in keep)), np.nan)
        everyone[..., np.concatenate(keep)] = np.concatenate(parts, axis=-1)
        return everyone

    def evaluate(both: Both) -> PerMember:
        keep = [np.ones_like(k) for k in large] if both.observed else large
        sides = [both.levels(g.name, k) for g, k in zip(chosen, keep, strict=True)]
        base, compressed = (spread([value(pair[i]) for pair in sides], keep) for i in (0, 1))
        if not rest:
            return PerMember(base, compressed)
        others = [both.other_levels(g.name, k) for g, k in zip(chosen, keep, strict=True)]
        other_base, other_compressed = (
            spread([value(pair[i]) for pair in others], keep) for i in (0, 1)
        )
        return PerMember(base, compressed, other_base, other_compressed)

    return evaluate


def _gaps(c: Comparison, entry: Metric) -> Iterator[Estimand]:
    reason = impossible(c, entry)
    if reason is None and c.positive is None and len(c.classes) == 2 and _of_a_class(entry):
        reason = NO_POSITIVE
    for grouping in c.groupings:
        slots = grouping_slots(c, grouping)
        n = np.array([sizes(c, grouping).sum()])
        usable = c.usable(grouping)
        why = reason or too_few_levels(c, grouping)
        if why:
            yield _without_value(c, entry, "grouping", why, slots=slots, n=n)
            continue
        yield Estimand(
            entry,
            slots,
            n,
            _gap(entry, grouping.name, usable),
            members_drawn=True,
            level=_named_level(entry, grouping, usable) if entry.level else None,
        )
        if entry.per_level is not None:
            yield _by_level(c, entry, entry.per_level, grouping)


def too_few_levels(c: Comparison, grouping: Grouping) -> str | None:
    """Why the levels of a column cannot be compared; None where two or more can."""
    if c.n_clusters < MIN_CLUSTERS:
        return f"not_estimable: {int(c.n_clusters)} clusters"
    if c.usable(grouping).sum() >= 2:
        return None
    clusters = f" and {MIN_CLUSTERS} clusters" if c.cube.unit_is_cluster else ""
    return f"not_estimable: fewer than two levels with {c.options.min_group} examples{clusters}"


def _of_a_class(entry: Metric) -> bool:
    """Whether a gap is of a rate that binary labels have for the positive class only."""
    return entry.of is not None and metric(entry.of).per_class


def grouping_slots(c: Comparison, grouping: Grouping) -> Slots:
    name = np.array([grouping.name], dtype=object)
    return plain_slots(c, "grouping", "grouping", 1, group=name)


def _gap(entry: Metric, name: str, usable: Any) -> Evaluate:
    def evaluate(both: Both) -> PerMember:
        base, compressed = (
            np.asarray(entry.function(side))[..., None] for side in both.levels(name, usable)
        )
        return PerMember(base, compressed)

    return evaluate


def _named_level(entry: Metric, grouping: Grouping, usable: Any) -> Callable[[Both], str | None]:
    def name(both: Both) -> str | None:
        assert entry.level is not None
        # Of the members' mean counts: with several members there is one answer, not one each.
        at = entry.level(both[grouping.name][1].levels(usable).averaged())
        place = int(np.asarray(at).reshape(-1)[0])
        return None if place < 0 else grouping.levels[int(np.flatnonzero(usable)[place])]

    return name


def _by_level(
    c: Comparison, entry: Metric, function: Callable[[Counts], Floats], grouping: Grouping
) -> Estimand:
    """What a metric of a column says about each of its levels."""
    kind = "group" if grouping.single else "intersection"
    usable = c.usable(grouping)

    def values(side: Counts) -> Floats:
        """Among the usable levels; one tiny level must not decide for all."""
        found = function(side)
        everyone = np.full((*found.shape[:-1], len(usable)), np.nan)
        everyone[..., usable] = found
        return everyone

    def evaluate(both: Both) -> PerMember:
        base, compressed = (values(side) for side in both.levels(grouping.name, usable))
        return PerMember(base, compressed)

    return Estimand(entry, slots_of(c, grouping, kind), sizes(c, grouping), evaluate)


def _changes(c: Comparison, entry: Metric) -> Iterator[Estimand]:
    """Comparison metrics from the mean rates of both sides."""
    if entry.inflation is None:
        yield from _normalised(c, entry)
        return

    def evaluate(both: Both) -> PerMember:
        first, second = both[""]
        return PerMember(None, np.asarray(entry.function(first, second, **policy)))

    policy: dict[str, Any] = {}
    if "zero_baseline" in entry.options:
        policy = {"zero_baseline": c.options.zero_baseline}
        if c.options.zero_baseline == "drop":
            policy["kept"] = kept_by_baseline(c)  # fixed on the data, held in replicates

    yield Estimand(
        entry,
        slots_of(c, c.whole, "overall"),
        sizes(c, c.whole),
        evaluate,
        members_drawn=True,
    )


def kept_by_baseline(c: Comparison) -> NDArray[np.bool_]:
    """Classes in which the baseline's mean FPR and FNR are above 0: those CEV and SDE can use."""
    tally = Tally(c.cube, (c.whole,), range(c.n_baseline), positive=c.positive)
    kept: NDArray[np.bool_] = kept_classes(tally.observed()[0].averaged())[0, 0]
    return kept


def _normalised(c: Comparison, entry: Metric) -> Iterator[Estimand]:
    per_class = entry.per_class

    def value(first: Counts, second: Counts) -> Floats:
        found = np.asarray(entry.function(first, second))
        return found[..., c.positive] if per_class and c.positive is not None else found

    def by_slice(chosen: list[Grouping]) -> Evaluate:
        def evaluate(both: Both) -> PerMember:
            parts = [value(*both[g.name]) for g in chosen]
            return PerMember(None, np.concatenate(parts, axis=-1))

        return evaluate

    if per_class and "class" in entry.by:

        def by_class(both: Both) -> PerMember:
            return PerMember(None, np.asarray(entry.function(*both[""]))[..., 0, :])

        yield Estimand(
            entry,
            slots_of(c, c.whole, "class"),
            c.pairs[""].label[0],
            by_class,
            members_drawn=True,
            changed=partial(changed_predictions, c, entry.changed, [c.whole], by_class=True),
        )
    if per_class and c.positive is None:
        return
    for kind in ("overall", "group", "intersection"):
        chosen = groupings_of(c, kind)
        level = "group" if kind == "intersection" else kind
        if chosen and level in entry.by:
            yield Estimand(
                entry,
                join_slots([slots_of(c, g, kind) for g in chosen], kind),
                np.concatenate([sizes(c, g) for g in chosen]),
                by_slice(chosen),
                members_drawn=True,
                changed=changed_in(c, entry, chosen),
            )


def _amplification(
    c: Comparison,
    wanted: Sequence[Metric],
    training: TrainingCounts | None,
    *,
    filters: bool,
    fixed_side: str | None,
) -> Iterator[Estimand]:
    """Bias and its amplification for every identity, and the worst case over all of them."""
    reason = impossible(c, wanted[0])
    if reason is not None:
        for entry in wanted:
            yield _without_value(c, entry, "overall", reason)
        return
    chosen = [g for g in c.groupings if g.single]
    watched: list[tuple[Grouping, Any, Sides]] = []
    for grouping in chosen:
        present = ~grouping.missing
        test = _labels(c, grouping).levels(present)
        train = training.counts(c, grouping) if training else None
        levels = [name for name, here in zip(grouping.levels, present, strict=True) if here]
        side = levels.index(fixed_side) if fixed_side in levels else None
        watched.append(
            (
                grouping,
                present,
                sides_of(
                    test,
                    None if train is None else train.levels(present),
                    filters=filters,
                    fixed_side=side,
                ),
            )
        )
    for entry in wanted:
        if entry.of is not None:
            yield _worst_identity(c, entry, watched)
            continue
        for grouping, present, sides in watched:
            yield Estimand(
                entry,
                kept_slots(slots_of(c, grouping, "group"), present),
                sizes(c, grouping)[present],
                _identity(entry.function, grouping.name, present, sides),
                status=np.array(
                    ["ok" if not r else f"not_estimable: {r}" for r in sides.reason], dtype=object
                ),
                changed=partial(_changed_levels, c, grouping, present),
            )


def _worst_identity(
    c: Comparison, entry: Metric, watched: Sequence[tuple[Grouping, Any, Sides]]
) -> Estimand:
    """The largest value over all identities that can be estimated."""
    if not any(sides.estimable.any() for _, _, sides in watched):
        why = "no identity with enough positives and a lean in the training data"
        return _without_value(c, entry, "overall", f"not_estimable: {why}")
    assert entry.of is not None
    function = metric(entry.of).function

    def worst(both: Both) -> PerMember:
        highest = []
        for i in (0, 1):
            parts = [
                np.asarray(function(both.levels(g.name, present)[i], sides))[..., sides.estimable]
                for g, present, sides in watched
            ]
            highest.append(np.concatenate(parts, axis=-1).max(axis=-1)[..., None])
        return PerMember(highest[0], highest[1])

    return Estimand(
        entry,
        slots_of(c, c.whole, "overall"),
        sizes(c, c.whole),
        worst,
        changed=partial(_changed_levels, c, c.whole, np.array([True])),
    )


def _changed_levels(c: Comparison, grouping: Grouping, present: NDArray[np.bool_]) -> Changed:
    """Bias is of all positive predictions, right or wrong."""
    return changed_predictions(c, None, [grouping]).rows(present).of_the_change_alone()


def _identity(function: Any, name: str, present: Any, sides: Sides) -> Evaluate:
    def evaluate(both: Both) -> PerMember:
        base, compressed = (
            np.asarray(function(side, sides)) for side in both.levels(name, present)
        )
        return PerMember(base, compressed)

    return evaluate


def _without_value(
    c: Comparison,
    entry: Metric,
    kind: str,
    reason: str,
    *,
    slots: Slots | None = None,
    n: Floats | None = None,
) -> Estimand:
    """A row that says why there is no number."""
    place = slots or slots_of(c, c.whole, kind)
    return Estimand(
        entry,
        place,
        sizes(c, c.whole) if n is None else n,
        None,
        status=np.full(len(place), reason, dtype=object),
    )
