"""Rows with `task` null: the mean of a metric over the tasks of a multi-label table.

The tasks share their examples, so one draw takes an example (or cluster) with all its tasks. Every
task is therefore replicated with the same random numbers on the same units, and replicates are
averaged over tasks before an interval is made of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from fairweight.auditing.columns import DIVISORS
from fairweight.auditing.compare.bootstrap import method_limits, model_limits
from fairweight.auditing.compare.comparison import (
    Comparison,
    Options,
    Slots,
    TrainingCounts,
    all_slots,
    comparison,
    groupings_of,
    join_slots,
    slots_of,
)
from fairweight.auditing.compare.estimands import (
    Estimand,
    changed_in,
    estimands,
    grouping_slots,
    per_slice,
    sizes,
    too_few_levels,
)
from fairweight.auditing.compare.estimate import Block, Estimate, Family, status
from fairweight.auditing.compare.flips import flip_metrics, flip_statistic, share_of_pairs
from fairweight.auditing.compare.harm import untested
from fairweight.auditing.compare.influence import Changed
from fairweight.auditing.compare.lead import mean_test
from fairweight.auditing.compare.members import PerMember, Values
from fairweight.auditing.compare.replicates import Replicated, replicate, with_context
from fairweight.auditing.compare.retraining import Statistic, context
from fairweight.auditing.compare.rows import (
    LeftOut,
    build,
    drawn_rows,
    refused_if_harmed,
    without_baseline_errors,
)
from fairweight.auditing.compare.scores import (
    flag_statistics,
    mean_of,
    probabilities,
    replicate_scores,
    score_statistics,
    with_scores_only,
)
from fairweight.auditing.compare.simultaneous import Signs
from fairweight.auditing.compare.two_way import interval_name
from fairweight.auditing.counts.counts import ratio, sums
from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import Grouping, groupings
from fairweight.auditing.intervals.excess import normal_z
from fairweight.auditing.metrics.harm import WORST_GROUP_SHIFT
from fairweight.auditing.metrics.registry import metric, metrics
from fairweight.auditing.pairing import Parents
from fairweight.base.types import Floats, Limits

Drawn: TypeAlias = tuple[Estimand, Replicated]

FEWEST_REPLICATES = 500
MOST_DRAWN = 600_000_000  # replicates × tasks × units: every replicate costs all tasks
KINDS = ("overall", "group", "intersection", "grouping")


def task_mean_rows(
    cube: Cube,
    scored: Cube | None,
    baseline: str,
    variant: str,
    grouping_names: tuple[str, ...],
    positive: dict[str | None, int | None],
    options: Options,
    training: TrainingCounts | None,
    *,
    filters: bool = True,
    fixed_side: str | None = None,
    parents: Parents | None = None,
    signs: Signs | None = None,
    divisors: tuple[int, ...] = DIVISORS,
) -> list[Block]:
    """Mean over tasks of every metric with overall, group or column rows."""
    affordable = MOST_DRAWN // max(1, len(cube.tasks) * len(cube.unit_names))
    limited = replace(options, n_boot=min(options.n_boot, max(FEWEST_REPLICATES, affordable)))

    def of_task(task: str, source: Cube, *, scores: bool) -> Comparison:
        return comparison(
            source,
            baseline=baseline,
            variant=variant,
            task=task,
            grouping_names=grouping_names,
            positive=positive[task],
            options=limited,
            keep_scores=scores,
            keep_units=True,
            stream="mean over tasks",
            parents=parents,
            divisors=divisors,
        )

    found: dict[tuple[str, str], list[Drawn]] = {}
    left_out: list[LeftOut] = []
    of_some: set[tuple[str, str]] = set()  # not of all examples: of one label, or with scores
    for task in cube.tasks:
        c = everyone = of_task(task, cube, scores=False)
        left_out += without_baseline_errors(c)
        own = estimands(c, training, filters=filters, fixed_side=fixed_side)
        made = _of_counts(c, [*_rates(c), *own]) | _flips(c)
        if scored is not None:
            c, _ = with_scores_only(of_task(task, scored, scores=True))
            if c.cube.n_cells:
                p = probabilities(c)
                statistics = [*score_statistics(c, p), *flag_statistics(c, p)]
                of_scores = replicate_scores(c, statistics, draw_all=True)
                made |= {key: (_table(c, *key), drawn) for key, drawn in of_scores.items()}
        for key, family in made.items():
            found.setdefault(key, []).append(family)
            if not np.array_equal(family[0].n, _everyone(everyone, key[1])):
                of_some.add(key)
    together = replace(of_task(cube.tasks[0], cube, scores=False), task=None)
    distinct = distinct_examples(cube, grouping_names)
    averaged = {
        key: _averaged(together, tasks, None if key in of_some else distinct)
        for key, tasks in found.items()
    }
    together = replace(together, signs=signs)
    blocks = [
        _with_excess(together, refused_if_harmed(rows, left_out))
        for rows in drawn_rows(together, [[family] for family in averaged.values()])
    ]
    for kind in ("group", "intersection"):
        blocks += _worst_shift(together, averaged.get(("accuracy", kind)))
    blocks += mean_heterogeneity(together, blocks, "accuracy")
    present = {str(b["metric"][0]) for b in blocks}
    why = np.array(["not_estimable: no mean over tasks"], dtype=object)
    place, n = slots_of(together, together.whole, "overall"), np.array([float(cube.n_examples)])
    absent = [
        Estimand(replace(e, aggregation="seeds_first"), place, n, None, why)  # nothing is averaged
        for e in metrics()
        if e.name not in present and e.kind != "outcome" and not e.only_unlabelled
    ]
    blocks += drawn_rows(together, [[(estimand, None)] for estimand in absent])
    return blocks


def _of_counts(c: Comparison, wanted: Iterable[Estimand]) -> dict[tuple[str, str], Drawn]:
    """Families of one task that are functions of counts, each as a single table."""
    alive = [q for q in wanted if q.slots.kind in KINDS and q.evaluate is not None]
    grouped: dict[tuple[str, str], list[Drawn]] = {}
    for estimand, replicated in zip(alive, replicate(c, alive), strict=True):
        key = (estimand.metric.name, estimand.slots.kind)
        grouped.setdefault(key, []).append((estimand, replicated))
    made = {}
    for key, parts in grouped.items():
        first = parts[0][0]
        whole = replace(
            first,
            slots=join_slots([e.slots for e, _ in parts], key[1]),
            n=np.concatenate([e.n for e, _ in parts]),
            status=first.status if len(parts) == 1 else None,
        )
        made[key] = whole, Replicated.beside([r for _, r in parts])
    return made


def _flips(c: Comparison) -> dict[tuple[str, str], Drawn]:
    """Shares of flipped predictions, as means whose baseline is nothing."""
    statistics = []
    for entry in flip_metrics():
        assert entry.pairs is not None
        share = np.zeros((c.cube.n_cells, len(c.cube.members)))
        share[:, c.n_baseline :] = share_of_pairs(c, entry.pairs)[:, None]
        statistics.append(mean_of(c, entry.name, share))
    return {
        key: (
            _table(c, *key),
            Replicated(
                Values(None, made.observed.compressed),
                None if made.bootstrap is None else Values(None, made.bootstrap.compressed),
                None,
                statistic=flip_statistic(c, metric(key[0]), key[1]),
                changed=made.changed,
            ),
        )
        for key, made in replicate_scores(c, statistics, swaps=False).items()
    }


def _table(c: Comparison, name: str, kind: str) -> Estimand:
    return Estimand(metric(name), all_slots(c, kind), sizes(c, *groupings_of(c, kind)), None)


def _worst_shift(c: Comparison, accuracy: Drawn | None) -> list[Block]:
    """The least shift of the mean over tasks, limits simultaneous over a column's levels."""
    if accuracy is None:
        return []
    estimand, made = accuracy
    shift = made.observed.change[0]
    state = status(c, estimand.n, estimand.slots.clusters)
    inside = (state == "ok") & ~estimand.slots.outside & np.isfinite(shift)
    rows = []
    for grouping in groupings_of(c, estimand.slots.kind):
        # Levels by name: a level may be absent from some tasks.
        own = np.array([_level_of(str(name), grouping) for name in estimand.slots.group])
        usable = np.flatnonzero(inside & own)
        if not len(usable):
            continue
        worst = int(np.argmin(shift[usable]))
        columns: dict[str, Any] = {"level": estimand.slots.group[usable[worst]]}
        if made.statistic is not None:
            columns |= context(c.retraining, partial(_least_of, made.statistic, usable))
        slots, n = grouping_slots(c, grouping), np.array([estimand.n[own].sum()])
        for scope, limits_of in (("model", model_limits), ("method", method_limits)):
            if scope == "method" and c.one_pair:
                continue

            def limits(
                alpha: float | Floats, limits_of: Any = limits_of, usable: Any = usable
            ) -> Limits:
                level = np.reshape(alpha, 1) / len(usable)
                low, high = limits_of(c, estimand, made, level, "change")
                return np.fmin.reduce(low[:, usable], 1), np.fmin.reduce(high[:, usable], 1)

            known = bool(np.isfinite(limits(c.options.alpha)[0][0]))
            why = c.no_method
            reasons = [] if made.changed is None else made.changed.reasons()[usable].tolist()
            few = [reason for reason in reasons if reason is not None]
            if known and few:  # a level without limits may be the worst
                known, why = False, few[0]
            how = "percentile" if scope == "model" else interval_name(c)
            value = shift[usable[worst : worst + 1]]
            family = Family(
                metric(WORST_GROUP_SHIFT),
                slots,
                n,
                Estimate(value, limits) if known else Estimate.alone(value),
                status=status(c, n, slots.clusters)
                if known
                else np.array([f"not_estimable: {why}"], object),
                interval=f"minimum of simultaneous {how} limits" if known else None,
                columns=columns,
            )
            rows.append(build(c, family, scope))
    return rows


