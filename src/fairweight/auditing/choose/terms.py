"""Values of every variant on the data and on draws of it: one draw of examples for all variants.

The audit compares one variant with the baseline at a time, each with draws of its own. To choose,
all variants are drawn together, so that what an easy draw gives to all of them cancels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing.choose.objectives import (
    Objective,
    Requirement,
    Term,
    costs,
    is_outcome,
    needs_scores,
)
from fairweight.auditing.compare.comparison import (
    Comparison,
    Slots,
    TrainingCounts,
    groupings_of,
    slots_of,
)
from fairweight.auditing.compare.estimands import (
    Estimand,
    estimands,
    grouping_slots,
    sizes,
    too_few_levels,
)
from fairweight.auditing.compare.members import Both, Evaluate, PerMember
from fairweight.auditing.compare.replicates import in_batches
from fairweight.auditing.compare.scores import (
    KINDS,
    Statistic,
    flag_statistics,
    probabilities,
    score_statistics,
    slice_sizes,
    with_scores_only,
)
from fairweight.auditing.counts.counts import Counts, Tally, ratio, sums
from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import Grouping, groupings, whole
from fairweight.auditing.intervals.bootstrap import resampler
from fairweight.auditing.metrics.harm import WORST_GROUP_SHIFT, worst_group_shift
from fairweight.auditing.metrics.rates import summary_of
from fairweight.auditing.metrics.registry import Metric, metric
from fairweight.auditing.schema import Status
from fairweight.base.streams import stream
from fairweight.base.types import Floats, Progress
from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import Better

# How a metric is computed where it is wanted: of everyone, in a group, in a class or by column.
# The values are those of the audit: its own estimands are evaluated, of all variants at once.

CLASS = "class="


@dataclass(frozen=True)
class TermRow:
    """One row of one estimand: a metric in one group, class or column."""

    evaluate: Evaluate
    row: int
    rates_first: bool


@dataclass(frozen=True)
class Measure:
    """A term in one task; of several rows (columns of groups) the worst counts."""

    parts: tuple[TermRow, ...]
    better: str
    reason: str | None = None  # why there is no value


def measures(
    c: Comparison, training: TrainingCounts | None, terms: Sequence[Term]
) -> list[Measure]:
    """How each term is computed in one task."""
    wanted = [metric(name) for name in sorted({t.metric for t in terms if t.metric is not None})]
    found: list[Estimand] = []
    for entry in wanted:
        if entry.kind == "rate":
            found += _rates(c, entry)
        elif entry.name == WORST_GROUP_SHIFT:
            found += [_worst_shift(c, grouping) for grouping in c.groupings]
    others = {entry.name for entry in wanted if entry.kind != "rate"} - {WORST_GROUP_SHIFT}
    found += [e for e in estimands(c, training, only=others) if e.metric.name in others]
    return [_measure(found, term) for term in terms]


def _rates(c: Comparison, entry: Metric) -> Iterator[Estimand]:
    """A rate of everyone and of every group, and of every class where it has such a value."""
    for grouping in (c.whole, *c.groupings):
        kind = "overall" if grouping is c.whole else "group"

        def evaluate(both: Both, name: str = grouping.name) -> PerMember:
            counts = both[name][1]
            return PerMember(None, summary_of(entry, entry.function(counts), counts))

        yield Estimand(entry, slots_of(c, grouping, kind), sizes(c, grouping), evaluate)
    within = entry if entry.per_class else metric(entry.in_class) if entry.in_class else None
    if within is not None:

        def by_class(both: Both) -> PerMember:
            return PerMember(None, within.function(both[""][1])[..., 0, :])

        yield Estimand(entry, slots_of(c, c.whole, "class"), sizes(c, c.whole), by_class)


def _worst_shift(c: Comparison, grouping: Grouping) -> Estimand:
    """The worst group's shift of one grouping."""
    usable, slots = c.usable(grouping), grouping_slots(c, grouping)
    n = np.array([sizes(c, grouping).sum()])
    reason = None if usable.any() else too_few_levels(c, grouping)
    if reason is not None:
        return Estimand(metric(WORST_GROUP_SHIFT), slots, n, None, np.array([reason], dtype=object))

    def evaluate(both: Both) -> PerMember:
        one, other = both.levels(grouping.name, usable)
        return PerMember(None, worst_group_shift(one, other)[..., None])

    return Estimand(metric(WORST_GROUP_SHIFT), slots, n, evaluate)


