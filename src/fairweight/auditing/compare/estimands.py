"""What is bootstrapped: every metric without a closed form, its rows, how to evaluate them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
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
    all_slots,
    groupings_of,
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
    not_drawn: str | None = None  # why these rows have no limits, where their metric has some

    @property
    def no_limits(self) -> str | None:
        """Why there are neither limits nor a test."""
        return self.not_drawn or self.metric.no_limits

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


MANY = "many groups and classes (--drawn-limits all)"


def drawn_where_few(c: Comparison, wanted: Iterable[Estimand]) -> Iterator[Estimand]:
    """The same, without draws by group where groups × classes are many.

    Every draw would count all classes in all groups: 95 % of the time of an audit of 1,000 classes
    and 16 columns. Left are overall, by class, what a policy names, and the gaps that are of right
    and wrong alone.
    """
    named = {name for name, _ in c.options.confirmatory}
    for estimand in wanted:
        entry, by = estimand.metric, estimand.slots.by
        alone = by == "grouping" and entry.without_classes
        whole = by in ("overall", "class")
        if not c.draws_some or whole or alone or entry.name in named or estimand.evaluate is None:
            yield estimand
        else:
            yield replace(estimand, not_drawn=MANY, changed=None)


def impossible(c: Comparison, entry: Metric) -> str | None:
    """Why a metric that needs binary labels has no value here."""
    if not ({"positive", "binary"} & entry.needs):
        return None
    if len(c.classes) != 2:
        return f"not_estimable: for binary labels, and there are {len(c.classes)} classes"
    if "positive" in entry.needs and c.positive is None:
        return NO_POSITIVE
    return None


def sizes(c: Comparison, *groupings: Grouping) -> Floats:
    """Examples in each level of the groupings, one grouping after the other."""
    return np.concatenate([sums(g.code, c.cube.count, len(g.levels)) for g in groupings])


def each_side(
    value: Callable[..., Floats], name: str = "", keep: NDArray[np.bool_] | None = None, *more: Any
) -> Evaluate:
    """A function of one side's counts in (some levels of) a grouping, of either side by itself."""

    def evaluate(both: Both) -> PerMember:
        sides = both[name] if keep is None else both.levels(name, keep)
        base, compressed = (np.asarray(value(side, *more)) for side in sides)
        return PerMember(base, compressed)

    return evaluate


