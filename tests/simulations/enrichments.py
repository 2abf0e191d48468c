"""Enrichment among exemplars where its cause is known: difficulty alone, or a planted effect."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.special import logit
from scipy.stats import binom

from fairweight.auditing.exemplars.enrichment import enrichment
from fairweight.auditing.exemplars.odds import log_odds_limits
from fairweight.auditing.exemplars.selection import Key, top_share
from fairweight.auditing.exemplars.votes import TieRule, disagreement
from fairweight.auditing.prediction_matrix import Answers, from_cube
from fairweight.base.types import Mask

from .measured import Share, share, stored
from .populations import Design, Latent, children, latent, unrelated

ALPHA = 0.05
HARD = 0.8  # margin of the hard group: 73 % right, where the others have 90 %
MARGINS = np.array([[1.65], [HARD], [1.65]])
SIZES = (2000, 300, 1000)  # the second group is the hard one
SPREAD = 0.2  # of members in how well they know a group: 2.8 points of accuracy
PLANTED = 0.4  # margin that compression takes from the third group
DESIGNS = (unrelated(10, 10), unrelated(5, 5), children(10), children(5))
KINDS = ("taxicab", "modal")


def hard_group(harm: float = 0.0, member_group: float = SPREAD) -> Latent:
    """Three groups of which one is hard; members differ in how well they know each group."""
    return latent(
        3, margin=MARGINS, harm=np.array([[0.0], [0.0], [harm]]), member_group=member_group
    )


def answers_of(world: Latent, design: Design, sizes: tuple[int, ...], seed: int) -> Answers:
    made = from_cube(world.sample(design, sizes, np.random.default_rng(seed)), "dense")
    if not design.related:
        return made
    k = design.n_dense
    lineage = pd.DataFrame(
        {
            "variant": ["dense"] * k + ["compressed"] * k,
            "seed": [m.seed for m in made.members],
            "parent": [None] * k + [f"dense:{m.seed}" for m in made.members[:k]],
        }
    )
    return replace(made, variants_table=lineage)


def masks_of(answers: Answers, seed: int) -> dict[Key, Mask]:
    """The exemplars of the whole populations; `find` would relabel members too, at length."""
    rng = np.random.default_rng(seed)
    found = disagreement(answers.of("dense"), answers.of("compressed"), TieRule(), rng)
    furthest = top_share(found.distance, 90.0, rng.random(answers.n_examples)).mask
    return {
        ("compressed", "taxicab", 90.0): furthest,
        ("compressed", "modal", None): found.exemplar,
    }


@stored
def rows(
    harm: float,
    design: Design,
    sizes: tuple[int, ...],
    audits: int,
    seed: int,
    member_group: float = SPREAD,
) -> pd.DataFrame:
    """The rows by group of many audits; a column `audit` tells them apart."""
    frames = []
    for i in range(audits):
        answers = answers_of(hard_group(harm, member_group), design, sizes, seed + i)
        masks = masks_of(answers, i)
        found = enrichment(answers, masks, random_state=i)
        frames.append(found[found["by"] == "group"].assign(audit=i))
    return pd.concat(frames, ignore_index=True)


def any_found(found: pd.DataFrame, kind: str) -> Share:
    """Audits in which some group's ratio differs from 1 after Holm."""
    least = found[found["kind"] == kind].groupby("audit")["p_adjusted"].min()
    return share(least <= ALPHA)


def found_in(found: pd.DataFrame, kind: str, group: str, column: str = "p_value") -> Share:
    """Audits in which this group's ratio differs from 1."""
    chosen = found[(found["kind"] == kind) & (found["group"] == group)]
    return share(chosen[column] <= ALPHA)


def odds_alone(found: pd.DataFrame, kind: str, group: str) -> Share:
    """Audits in which the odds ratio itself, without retraining beside it, is above 1."""
    chosen = found[(found["kind"] == kind) & (found["group"] == group)]
    return share(chosen["or_low"] > 1)


def difficulty_only(design: Design, audits: int = 200, seed: int = 61_000) -> pd.DataFrame:
    return rows(0.0, design, SIZES, audits, seed)


def small_group(audits: int = 200, seed: int = 62_000) -> pd.DataFrame:
    """The same with 40 examples in the hard group."""
    return rows(0.0, unrelated(10, 10), (2000, 40, 1000), audits, seed)


def planted(member_group: float, audits: int = 50, seed: int = 63_000) -> pd.DataFrame:
    """The third group is harmed; members may differ in how well they know each group."""
    return rows(PLANTED, unrelated(10, 10), SIZES, audits, seed, member_group)


@stored
def coverage(n_inside: int, inside: float, outside: float, n_outside: int = 2000) -> float:
    """Exact coverage of the interval of one odds ratio, by enumeration of both counts."""
    a, c = np.arange(n_inside + 1), np.arange(n_outside + 1)
    chance = binom.pmf(a, n_inside, inside)[:, None] * binom.pmf(c, n_outside, outside)
    with np.errstate(divide="ignore"):
        low, high = log_odds_limits(a[:, None], n_inside, c, n_outside)
    true = logit(inside) - logit(outside)
    return float(chance[(low <= true) & (true <= high)].sum())