def _measure(found: Sequence[Estimand], term: Term) -> Measure:
    """Which rows of the estimands a term is made of, or why it has none."""
    assert term.metric is not None
    entry = metric(term.metric)
    own = [estimand for estimand in found if estimand.metric is entry]
    everywhere = [(q, row) for q in own for row in range(len(q.slots))]
    if term.place:
        rows = [(q, row) for q, row in everywhere if _place(q.slots, row) == term.place]
    else:
        rows = [(q, row) for q, row in everywhere if q.slots.by in ("overall", "grouping")]
    if not rows and term.place:
        known = [_place(q.slots, row) for q, row in everywhere]
        raise UnknownNameError(
            f"The place of '{entry.name}@{term.place}',", term.place, [k for k in known if k]
        )
    if not rows:
        told = "it has no value for everyone; name a group, a class or a column behind an @"
        if "grouping" in entry.by:
            told = "there are no groups; name group columns (--groups)"
        return Measure((), entry.better, told)
    parts = tuple(
        TermRow(q.evaluate, row, q.rates_first) for q, row in rows if q.evaluate is not None
    )
    statuses = [Status.of(q.status[row]) for q, row in rows if q.status is not None]
    reason = next((status.reason for status in statuses if not status.ok), "")
    return Measure(parts, entry.better, None if parts else reason or "it has no value here")


def _place(slots: Slots, row: int) -> str:
    """What a term calls the place of a row; nothing for everyone."""
    if slots.by == "class":
        return f"{CLASS}{slots.cls[row]}"
    return "" if slots.by == "overall" or slots.cls[row] is not None else str(slots.group[row])


def worst(values: Floats, better: str) -> Floats:
    """The worst along the last axis; undefined where one of them is."""
    if values.shape[-1] == 1:
        return values[..., 0]
    bad = {"higher": -values, "zero": np.abs(values), "one": np.abs(values - 1)}
    at = bad.get(better, values).argmax(axis=-1)
    found: Floats = np.take_along_axis(values, at[..., None], axis=-1)[..., 0]
    return np.where(np.isnan(values).any(axis=-1), np.nan, found)


def by_variant(counts: Counts, share: Floats) -> Counts:
    """Members' counts (R, M, S, C) as mean counts of variants, weighed by `share` (V, M)."""
    predicted, correct, abstained = (
        np.einsum("vm,rm...->rv...", share, values)
        for values in (counts.predicted, counts.correct, counts.abstained)
    )
    return Counts(
        label=np.broadcast_to(counts.label[:, :1], correct.shape),
        predicted=predicted,
        correct=correct,
        abstained=abstained,
        classes=counts.classes,
        positive=counts.positive,
    )


# Terms made of scores: AUC, calibration errors, Brier score, uncertainty, top-5 accuracy.


@dataclass(frozen=True)
class ScoredTerm:
    """A statistic of scores, and the place that is wanted of it."""

    statistic: Statistic
    table: int
    row: int


