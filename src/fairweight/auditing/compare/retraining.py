"""Context from retraining: how far a number moves between members of the baseline alone.

A picture beside every number, never a veto: `noise_floor` (95 % of dense-against-dense comparisons
stay below it), `matched` (the same number for as many compressed members), and `p_retraining`
(relabelling all members).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from fairweight.auditing.intervals.bootstrap import exceedance_p
from fairweight.auditing.pairing import (
    FEWEST_MEMBERS,
    FEWEST_RELABELLINGS,
    QUANTILE,
    Pairing,
    Weights,
    matched_draws,
    matched_size,
    regroupings,
    sign_flips,
    splits,
)
from fairweight.base.types import Floats

# Weights of both sides, (draws, members) each → the number in every row, (draws, rows).
Statistic: TypeAlias = Callable[[Floats, Floats], Floats]

UNDEFINED = 0.05  # share of draws without a value above which there is no quantile


@dataclass(frozen=True)
class Retraining:
    """Draws of members; None where there are too few of them."""

    splits: Weights | None
    matched: Weights | None
    relabelled: Weights | None
    observed: Weights  # (1, members): the units as they are
    reach: float = 1.0  # how much further than splits of these members new members lie apart


def retraining(
    pairing: Pairing, n_first: int, n_second: int, rng: np.random.Generator
) -> Retraining:
    """All draws of one comparison: the same for every metric, so that numbers can be compared."""
    observed = pairing.first.mean(axis=0)[None, :], pairing.second.mean(axis=0)[None, :]
    dense = compressed = None
    reach = 1.0
    if n_first >= FEWEST_MEMBERS:
        # Splits of S members vary about their own mean, new members about the true one.
        reach = math.sqrt(n_first / (n_first - 1))
        k = matched_size(n_first, n_second)
        one, other = splits(n_first, k, rng)
        nobody = np.zeros((len(one), n_second))
        dense = np.hstack([one, nobody]), np.hstack([other, nobody])
        one, other = matched_draws(n_first, n_second, k, rng)
        compressed = (
            np.hstack([one, np.zeros((len(one), n_second))]),
            np.hstack([np.zeros((len(other), n_first)), other]),
        )
    first, second = pairing.first, pairing.second
    if pairing.paired:
        flipped = sign_flips(len(first), rng).astype(float)
        stayed = 1 - flipped
        relabelled = (
            (stayed @ first + flipped @ second) / len(first),
            (flipped @ first + stayed @ second) / len(first),
        )
    else:
        baseline = regroupings(len(first), len(second), rng).astype(float)
        units = np.vstack([first, second])
        relabelled = baseline @ units / len(first), (1 - baseline) @ units / len(second)
    enough = len(relabelled[0]) + 1 >= FEWEST_RELABELLINGS
    return Retraining(dense, compressed, relabelled if enough else None, observed, reach)


def context(found: Retraining, statistic: Statistic, *, signed: bool = True) -> dict[str, Floats]:
    """The columns `matched`, `noise_floor` and `p_retraining` of a number.

    Parameters
    ----------
    statistic
        The number as a function of who stands for either side.
    signed
        Whether it is a difference that may be negative: then its size counts, in either direction,
        and the floor is moved out to what new members would reach.
    """
    value = statistic(*found.observed)
    nothing = np.full(value.shape[1], np.nan)
    columns = {"matched": nothing, "noise_floor": nothing, "p_retraining": nothing}
    if found.splits is not None and found.matched is not None:
        floor = _quantile(np.abs(statistic(*found.splits)), QUANTILE)
        columns["noise_floor"] = floor * found.reach if signed else floor
        columns["matched"] = _quantile(np.abs(statistic(*found.matched)), 0.5)
    if found.relabelled is not None:
        null = statistic(*found.relabelled)
        columns["p_retraining"] = exceedance_p(value[0], null, two_sided=signed)
    return columns


def difference(members: Floats) -> Statistic:
    """The difference of means over members, from each member's own value, (members, rows)."""
    undefined = np.isnan(members)
    known = np.where(undefined, 0.0, members)

    def statistic(first: Floats, second: Floats) -> Floats:
        value: Floats = (second - first) @ known
        if undefined.any():
            used = ((first > 0) | (second > 0)).astype(float)
            value = np.where(used @ undefined.astype(float) > 0, np.nan, value)
        return value

    return statistic


def _quantile(draws: Floats, share: float) -> Floats:
    """A quantile over draws; NaN where more than a few of them have no value."""
    defined = np.isfinite(draws)
    enough = defined.mean(axis=0) >= 1 - UNDEFINED
    found = np.full(draws.shape[1], np.nan)
    if enough.any():
        found[enough] = np.nanquantile(draws[:, enough], share, axis=0)
    return found
