"""Flips: predictions that changed, and those among them that lost or gained a right answer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.families import corrected
from fairweight.auditing.compare.linear import share_limits
from fairweight.auditing.compare.rows import Block, block
from fairweight.auditing.compare.slots import groupings_of, join_slots, slots_of
from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.sums import sums
from fairweight.auditing.metrics.ratio import ratio

NAMES = ("flips", "harmful_flips", "helpful_flips")


def flip_rows(c: Comparison) -> Iterator[Block]:
    """Rows of all three shares, overall, by class and by group; means over pairs of members."""
    for name in NAMES:
        share = share_of_pairs(c, name)
        for kind in ("overall", "class", "group", "intersection"):
            chosen = groupings_of(c, kind)
            if not chosen:
                continue
            parts = [_estimate(c, share, g, by_class=kind == "class") for g in chosen]
            n, value, low, high = (np.concatenate(column) for column in zip(*parts, strict=True))
            rows = block(
                c,
                name,
                join_slots([slots_of(c, g, kind) for g in chosen], kind),
                aggregation="pairs",
                n=n,
                compressed=value,
                ci_low=low,
                ci_high=high,
                interval="wilson" if c.closed_form else "linearised t",
            )
            rows["status"][(rows["status"] == "ok") & np.isnan(value)] = "not_estimable: no weight"
            yield corrected(rows, correction=c.options.correction)


def share_of_pairs(c: Comparison, name: str) -> Floats:
    """Per cell, the share of the pairs of members in which its prediction flipped."""
    pairs = paired_members(c)
    flipped = [_event(c.cube, name, first, second) for first, second in pairs]
    share: Floats = np.mean(flipped, axis=0)
    return share


def _estimate(
    c: Comparison, share: Floats, grouping: Grouping, *, by_class: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    """Examples, share of flips and its limits in every row."""
    from fairweight.auditing.intervals.wilson import wilson

    cube, alpha = c.cube, c.options.alpha
    row = (cube.label if by_class else grouping.code).astype(np.int64)
    size = len(c.classes) if by_class else len(grouping.levels)
    weight = cube.count if cube.weight is None else cube.count * cube.weight
    n, hits = sums(row, cube.count, size), sums(row, weight * share, size)
    value = ratio(hits, sums(row, weight, size))
    low, high = (
        wilson(hits, n, alpha, modified=True)
        if c.closed_form
        else share_limits(c, share, row, size, alpha)
    )
    return n, value, low, high


def _event(cube: Cube, name: str, first: int, second: int) -> Floats:
    before, after = cube.prediction[:, first], cube.prediction[:, second]
    if name == "flips":
        return np.asarray(before != after, dtype=float)
    was, became = before == cube.label, after == cube.label
    return np.asarray(was & ~became if name == "harmful_flips" else ~was & became, dtype=float)


def paired_members(c: Comparison) -> list[tuple[int, int]]:
    """Pairs of equal seeds where both sides have the same seeds, else every pair."""
    seeds = [member.seed for member in c.cube.members]
    first, second = seeds[: c.n_baseline], seeds[c.n_baseline :]
    if sorted(first) == sorted(second):
        return [(i, c.n_baseline + second.index(seed)) for i, seed in enumerate(first)]
    return [(i, c.n_baseline + j) for i in range(c.n_baseline) for j in range(c.n_compressed)]