class ScoredTerms:
    """All terms of scores in one task."""

    def __init__(self, c: Comparison, terms: Sequence[Term]) -> None:
        if c.cube.scores is None or with_scores_only(c)[1]:
            names = ", ".join(term.name for term in terms)
            raise InputError(
                f"{names} needs a score of every variant on every example, and some have none; "
                "add a score column, or leave it out."
            )
        self._size = slice_sizes(c)
        p = probabilities(c)
        statistics = (*score_statistics(c, p), *flag_statistics(c, p))
        places = [grouping for kind in KINDS for grouping in groupings_of(c, kind)]
        self.terms: list[ScoredTerm] = []
        for term in terms:
            own = [s for s in statistics if s.metric == term.metric]
            tables = [(s, i) for s in own for i in range(len(s.kinds))]
            found = [
                (level, ScoredTerm(statistic, table, row))
                for grouping, (statistic, table) in zip(places, tables, strict=False)
                for row, level in enumerate(grouping.levels)
            ]
            if not found:
                raise InputError(
                    f"'{term.name}' cannot be estimated: there are no scores of the kind it needs "
                    "(the positive class of two, --positive, or lists of scores)."
                )
            here = [one for place, one in found if place == term.place]
            if not here:
                known = [place for place, _ in found if place]
                raise UnknownNameError("The place", term.place, known)
            self.terms.append(here[0])

    def of_members(self, draws: NDArray[Any]) -> list[Floats]:
        """Every term's value of every member, (R, M), for drawn items (R, items)."""
        times = np.ascontiguousarray(draws.T, dtype=np.float64)
        size = self._size @ times
        found = []
        for term in self.terms:
            tables = [term.statistic.finish(m @ times, size) for m in term.statistic.matrices]
            found.append(np.stack([table[term.table][term.row] for table in tables], axis=1))
        return found


# Terms that are outcomes: ratios of sums, of everyone or of one group.


class OutcomeTerms:
    """All terms of outcomes in one task, of variants: sums over members come before ratios."""

    def __init__(self, c: Comparison, terms: Sequence[Term], share: Floats) -> None:
        cube = c.cube
        assert cube.outcome is not None
        value, size = cube.outcome.numerator, cube.outcome.denominator
        if value is None:  # 0 or 1: what is better is everybody's label
            right = (cube.prediction == cube.label[:, None]).astype(np.float64)
            value = right if cube.outcome.role.better == Better.HIGHER else 1.0 - right
        size = np.ones_like(value) if size is None else size
        weight = np.ones(cube.n_cells) if cube.weight is None else cube.weight
        # Of cells single examples are drawn, units with all that they have.
        item, n_items = np.arange(cube.n_cells), cube.n_cells
        if cube.unit is not None:
            item, n_items, weight = cube.unit, len(cube.unit_names), weight * cube.count
        places = {"": np.ones(cube.n_cells, dtype=np.bool_)}
        for grouping in c.groupings:
            places |= {level: grouping.code == row for row, level in enumerate(grouping.levels)}
        self._sums: list[list[Floats]] = []  # numerators, denominators: (items, variants)
        for term in terms:
            if term.place not in places:
                raise UnknownNameError(
                    f"The place of '{term.name}',", term.place, [name for name in places if name]
                )
            here = places[term.place] * weight
            self._sums.append(
                [
                    np.stack([sums(item, here * own, n_items) for own in share @ values.T], axis=1)
                    for values in (value, size)
                ]
            )

    def of_variants(self, draws: NDArray[Any]) -> list[Floats]:
        """Every term's value of every variant, (R, V), for drawn items (R, items)."""
        times = draws.astype(np.float64)
        return [ratio(times @ above, times @ below) for above, below in self._sums]


MOST_UNDEFINED = 0.05  # share of replicates without a value above which there is none at all


@dataclass(frozen=True)
class Setting:
    """How values are to be measured."""

    baseline: str
    groupings: tuple[str, ...]
    positive: dict[str | None, int | None]
    options: AuditOptions = field(default_factory=AuditOptions)
    training: TrainingCounts | None = None


@dataclass(frozen=True)
class MeasuredTerms:
    """Terms of variants, NaN where undefined; replicates draw the same examples for all."""

    variants: tuple[str, ...]
    values: Floats  # (V, K)
    replicates: Floats  # (R, V, K)
    notes: tuple[str, ...] = ()


