"""Families: which rows are tested together, and what correction they get.

A family is variant × task × scope × metric × (classes | all levels of all single columns | all
intersections). Who belongs to it depends on sizes alone. `accuracy` by group and `recall` by class
are confirmatory (Holm), and so is what a policy names; everything else is exploratory
(Benjamini–Hochberg) and says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import Options
from fairweight.auditing.compare.rows import Block

if TYPE_CHECKING:
    from fairweight.auditing.compare.simultaneous import FamilyDraws

CONFIRMATORY = frozenset(
    {
        ("accuracy", "overall"),
        ("accuracy", "group"),
        ("accuracy", "intersection"),
        ("recall", "class"),
    }
)
NAMES = {
    "overall": "overall",
    "class": "by class",
    "group": "by group",
    "intersection": "by intersection",
    "group*class": "by group and class",
    "grouping": "by column",
}


def family_size(block: Block) -> int:
    """Rows that are tested: large enough, and not of missing values; whatever came out."""
    return max(1, int(np.sum(_inside(block))))


def _inside(block: Block) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = block["sized"] & ~block["outside"]
    return inside


def corrected(block: Block, options: Options, draws: FamilyDraws | None = None) -> Block:
    """The block with `p_adjusted`, `family` and `n_family`; small groups stay outside.

    One block holds exactly one family. With `draws` the excess is corrected by random signs.
    """
    from fairweight.auditing.intervals.correction import adjust

    metric, kind = str(block["metric"][0]), str(block["kind"][0])
    confirmatory = (metric, kind) in CONFIRMATORY or (metric, kind) in options.confirmatory
    correction = options.correction
    method = correction if confirmatory else ("bh" if correction != "none" else "none")
    inside = _inside(block)
    p = np.asarray(block.get("p_value", np.full(len(inside), np.nan)), dtype=float)
    tested = np.where(inside, p, np.nan)
    role = "confirmatory" if confirmatory else "exploratory"
    name = f"{role}: {metric} {NAMES[kind]} ({method})"
    if not np.isfinite(tested).any():  # nothing here is tested (shares of lost answers, flips)
        nothing = np.full(len(tested), np.nan)
        return {**block, "p_adjusted": tested, "excess_p_adjusted": tested, "n_family": nothing}
    excess = np.asarray(block.get("excess_p", np.full(len(inside), np.nan)), dtype=float)
    return {
        **block,
        "p_adjusted": adjust(tested, method),
        "excess_p_adjusted": adjust(np.where(inside, excess, np.nan), method)
        if draws is None
        else np.where(inside, draws.adjusted(excess), np.nan),
        "family": np.array([name if here else None for here in inside], dtype=object),
        "n_family": np.where(inside, float(family_size(block)), np.nan),
    }
