"""Rows with `task` null: the mean of a metric over the tasks of a multi-label table.

The tasks share their examples, so one draw takes an example (or cluster) with all its tasks. Every
task is therefore replicated with the same random numbers on the same units, and replicates are
averaged over tasks before an interval is made of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fairweight.auditing.compare.comparison import Comparison, Options, comparison
from fairweight.auditing.compare.quantities import Quantity, quantities, sizes
from fairweight.auditing.compare.replicates import Both, Replicated, Values, replicate
from fairweight.auditing.compare.rows import Block
from fairweight.auditing.compare.slots import Slots, groupings_of, join_slots, slots_of
from fairweight.auditing.compare.training import Training
from fairweight.auditing.compare.values import family_block
from fairweight.auditing.counts.cube import Cube, compact
from fairweight.auditing.counts.groupings import groupings, whole
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.metrics.registry import Metric, metrics
from fairweight.auditing.metrics.summarise import summary_of

MOST_REPLICATES = 500  # every replicate costs all tasks
KINDS = ("overall", "group", "intersection", "grouping")


def task_mean_rows(
    cube: Cube,
    baseline: str,
    variant: str,
    grouping_names: tuple[str, ...],
    positive: dict[str | None, int | None],
    options: Options,
    training: Training | None,
) -> list[Block]:
    """Mean over tasks of every metric with overall, group or column rows."""
    limited = replace(options, n_boot=min(options.n_boot, MOST_REPLICATES))
    parts = [
        _of_task(cube, baseline, variant, task, grouping_names, positive[task], limited)
        for task in cube.tasks
    ]
    found: dict[tuple[str, str], list[tuple[Quantity, Replicated]]] = {}
    for c in parts:
        wanted = [q for q in (*_rates(c), *quantities(c, training)) if q.slots.kind in KINDS]
        alive = [q for q in wanted if q.evaluate is not None]
        made = replicate(
            c, [q.evaluate for q in alive if q.evaluate is not None], [None] * len(alive)
        )
        grouped: dict[tuple[str, str], list[tuple[Quantity, Replicated]]] = {}
        for quantity, replicated in zip(alive, made, strict=True):
            grouped.setdefault((quantity.metric, quantity.slots.kind), []).append(
                (quantity, replicated)
            )
        for key, members in grouped.items():
            found.setdefault(key, []).append(_joined(members))
    together = replace(parts[0], task=None)
    return [family_block(together, [_averaged(tasks)]) for tasks in found.values()]


def _of_task(
    cube: Cube,
    baseline: str,
    variant: str,
    task: str,
    grouping_names: tuple[str, ...],
    positive: int | None,
    options: Options,
) -> Comparison:
    """One task's comparison on units that all tasks share."""
    alone = comparison(
        cube,
        baseline=baseline,
        variant=variant,
        task=task,
        grouping_names=grouping_names,
        positive=positive,
        options=options,
    )
    members = cube.member_indices(baseline) + cube.member_indices(variant)
    part = cube.of_task(task)
    shared = compact(
        replace(
            part, members=alone.cube.members, prediction=part.prediction[:, members], scores=None
        )
    )
    return replace(
        alone,
        task=None,  # the same random numbers for every task
        cube=shared,
        whole=whole(shared),
        groupings=groupings(shared, grouping_names),
    )


def _rates(c: Comparison) -> list[Quantity]:
    """Rates as bootstrapped quantities: within a task they have closed forms, across tasks none."""
    made = []
    for entry in metrics():
        if entry.kind != "rate" or entry.event is None:
            continue
        if entry.event.happens in ("uncertain", "top5"):
            continue
        if entry.per_class and c.positive is None:
            continue  # `quantities` has the mean over classes
        for kind in ("overall", "group", "intersection"):
            chosen = groupings_of(c, kind)
            if not chosen:
                continue
            names = [g.name for g in chosen]

            def evaluate(both: Both, names: list[str] = names, entry: Metric = entry) -> Values:
                sides = []
                for i in (0, 1):
                    parts = []
                    for name in names:
                        counts = both[name][i]
                        value = summary_of(entry, entry.function(counts), counts)
                        parts.append(value.mean(axis=-2))
                    sides.append(np.concatenate(parts, axis=-1))
                return Values(sides[0], sides[1])

            n = np.concatenate([sizes(c, g) for g in chosen])
            slots = join_slots([slots_of(c, g, kind) for g in chosen], kind)
            made.append(Quantity(entry.name, slots, n, evaluate))
    return made


def _joined(members: Sequence[tuple[Quantity, Replicated]]) -> tuple[Quantity, Replicated]:
    """Quantities of one family in one task as a single table."""
    first = members[0][0]
    if len(members) == 1:
        return members[0]
    slots = join_slots([q.slots for q, _ in members], first.slots.kind)
    n = np.concatenate([q.n for q, _ in members])

    def values(pick: str) -> Values | None:
        chosen = [getattr(r, pick) for _, r in members]
        if any(v is None for v in chosen):
            return None
        base = [v.baseline for v in chosen]
        return Values(
            None if any(b is None for b in base) else np.concatenate(base, axis=1),
            np.concatenate([v.compressed for v in chosen], axis=1),
        )

    observed, bootstrap = values("observed"), values("bootstrap")
    assert observed is not None
    assert bootstrap is not None
    return (
        replace(first, slots=slots, n=n, status=None),
        Replicated(observed, bootstrap, values("swapped")),
    )


def _averaged(tasks: Sequence[tuple[Quantity, Replicated]]) -> tuple[Quantity, Replicated]:
    """Mean over the tasks in which a row is defined; rows are matched by name."""
    keys = list(
        dict.fromkeys(
            (g, k) for q, _ in tasks for g, k in zip(q.slots.group, q.slots.cls, strict=True)
        )
    )
    place = {key: i for i, key in enumerate(keys)}
    first, kind = tasks[0][0], tasks[0][0].slots.kind
    at = [
        np.array([place[key] for key in zip(q.slots.group, q.slots.cls, strict=True)])
        for q, _ in tasks
    ]
    n = np.zeros(len(keys))
    for (quantity, _), where in zip(tasks, at, strict=True):
        n[where] = np.maximum(n[where], quantity.n)  # distinct examples, not example × task
    # A task in which a row is undefined as observed takes no part in that row's mean.
    uses = [np.isfinite(r.observed.compressed[0]) for _, r in tasks]

    def mean(pick: str, side: str) -> Floats | None:
        found = [getattr(getattr(r, pick), side, None) for _, r in tasks]
        arrays: list[Floats] = [array for array in found if array is not None]
        if len(arrays) < len(found):
            return None
        total = np.zeros((len(arrays[0]), len(keys)))
        used = np.zeros(len(keys))
        for array, where, use in zip(arrays, at, uses, strict=True):
            total[:, where[use]] += array[:, use]
            used[where[use]] += 1
        with np.errstate(invalid="ignore", divide="ignore"):
            return total / used

    def values(pick: str) -> Values | None:
        compressed = mean(pick, "compressed")
        return None if compressed is None else Values(mean(pick, "baseline"), compressed)

    observed, bootstrap = values("observed"), values("bootstrap")
    assert observed is not None
    assert bootstrap is not None
    slots = Slots(
        first.slots.by,
        kind,
        np.array([g for g, _ in keys], dtype=object),
        np.array([k for _, k in keys], dtype=object),
    )
    return (
        replace(first, slots=slots, n=n, status=None, level=None),
        Replicated(observed, bootstrap, values("swapped")),
    )