def measured(
    cube: Cube, terms: Sequence[Term], setting: Setting, progress: Progress | None = None
) -> MeasuredTerms:
    """Measure metrics of all variants of a cube, the baseline among them."""
    ordered = _baseline_first(cube, setting.baseline)
    variants = tuple(dict.fromkeys(member.variant for member in ordered.members))
    share = np.array(
        [[member.variant == name for member in ordered.members] for name in variants], dtype=float
    )
    share /= share.sum(axis=1, keepdims=True)
    n_draws = setting.options.n_boot
    if not terms:
        nothing = np.zeros((n_draws, len(variants), 0))
        return MeasuredTerms(variants, nothing[0], nothing)
    tasks = [_Task(ordered, task, terms, setting, share) for task in ordered.tasks or (None,)]
    multiplicity = tasks[0].multiplicity
    by_task = [task.values(multiplicity[None, :].astype(float)) for task in tasks]
    # The same tasks for all variants and draws: those in which the baseline has a value.
    counts = np.array([~np.isnan(values[0, 0]) for values in by_task])
    notes = _task_notes(tasks, terms, counts)
    once = _mean(by_task, counts)[0]
    drawn = np.empty((n_draws, *once.shape))
    resample = resampler(multiplicity)
    made = 0

    def work(generators: list[np.random.Generator], sizes: list[int], start: int) -> None:
        nonlocal made
        for rng, size in zip(generators, sizes, strict=True):
            times = resample(rng, size)
            drawn[start : start + size] = _mean([task.values(times) for task in tasks], counts)
            start += size
            made += size
            if progress is not None:
                progress("drawing examples", made, n_draws)

    width = max(len(multiplicity), *(task.width for task in tasks))
    in_batches(stream(setting.options.random_state, "choose", "bootstrap"), n_draws, width, work)
    exact = _mean([task.correction for task in tasks], counts)[0]
    return MeasuredTerms(variants, *_defined(once + exact, drawn + exact), notes)


def _baseline_first(cube: Cube, baseline: str) -> Cube:
    """The cube with the baseline's members in front."""
    own = cube.member_indices(baseline)
    order = [*own, *(m for m in range(len(cube.members)) if m not in set(own))]
    scores = cube.scores
    if scores is not None:
        scores = replace(
            scores,
            score=None if scores.score is None else scores.score[:, order],
            vector=None if scores.vector is None else scores.vector[:, order],
            rank=None if scores.rank is None else scores.rank[:, order],
        )
    outcome = cube.outcome
    if outcome is not None:
        value, size = outcome.numerator, outcome.denominator
        outcome = replace(
            outcome,
            numerator=None if value is None else value[:, order],
            denominator=None if size is None else size[:, order],
        )
    return replace(
        cube,
        members=tuple(cube.members[m] for m in order),
        prediction=cube.prediction[:, order],
        scores=scores,
        outcome=outcome,
    )