def _values(c: Comparison, entry: Metric, training: TrainingCounts | None) -> Iterator[Estimand]:
    """Functions of one model's counts: overall, by class and by group."""
    reason = impossible(c, entry)
    if reason is None and entry.per_class and len(c.classes) == 2 and c.positive is None:
        reason = NO_POSITIVE
    closed = entry.kind == "rate"  # rates have a closed form wherever they are of one class
    function: Callable[[Counts], Floats] = entry.function
    if entry.reference == "rarer" and len(c.classes) == 2:
        reference = training.counts(c, c.whole) if training else None
        rarer, _ = rarer_value(reference if reference is not None else _labels(c, c.whole))
        function = lambda counts: np.asarray(entry.function(counts, rarer))  # noqa: E731
    if entry.per_class and "class" in entry.by and not closed:
        # The denominators of precision: examples that any member predicts as the class.
        cube, n_classes = c.cube, len(c.classes)
        cells = np.arange(cube.n_cells)
        known = (cube.prediction >= 0) & (cube.prediction < n_classes)
        pairs = np.unique((cells[:, None] * n_classes + cube.prediction)[known])
        yield Estimand(
            entry,
            slots_of(c, c.whole, "class"),
            sums(pairs % n_classes, cube.count[pairs // n_classes], n_classes),
            each_side(lambda counts: function(counts)[..., 0, :]),
            changed=partial(changed_predictions, c, entry.changed, [c.whole], by_class=True),
        )
    if closed and reason is None and c.positive is not None:
        return
    if reason is not None:
        yield _without_value(c, entry, "overall", reason)
        return
    for kind, chosen in _slices(c, entry):
        yield Estimand(
            entry,
            all_slots(c, kind),
            sizes(c, *chosen),
            per_slice(c, entry, function, chosen, rest=kind != "overall"),
            changed=changed_in(c, entry, chosen),
        )


def _slices(c: Comparison, entry: Metric) -> Iterator[tuple[str, list[Grouping]]]:
    """Kinds of rows that are slices of the examples, with their groupings."""
    for kind in ("overall", "group", "intersection"):
        chosen = groupings_of(c, kind)
        if chosen and ("group" if kind == "intersection" else kind) in entry.by:
            yield kind, chosen


def changed_in(c: Comparison, entry: Metric, chosen: Sequence[Grouping]) -> Callable[[], Changed]:
    """How many changed predictions enter a metric in the levels of some groupings."""
    mean = not entry.per_class or c.positive is None
    return partial(changed_predictions, c, entry.changed or entry.event, chosen, mean=mean)


def _labels(c: Comparison, grouping: Grouping) -> Counts:
    """Label counts (L, C) of the test data as Counts without predictions."""
    label = c.pairs[grouping.name].label
    zero = np.zeros_like(label)
    return Counts(label, zero, zero, zero[:, 0], c.classes, c.positive)


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

    def values(
        sides: list[tuple[Counts, Counts]], keep: list[NDArray[np.bool_]]
    ) -> tuple[Floats, Floats]:
        """Of either side: values of the kept slices in the places of all of them."""
        made = []
        for i in (0, 1):
            parts = [summary_of(entry, function(pair[i]), pair[i]) for pair in sides]
            found = np.concatenate(parts, axis=-1)
            if not all(k.all() for k in keep):
                everyone = np.full((*found.shape[:-1], sum(map(len, keep))), np.nan)
                everyone[..., np.concatenate(keep)] = found
                found = everyone
            made.append(found)
        return made[0], made[1]

    def evaluate(both: Both) -> PerMember:
        keep = [np.ones_like(k) for k in large] if both.observed else large
        named = [(g.name, k) for g, k in zip(chosen, keep, strict=True)]
        base, compressed = values([both.levels(*one) for one in named], keep)
        if not rest or not both.excess:
            return PerMember(base, compressed)
        others = values([both.other_levels(*one) for one in named], keep)
        return PerMember(base, compressed, *others)

    return evaluate


def _gaps(c: Comparison, entry: Metric) -> Iterator[Estimand]:
    """Functions of all levels of a column, and what they say about each level."""
    reason = impossible(c, entry)
    of_a_class = entry.of is not None and metric(entry.of).per_class
    if reason is None and c.positive is None and len(c.classes) == 2 and of_a_class:
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
            each_side(
                lambda counts: np.asarray(entry.function(counts))[..., None], grouping.name, usable
            ),
            members_drawn=True,
            level=partial(_level_name, entry, grouping, usable) if entry.level else None,
        )
        if entry.per_level is not None:
            kind = "group" if grouping.single else "intersection"
            evaluate = each_side(_in_places, grouping.name, usable, entry.per_level, usable)
            yield Estimand(entry, slots_of(c, grouping, kind), sizes(c, grouping), evaluate)


def _level_name(
    entry: Metric, grouping: Grouping, usable: NDArray[np.bool_], both: Both
) -> str | None:
    """The level that a metric of a column is of."""
    assert entry.level is not None
    # Of the members' mean counts: with several members there is one answer, not one each.
    at = entry.level(both[grouping.name][1].levels(usable).averaged())
    place = int(np.asarray(at).reshape(-1)[0])
    return None if place < 0 else grouping.levels[int(np.flatnonzero(usable)[place])]


def _in_places(
    side: Counts, function: Callable[[Counts], Floats], usable: NDArray[np.bool_]
) -> Floats:
    """Values of the usable levels in the places of all; one tiny level must not decide for all."""
    found = function(side)
    everyone = np.full((*found.shape[:-1], len(usable)), np.nan)
    everyone[..., usable] = found
    return everyone


def too_few_levels(c: Comparison, grouping: Grouping) -> str | None:
    """Why the levels of a column cannot be compared; None where two or more can."""
    if c.n_clusters < MIN_CLUSTERS:
        return f"not_estimable: {int(c.n_clusters)} clusters"
    if c.usable(grouping).sum() >= 2:
        return None
    clusters = f" and {MIN_CLUSTERS} clusters" if c.cube.unit_is_cluster else ""
    return f"not_estimable: fewer than two levels with {c.options.min_group} examples{clusters}"


def grouping_slots(c: Comparison, grouping: Grouping) -> Slots:
    name = np.array([grouping.name], dtype=object)
    return plain_slots(c, "grouping", "grouping", 1, group=name)


def _changes(c: Comparison, entry: Metric) -> Iterator[Estimand]:
    """Comparison metrics from the mean rates of both sides."""
    policy: dict[str, Any] = {}
    if "zero_baseline" in entry.options:
        policy = {"zero_baseline": c.options.zero_baseline}
        if c.options.zero_baseline == "drop":
            policy["kept"] = kept_by_baseline(c)  # fixed on the data, held in replicates
    composite = entry.inflation is not None  # CEV and SDE have no rows but the overall one

    def value(both: Both, names: Sequence[str], cls: int | None = None) -> PerMember:
        parts = [np.asarray(entry.function(*both[name], **policy)) for name in names]
        if cls is not None:
            parts = [part[..., cls] for part in parts]
        return PerMember(None, np.concatenate(parts, axis=-1))

    def by_class(both: Both) -> PerMember:
        return PerMember(None, np.asarray(entry.function(*both[""]))[..., 0, :])

    if entry.per_class and "class" in entry.by:
        yield Estimand(
            entry,
            slots_of(c, c.whole, "class"),
            c.pairs[""].label[0],
            by_class,
            members_drawn=True,
            changed=partial(changed_predictions, c, entry.changed, [c.whole], by_class=True),
        )
    if entry.per_class and c.positive is None:
        return
    cls = c.positive if entry.per_class else None
    for kind, chosen in _slices(c, entry):
        if composite and kind != "overall":
            continue
        yield Estimand(
            entry,
            all_slots(c, kind),
            sizes(c, *chosen),
            partial(value, names=[g.name for g in chosen], cls=cls),
            members_drawn=True,
            changed=None if composite else changed_in(c, entry, chosen),
        )


def kept_by_baseline(c: Comparison) -> NDArray[np.bool_]:
    """Classes in which the baseline's mean FPR and FNR are above 0: those CEV and SDE can use."""
    tally = Tally(c.cube, (c.whole,), range(c.n_baseline), positive=c.positive)
    kept: NDArray[np.bool_] = kept_classes(tally.observed()[0].averaged())[0, 0]
    return kept


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
    watched: list[tuple[Grouping, NDArray[np.bool_], Sides]] = []
    for grouping in groupings_of(c, "group"):
        present = ~grouping.missing
        test = _labels(c, grouping).levels(present)
        train = training.counts(c, grouping) if training else None
        if train is not None:
            train = train.levels(present)
        levels = [name for name, here in zip(grouping.levels, present, strict=True) if here]
        side = levels.index(fixed_side) if fixed_side in levels else None
        sides = sides_of(test, train, filters=filters, fixed_side=side)
        watched.append((grouping, present, sides))

    def worst(both: Both, function: Callable[[Counts, Sides], Floats]) -> PerMember:
        """The largest value over all identities that can be estimated."""
        highest = []
        for i in (0, 1):
            parts = [
                np.asarray(function(both.levels(g.name, present)[i], sides))[..., sides.estimable]
                for g, present, sides in watched
            ]
            highest.append(np.concatenate(parts, axis=-1).max(axis=-1)[..., None])
        return PerMember(highest[0], highest[1])

    for entry in wanted:
        if entry.of is None:
            for grouping, present, sides in watched:
                yield Estimand(
                    entry,
                    kept_slots(slots_of(c, grouping, "group"), present),
                    sizes(c, grouping)[present],
                    each_side(entry.function, grouping.name, present, sides),
                    status=np.array(
                        ["ok" if not r else f"not_estimable: {r}" for r in sides.reason],
                        dtype=object,
                    ),
                    changed=partial(_changed_levels, c, grouping, present),
                )
        elif not any(sides.estimable.any() for _, _, sides in watched):
            why = "no identity with enough positives and a lean in the training data"
            yield _without_value(c, entry, "overall", f"not_estimable: {why}")
        else:
            yield Estimand(
                entry,
                slots_of(c, c.whole, "overall"),
                sizes(c, c.whole),
                partial(worst, function=metric(entry.of).function),
                changed=partial(_changed_levels, c, c.whole, np.array([True])),
            )


def _changed_levels(c: Comparison, grouping: Grouping, present: NDArray[np.bool_]) -> Changed:
    """Bias is of all positive predictions, right or wrong."""
    return changed_predictions(c, None, [grouping]).rows(present).of_the_change_alone()


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
