"""The formulas of the schedules as people read them; a test computes with these very words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Formula:
    """Other names in it are fields of the schedule; `sparsity` is the method's, as asked for."""

    updates: str  # when, with `t` counting epochs, finished steps or rounds
    removed: str  # the share that is gone from this update to the next


FORMULAS: dict[str, Formula] = {
    "one-shot": Formula(
        updates="once, at the start of epoch t = epoch (from 0)", removed="sparsity"
    ),
    "agp": Formula(
        updates="epochs t = range(start, end, every), from 1",
        removed="sparsity + (initial - sparsity) * "
        "(1 - (t - start) / ((end - start - 1) // every * every)) ** 3",
    ),
    "gmp": Formula(
        updates="epochs t = range(start, end, every), from 0; the last one goes to sparsity "
        "(finish)",
        removed="sparsity + (initial - sparsity) * (1 - (t - start) / (end - start)) ** 3",
    ),
    "zhu-gupta": Formula(
        updates="finished steps t = range(start, end + 1, every); the last one goes to sparsity",
        removed="sparsity + (initial - sparsity) * (1 - (t - start) / (end - start)) ** 3",
    ),
    "polynomial": Formula(
        updates="finished steps t = range(start, end + 1, every); the last one goes to sparsity "
        "(finish)",
        removed="sparsity + (initial - sparsity) * (1 - (t - start) / (end - start)) ** power",
    ),
    "iterative": Formula(
        updates="rounds t = 1, 2 …, each after so many epochs as the field says",
        removed="min(sparsity, 1 - (1 - share) ** t)",
    ),
}
