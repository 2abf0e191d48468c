"""Rows that were not chosen on: a share of the examples or clusters, or another table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairweight.auditing.counts.cube import Cube, select
from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.tables.align import Aligned


def split(cube: Cube, share: float, rng: np.random.Generator) -> tuple[Cube, Cube]:
    """The cube of the examples to choose on, and that of a share held out.

    Clusters (and examples with several tasks) go to one side whole. Single examples are counted in
    cells, of which a random number is held out: the law of drawing examples one by one.
    """
    if cube.unit is not None:
        n_units = len(cube.unit_names)
        held = np.zeros(n_units, dtype=np.bool_)
        held[rng.permutation(n_units)[: round(share * n_units)]] = True
        out = cube.count * held[cube.unit]
    else:
        total = int(cube.count.sum())
        out = rng.multivariate_hypergeometric(cube.count, round(share * total), method="marginals")
    parts = cube.count - out, out
    if not all(part.any() for part in parts):
        raise InputError(
            f"--confirm-share {share:g} leaves nothing to choose on or to confirm on; give a share "
            "nearer to 0.5, or more examples."
        )
    return _part(cube, parts[0]), _part(cube, parts[1])


def _part(cube: Cube, count: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Cube:
    """The cells that are left, with their units renumbered so that each is drawn again."""
    kept = select(replace(cube, count=count), count > 0)
    if kept.unit is None:
        return replace(kept, n_examples=int(kept.count.sum()))
    used, unit = np.unique(kept.unit, return_inverse=True)
    names = tuple(cube.unit_names[i] for i in used)
    n_examples = int(kept.count.sum()) if kept.unit_is_cluster and not kept.tasks else len(used)
    return replace(
        kept, unit=unit.reshape(-1).astype(np.int64), unit_names=names, n_examples=n_examples
    )


def compare_rows(chosen_on: Aligned, confirmed_on: Aligned) -> list[str]:
    """Refuse rows and clusters that are in both tables; say what could not be compared."""
    from fairweight.auditing.answers import from_aligned, tasks_of
    from fairweight.auditing.mitigate.rows_seen import refuse_overlap, rows_seen

    if chosen_on.has_count or confirmed_on.has_count:
        raise InputError(
            "--confirm needs single examples, to see that none was chosen on, and a table is "
            "counted (--count); hold out a share instead: --confirm-share 0.5."
        )

    own, other = (
        [from_aligned(aligned, task) for task in tasks_of(aligned)]
        for aligned in (chosen_on, confirmed_on)
    )
    seen = rows_seen(own)
    return refuse_overlap(
        seen,
        rows_seen(other, seen),
        "--confirm: the choice would be confirmed on rows on which it was made",
    )