def _least_of(
    statistic: Statistic, rows: NDArray[np.intp], first: Floats, second: Floats
) -> Floats:
    least: Floats = statistic(first, second)[:, rows].min(axis=1, keepdims=True)
    return least


def _level_of(name: str, grouping: Grouping) -> bool:
    """Whether a level's name is one of a grouping's: `a=x & b=y` of `a*b`."""
    parts = name.split(" & ") if len(grouping.columns) > 1 else [name]
    return len(parts) == len(grouping.columns) and all(
        part.startswith(f"{column}=") for part, column in zip(parts, grouping.columns, strict=True)
    )


def _with_excess(c: Comparison, rows: Block) -> Block:
    """Accuracy by group: the excess of the mean over tasks with its test and limits.

    Linearised t over examples (clusters), which keep their tasks together.
    """
    kind = str(rows["kind"][0])
    mean = None if c.signs is None else c.signs.means.get((c.variant, kind))
    draws = c.draws(kind)
    own = rows["metric"][0] == "accuracy" and rows["scope"][0] == "model"
    if not own or kind == "overall" or mean is None or draws is None:
        return rows
    value, p, limits = mean_test(mean, "excess")
    alpha = c.options.alpha
    low, high = limits(alpha)
    sim_low, sim_high = limits(float(2 * ndtr(-draws.z_star(alpha))))
    place = {name: i for i, name in enumerate(mean.groups)}
    at = np.array([place[name] for name in rows["group"]])
    inside = np.isfinite(np.asarray(rows["n_family"], dtype=float))
    columns = {
        "excess_shift": value, "excess_low": low, "excess_high": high, "excess_p": p,
        "excess_sim_low": sim_low, "excess_sim_high": sim_high,
    }  # fmt: skip
    made = {name: values[at] for name, values in columns.items()}
    made["excess_p_adjusted"] = np.where(inside, draws.adjusted(p)[at], np.nan)
    return {**rows, **made}


