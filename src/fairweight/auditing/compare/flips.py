"""Flips: predictions that changed, and those among them that lost or gained a right answer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.families import corrected
from fairweight.auditing.compare.rows import Block, block
from fairweight.auditing.compare.slots import groupings_of, join_slots, slots_of
from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.metrics.registry import metric

NAMES = ("flips", "harmful_flips", "helpful_flips")


def flip_rows(c: Comparison) -> Iterator[Block]:
    """Rows of all three shares, overall, by class and by group; means over pairs of members."""
    from fairweight.auditing.intervals.wilson import wilson

    for name in NAMES:
        for kind in ("overall", "class", "group", "intersection"):
            chosen = groupings_of(c, kind)
            if not chosen:
                continue
            parts = [_share(c, name, g, by_class=kind == "class") for g in chosen]
            hits, n = (np.concatenate([p[i] for p in parts]) for i in (0, 1))
            # Weights and clusters change how much a flip tells; only a plain share has Wilson's.
            low, high = (
                wilson(hits, n, c.options.alpha)
                if c.closed_form
                else (np.full(len(n), np.nan), np.full(len(n), np.nan))
            )
            rows = block(
                c,
                name,
                join_slots([slots_of(c, g, kind) for g in chosen], kind),
                aggregation="pairs",
                n=n,
                compressed=metric(name).function(hits, n),
                ci_low=low,
                ci_high=high,
                interval="wilson" if c.closed_form else None,
            )
            yield corrected(rows, correction=c.options.correction)


def _share(
    c: Comparison, name: str, grouping: Grouping, *, by_class: bool
) -> tuple[Floats, Floats]:
    """Flipped examples and all examples of each row; over several pairs, their mean."""
    cube = c.cube
    row = cube.label.astype(np.int64) if by_class else grouping.code.astype(np.int64)
    size = len(c.classes) if by_class else len(grouping.levels)
    happened = np.zeros(cube.n_cells)
    pairs = paired_members(c)
    for first, second in pairs:
        happened += _event(cube, name, first, second)
    n = np.bincount(row, weights=cube.count, minlength=size)
    hits = np.bincount(row, weights=cube.count * happened / len(pairs), minlength=size)
    return hits, n


def _event(cube: Cube, name: str, first: int, second: int) -> Floats:
    before, after = cube.prediction[:, first], cube.prediction[:, second]
    if name == "flips":
        return (before != after).astype(float)
    was, became = before == cube.label, after == cube.label
    return (was & ~became if name == "harmful_flips" else ~was & became).astype(float)


def paired_members(c: Comparison) -> list[tuple[int, int]]:
    """Pairs of equal seeds where both sides have the same seeds, else every pair."""
    seeds = [member.seed for member in c.cube.members]
    first, second = seeds[: c.n_baseline], seeds[c.n_baseline :]
    if sorted(first) == sorted(second):
        return [(i, c.n_baseline + second.index(seed)) for i, seed in enumerate(first)]
    return [
        (i, c.n_baseline + j) for i in range(c.n_baseline) for j in range(c.n_compressed)
    ]