class _Task:
    """One task: its counts, and how each term is made of them."""

    def __init__(
        self,
        cube: Cube,
        task: str | None,
        terms: Sequence[Term],
        setting: Setting,
        share: Floats,
    ) -> None:
        own = cube.of_task(task)
        self.name, self._share = task, share
        self._own_members = bool((share.sum(axis=0) == 1).all())
        self._n_baseline = len(own.member_indices(setting.baseline))
        c = Comparison(
            variant="",
            task=task,
            cube=own,
            n_baseline=self._n_baseline,
            positive=setting.positive[task],
            whole=whole(own),
            groupings=groupings(own, setting.groupings),
            options=setting.options,
        )
        self._c = c
        self._tally = Tally(
            own, (c.whole, *c.groupings), range(len(own.members)), positive=c.positive
        )
        self.multiplicity, self.width = self._tally.multiplicity, self._tally.size
        scored = [i for i, term in enumerate(terms) if needs_scores([term])]
        summed = [i for i, term in enumerate(terms) if is_outcome(term)]
        self._summed = OutcomeTerms(c, [terms[i] for i in summed], share) if summed else None
        self._summed_at = summed
        plain = [i for i in range(len(terms)) if i not in (*scored, *summed)]
        found = measures(c, setting.training, [terms[i] for i in plain])
        self.measures: list[tuple[int, Measure]] = list(zip(plain, found, strict=True))
        self._scored = ScoredTerms(c, [terms[i] for i in scored]) if scored else None
        self._scored_at, self._n_terms = scored, len(terms)
        self.correction = np.zeros((1, len(share), len(terms)))
        if self._scored is not None:
            times = self.multiplicity[None, :].astype(float)
            binned = self._scored.of_members(times)
            for i, term, values in zip(scored, self._scored.terms, binned, strict=True):
                if (exact := term.statistic.exact) is not None:  # what binning took of the values
                    self.correction[0, :, i] = share @ (exact[:, term.row] - values[0])

    def values(self, draws: NDArray[Any]) -> Floats:
        """(R, V, K) for drawn items (R, items); NaN where a term has no value in this task."""
        found = np.full((len(draws), len(self._share), self._n_terms), np.nan)
        if any(measure.parts for _, measure in self.measures):
            each, mean = self._sides(draws)
            for i, measure in self.measures:
                if not measure.parts:
                    continue
                rows = []
                for part in measure.parts:
                    made = part.evaluate(mean if part.rates_first else each)
                    row = made.compressed[..., part.row]
                    rows.append(row if part.rates_first else _of_variants(row, self._share))
                found[:, :, i] = worst(np.stack(rows, axis=-1), measure.better)
        if self._scored is not None:
            for i, members in zip(self._scored_at, self._scored.of_members(draws), strict=True):
                found[:, :, i] = _of_variants(members, self._share)
        if self._summed is not None:
            for i, values in zip(self._summed_at, self._summed.of_variants(draws), strict=True):
                found[:, :, i] = values
        return found

    def _sides(self, draws: NDArray[Any]) -> tuple[Both, Both]:
        """Mean baseline against all members, and against the mean member of every variant."""
        c, k = self._c, self._n_baseline
        counted = self._tally.read(self._tally.flat(draws))
        each, mean = {}, {}
        for grouping, counts in zip((c.whole, *c.groupings), counted, strict=True):
            own = replace(
                counts,
                label=counts.label[..., :k, :, :],
                predicted=counts.predicted[..., :k, :, :],
                correct=counts.correct[..., :k, :, :],
                abstained=counts.abstained[..., :k, :],
            ).averaged()
            each[grouping.name] = (own, counts)
            one = counts if self._own_members else by_variant(counts, self._share)
            mean[grouping.name] = (own, one)
        return Both(each, observed=True), Both(mean, observed=True)


def _of_variants(members: Floats, share: Floats) -> Floats:
    """Mean over the members of every variant; NaN of those with an undefined member alone."""
    undefined = np.isnan(members)
    found: Floats = np.where(undefined, 0.0, members) @ share.T
    if undefined.any():
        found[undefined.astype(float) @ share.T > 0] = np.nan
    return found


def _task_notes(
    tasks: Sequence[_Task], terms: Sequence[Term], counts: NDArray[np.bool_]
) -> tuple[str, ...]:
    """What is said of terms that some tasks cannot give; an error where none can."""
    notes = []
    for i, term in enumerate(terms):
        reasons = [m.reason for task in tasks for at, m in task.measures if at == i and m.reason]
        if len(reasons) == len(tasks):
            raise InputError(
                f"'{term.name}' cannot be estimated: {reasons[0]}; choose by something else "
                "(--objective, --require)."
            )
        n = int(counts[:, i].sum())
        if not n:
            raise InputError(
                f"'{term.name}' is undefined for the baseline"
                f"{' in every task' if len(tasks) > 1 else ''}; choose by something else."
            )
        if n < len(tasks):
            why = reasons[0] if reasons else "it is undefined there for the baseline"
            notes.append(
                f"{term.name} is the mean over {n} of {len(tasks)} tasks; the others have no value "
                f"({why})."
            )
    return tuple(notes)


def _mean(by_task: Sequence[Floats], counts: NDArray[np.bool_]) -> Floats:
    """Mean over the tasks that count for each term, (tasks, terms); NaN where one has no value."""
    if len(by_task) == 1:
        return by_task[0]
    kept = counts[:, None, None, :]
    found: Floats = np.where(kept, np.stack(by_task), 0.0).sum(axis=0) / counts.sum(axis=0)
    return found