def mean_heterogeneity(c: Comparison, blocks: Sequence[Block], name: str) -> list[Block]:
    """Does the change differ by column over all tasks? From the excesses of the mean."""
    parts = []
    for rows in blocks:
        kind, draws = str(rows["kind"][0]), c.draws(str(rows["kind"][0]))
        own = rows["metric"][0] == name and rows["scope"][0] == "model"
        if not own or kind == "overall" or draws is None or c.signs is None:
            continue
        mean = c.signs.means[(c.variant, kind)]
        order = {name: i for i, name in enumerate(rows["group"])}
        at = np.array([order[name] for name in mean.groups])
        alone = draws.column_p(rows["excess_p"][at])
        for k, grouping in enumerate(groupings_of(c, kind)):
            here = at[mean.column == k]
            p, adjusted = rows["excess_p"][here], rows["excess_p_adjusted"][here]
            known = np.isfinite(adjusted)
            least = int(np.nanargmin(np.where(known, p, np.inf))) if known.any() else -1
            why = None if known.sum() >= 2 else too_few_levels(c, grouping)
            parts.append({
                "slots": grouping_slots(c, grouping),
                "n": float(rows["n"][here].sum()),
                "compressed": float(normal_z(p[least])) if known.any() else np.nan,
                "p_value": alone[k],
                "p_adjusted": float(np.nanmin(adjusted)) if known.any() else np.nan,
                "level": str(rows["group"][here][least]) if known.any() else None,
                "status": why or ("ok" if known.any() else "not_estimable: undefined"),
                "family": f"confirmatory: heterogeneity by {kind} (random signs)"
                if known.any()
                else None,
                "n_family": float(np.nanmax(rows["n_family"])) if known.any() else np.nan,
            })  # fmt: skip
    if not parts:
        return []
    slots = join_slots([part.pop("slots") for part in parts], "grouping")
    columns: dict[str, Any] = {name: [part[name] for part in parts] for name in parts[0]}
    n, value, p = (np.array(columns.pop(name)) for name in ("n", "compressed", "p_value"))
    state = np.array(columns.pop("status"), dtype=object)
    family = Family(
        metric("heterogeneity"), slots, n, Estimate.alone(value, p), status=state, columns=columns
    )
    if c.one_pair:
        return [build(c, family)]
    why = "not_estimable: no mean over tasks for the method"
    method = replace(untested(family, why), status=np.full(len(parts), why, dtype=object))
    return [build(c, family), build(c, method, "method")]


