"""From what stands out to a list in which every slice says something of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.explain.slices.candidates import SAME, Candidates
from fairweight.auditing.explain.slices.columns import Column
from fairweight.auditing.explain.slices.contrasts import slice_contrast
from fairweight.auditing.explain.slices.discovery import Discoveries
from fairweight.auditing.explain.slices.testing import p_values
from fairweight.auditing.explain.slices.totals import Half


@dataclass(frozen=True)
class Listed:
    """A slice of the list."""

    place: int  # among the candidates
    members: NDArray[np.bool_]  # (n,)
    p: float  # the largest p of all that it had to differ from
    same: list[str] = field(default_factory=list)  # others with nearly the same examples


@dataclass(frozen=True)
class Listing:
    slices: tuple[Listed, ...]
    p_adjusted: Floats  # of each of them
    explained: tuple[str, ...]  # stood out, but not beside those listed
    unread: int  # stood out, but the list was full


def listing(
    columns: Sequence[Column],
    discovery: NDArray[np.bool_],
    half: Half,
    found: Candidates,
    stood_out: Discoveries,
    *,
    alpha: float,
    min_size: int,
    top: int,
) -> Listing:
    """Walk through what stands out, the clearest first.

    Notes
    -----
    - Nearly the same examples as a listed slice (Jaccard above 0.8): named there, not listed again.
    - Else it is listed if it would still be found with the listed slices set aside, and, where it
      lies mostly inside a listed slice, also within that one. A level that merely contains a listed
      pair, or is merely not the level that pays, says nothing new.

    One cause makes many slices stand out, and each of them would allow Benjamini–Hochberg a
    further false one. So what is left is adjusted again, by its own ranks and against the number of
    all tested slices.
    """
    listed: list[Listed] = []
    explained: list[str] = []
    unread = 0
    for rank, place in enumerate(stood_out.order.tolist()):
        if len(listed) == top:
            unread = stood_out.order.size - rank
            break
        members = found.slices[place].members(columns)
        name = found.slices[place].name(columns)
        twin = next((one for one in listed if _jaccard(one.members, members) > SAME), None)
        if twin is not None:
            twin.same.append(name)
            continue
        beside = _p_beside(members, listed, discovery, half, min_size)
        if beside <= stood_out.threshold:
            p = max(beside, float(stood_out.p_decisive[place]))
            listed.append(Listed(place, members, p))
        else:
            explained.append(name)
    adjusted = _adjusted(np.array([one.p for one in listed]), len(found.slices))
    kept = np.flatnonzero(adjusted <= alpha)
    explained += [
        found.slices[one.place].name(columns)
        for one, value in zip(listed, adjusted, strict=True)
        if value > alpha
    ]
    return Listing(tuple(listed[i] for i in kept), adjusted[kept], tuple(explained), unread)


def _adjusted(p: Floats, n_tests: int) -> Floats:
    """Benjamini and Hochberg's p of the smallest of `n_tests` p-values, the others being 1."""
    from fairweight.auditing.intervals.correction import benjamini_hochberg

    return benjamini_hochberg(np.concatenate([p, np.ones(n_tests - p.size)]))[: p.size]


def _jaccard(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    return np.count_nonzero(first & second) / np.count_nonzero(first | second)


def _p_beside(
    members: NDArray[np.bool_],
    listed: list[Listed],
    discovery: NDArray[np.bool_],
    half: Half,
    min_size: int,
) -> float:
    """The largest p of the slice beside those listed; 1 where too little is left to compare."""
    if not listed:
        return 0.0
    size = np.count_nonzero(members)
    around: list[NDArray[np.bool_]] = []
    aside = np.zeros(members.size, dtype=np.bool_)
    for one in listed:
        if np.count_nonzero(one.members & members) > SAME * size:
            around.append(one.members)
        else:
            aside |= one.members
    populations = [~aside, *(one & ~aside for one in around)]
    return max(_p_among(members, among, discovery, half, min_size) for among in populations)


def _p_among(
    members: NDArray[np.bool_],
    among: NDArray[np.bool_],
    discovery: NDArray[np.bool_],
    half: Half,
    min_size: int,
) -> float:
    """P of the slice against the rest of these examples alone, on the discovery half."""
    inside = np.count_nonzero(members & among)
    if min(inside, np.count_nonzero(among) - inside) < min_size:  # as for every candidate
        return 1.0
    kept = among[discovery]
    p = p_values(slice_contrast(half.part(kept), members[discovery][kept]))
    return float(np.nan_to_num(p, nan=1.0)[0])