def _defined(values: Floats, drawn: Floats) -> tuple[Floats, Floats]:
    """Values without those whose replicates are mostly undefined; stray gaps are filled."""
    undefined = np.isnan(drawn)
    if not undefined.any() and not np.isnan(values).any():
        return values, drawn
    lost = np.isnan(values) | (undefined.mean(axis=0) > MOST_UNDEFINED)
    kept = np.where(lost, np.nan, values)
    count = np.maximum((~undefined).sum(axis=0), 1)
    middle = np.where(undefined, 0.0, drawn).sum(axis=0) / count
    filled: Floats = np.where(lost, np.nan, np.where(undefined, middle, drawn))
    return kept, filled


# The request, and the values of every candidate: metrics and costs side by side.


@dataclass(frozen=True)
class ChoiceRequest:
    """What is wanted of a variant."""

    objectives: tuple[Objective, ...]
    requirements: tuple[Requirement, ...] = ()
    weights: Floats | None = None  # of the objectives; None: the frontier, and no single best
    excluded: tuple[str, ...] = ()
    margin: float | None = None  # how far below the best, in units of the value, is near it
    # Variant → verdict of a policy (`pass`, `fail`, `cannot tell`): only a pass qualifies.
    verdicts: Mapping[str, str] | None = None

    @property
    def terms(self) -> tuple[Term, ...]:
        """Every number that is needed, once."""
        own = [objective.term for objective in self.objectives]
        return tuple(dict.fromkeys([*own, *(r.term for r in self.requirements)]))


@dataclass(frozen=True)
class TermValues:
    """The terms of all candidates, on the data and in replicates."""

    variants: tuple[str, ...]
    terms: tuple[Term, ...]
    values: Floats  # (V, T)
    replicates: Floats  # (R, V, T)

    def of(self, term: Term) -> tuple[Floats, Floats]:
        """A term's values (V,) and replicates (R, V)."""
        at = self.terms.index(term)
        return self.values[:, at], self.replicates[:, :, at]


def metrics_of(request: ChoiceRequest) -> list[Term]:
    """The terms that examples are needed for."""
    return [term for term in request.terms if term.noisy]


def term_values(
    found: MeasuredTerms, request: ChoiceRequest, table: pd.DataFrame | None
) -> tuple[TermValues, list[str]]:
    """Metrics and costs side by side, of the variants that have every objective."""
    for name in request.excluded:
        if name not in found.variants:
            raise UnknownNameError("The variant of --exclude", name, found.variants)
    keep = np.array([name not in request.excluded for name in found.variants])
    if not keep.any():
        raise InputError("--exclude leaves no variant to choose from; exclude fewer.")
    names = [name for name, kept in zip(found.variants, keep, strict=True) if kept]
    values = np.empty((len(names), len(request.terms)))
    replicates = np.empty((len(found.replicates), len(names), len(request.terms)))
    metrics = metrics_of(request)
    for i, term in enumerate(request.terms):
        if term.column is not None and table is not None:
            values[:, i] = costs(table, term.column, names)
            replicates[:, :, i] = values[:, i]
        else:
            at = metrics.index(term)
            values[:, i] = found.values[keep, at]
            replicates[:, :, i] = found.replicates[:, keep, at]
    whole = np.asarray(np.isfinite(values).all(axis=1))
    if not whole.any():
        lost = request.terms[int(np.isnan(values).all(axis=0).argmax())].name
        raise InputError(
            f"'{lost}' has no value for any variant, or none in more than {MOST_UNDEFINED:.0%} of "
            "its draws; choose by something else, or from more examples."
        )
    notes = []
    if not whole.all():
        left = [name for name, kept in zip(names, whole, strict=True) if not kept]
        notes.append(f"Left out, because a number is undefined for them: {', '.join(left)}.")
    kept_names = tuple(name for name, kept in zip(names, whole, strict=True) if kept)
    return TermValues(kept_names, request.terms, values[whole], replicates[:, whole]), notes