def _rates(c: Comparison) -> list[Estimand]:
    """Rates to be drawn: within a task they have a closed form, across tasks they have none."""
    made = []
    for entry in metrics():
        if entry.kind != "rate" or entry.event is None or entry.of_scores:
            continue
        if entry.per_class and c.positive is None:
            continue  # `estimands` has the mean over classes
        for kind in ("overall", "group", "intersection"):
            chosen = groupings_of(c, kind)
            if not chosen:
                continue
            n = sizes(c, *chosen)  # of the examples that the rate is a share of
            if entry.event.given != "all" and c.positive is not None:
                positives = [c.pairs[g.name].label[:, c.positive] for g in chosen]
                own = np.concatenate(positives)
                n = own if entry.event.given == "label" else n - own
            evaluate = per_slice(c, entry, entry.function, chosen, rest=kind != "overall")
            changed = changed_in(c, entry, chosen)
            made.append(Estimand(entry, all_slots(c, kind), n, evaluate, changed=changed))
    return made


def distinct_examples(cube: Cube, grouping_names: Sequence[str]) -> dict[str | None, float]:
    """Examples of all (None), of levels and of columns, each once however many tasks it has.

    Of a cluster it is known how many examples each of its tasks has, not which: the most of any
    task are counted.
    """
    assert cube.task is not None
    assert cube.unit is not None  # tasks keep their units
    found: dict[str | None, float] = {None: float(cube.n_examples)}
    for grouping in groupings(cube, grouping_names):
        held = cube.unit * len(grouping.levels) + grouping.code  # of a unit, in a level
        each, place = np.unique(held * len(cube.tasks) + cube.task, return_inverse=True)
        number = sums(place.reshape(-1), cube.count, len(each))  # in a task
        first = np.flatnonzero(np.diff(each // len(cube.tasks), prepend=-1))
        most = np.maximum.reduceat(number, first)
        level = each[first] // len(cube.tasks) % len(grouping.levels)
        n = sums(level, most, len(grouping.levels))
        found |= dict(zip(grouping.levels, n.tolist(), strict=True))
        found[grouping.name] = float(n.sum())
    return found


def _everyone(c: Comparison, kind: str) -> Floats:
    """Examples in the rows of a kind, whatever their label."""
    held = [sizes(c, grouping) for grouping in groupings_of(c, kind)]
    return np.concatenate([[n.sum()] for n in held] if kind == "grouping" else held)


def _averaged(
    c: Comparison, tasks: Sequence[Drawn], distinct: Mapping[str | None, float] | None
) -> Drawn:
    """Mean over the tasks in which a row is defined; rows are matched by name.

    A row is about the `distinct` examples of its level; where it is of some of them only, about as
    many as the task that has most.

    How members vary on their own over examples is not kept across tasks: nothing is taken off the
    variance of scope `method`, which is on the wide side.
    """
    keys = list(
        dict.fromkeys(
            (g, k) for q, _ in tasks for g, k in zip(q.slots.group, q.slots.cls, strict=True)
        )
    )
    place = {key: i for i, key in enumerate(keys)}
    first, kind = tasks[0][0], tasks[0][0].slots.kind
    at = [
        np.array([place[key] for key in zip(q.slots.group, q.slots.cls, strict=True)], np.intp)
        for q, _ in tasks
    ]
    n = np.zeros(len(keys))
    for (estimand, _), where in zip(tasks, at, strict=True):
        n[where] = np.maximum(n[where], estimand.n)
    if distinct is not None:
        n = np.array([distinct[group] for group, _ in keys])
    # A task in which a row is undefined as observed takes no part in that row's mean.
    uses = [np.isfinite(r.observed.compressed[0]) for _, r in tasks]

    def mean(pick: str, side: str) -> Floats | None:
        found = [getattr(getattr(r, pick), side, None) for _, r in tasks]
        arrays: list[Floats] = [array for array in found if array is not None]
        if len(arrays) < len(found):
            return None
        total = np.zeros((*arrays[0].shape[:-1], len(keys)))
        used = np.zeros(len(keys))
        for array, where, use in zip(arrays, at, uses, strict=True):
            total[..., where[use]] += array[..., use]
            used[where[use]] += 1
        with np.errstate(invalid="ignore", divide="ignore"):
            return total / used

    def values(pick: str) -> Values | None:
        compressed = mean(pick, "compressed")
        if compressed is None:
            return None
        return Values(mean(pick, "baseline"), compressed, mean(pick, "excess"))

    observed = values("observed")
    assert observed is not None
    changed = [r.changed for _, r in tasks if r.changed is not None]
    outside, clusters = np.zeros(len(keys), dtype=bool), np.full(len(keys), np.nan)
    for (estimand, _), where in zip(tasks, at, strict=True):
        outside[where] |= estimand.slots.outside
        clusters[where] = np.fmin(clusters[where], estimand.slots.clusters)  # of any task
    slots = Slots(
        first.slots.by,
        kind,
        np.array([g for g, _ in keys], dtype=object),
        np.array([k for _, k in keys], dtype=object),
        outside,
        clusters,
    )
    compressed = mean("members", "compressed")
    members: PerMember | None = None
    if compressed is not None:
        rest = mean("members", "baseline_rest"), mean("members", "compressed_rest")
        one = tasks[0][1].members
        compared = one is not None and one.compared
        members = PerMember(mean("members", "baseline"), compressed, *rest, compared=compared)
    return (
        replace(first, slots=slots, n=n, status=None, level=None),
        with_context(
            c,
            Replicated(
                observed,
                values("bootstrap"),
                values("swapped"),
                members=members,
                changed=Changed.added(changed, at, uses, len(keys))
                if len(changed) == len(tasks)
                else None,
                by_unit=values("by_unit"),
                resampled=values("resampled"),
                statistic=_mean_statistic([r.statistic for _, r in tasks], at, uses, len(keys)),
            ),
            signed=first.metric.inflation is None,
        ),
    )


def _mean_statistic(
    statistics: Sequence[Statistic | None],
    at: Sequence[NDArray[np.intp]],
    uses: Sequence[NDArray[np.bool_]],
    n_rows: int,
) -> Statistic | None:
    """The mean over tasks as a function of who stands for either side."""
    known = [s for s in statistics if s is not None]
    if len(known) < len(statistics):
        return None

    def statistic(first: Floats, second: Floats) -> Floats:
        total, used = np.zeros((len(first), n_rows)), np.zeros(n_rows)
        for one, where, use in zip(known, at, uses, strict=True):
            total[:, where[use]] += one(first, second)[:, use]
            used[where[use]] += 1
        return ratio(total, used)

    return statistic
