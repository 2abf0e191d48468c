"""Tables drawn with the margins of the data: who loses and gains, if groups did not matter."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats

# Microseconds per drawn number, measured; only their ratio matters.
_COST_OF_A_CELL = 0.25
_COST_OF_A_PLACE = 0.12
# Numbers held in memory at once.
_CHUNK = 4_000_000


def draws_at_once(
    size: NDArray[np.int64], lost: NDArray[np.int64], gained: NDArray[np.int64]
) -> int:
    """How many tables may be drawn in one call without filling the memory."""
    changed = lost + gained
    placed = int(np.where(_few(size, changed), changed.sum(axis=0), 0).sum())
    return max(1, _CHUNK // max(int(size.shape[0]), placed))


def permuted_tables(
    size: NDArray[np.int64],
    lost: NDArray[np.int64],
    gained: NDArray[np.int64],
    weight: Floats,
    draws: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Σ_k d and Σ_k weight · d of every level, d = gained − lost, in tables with these margins.

    Group labels are permuted among the examples of each label k. Either every level is filled in
    turn, or every changed answer is placed on an example, whichever is cheaper.

    Parameters
    ----------
    size, lost, gained, weight
        (levels, labels).
    draws, rng
        Number of tables and the source of chance.

    Returns
    -------
    plain, weighted
        (draws, levels).
    """
    n_levels = size.shape[0]
    plain = np.zeros((draws, n_levels))
    weighted = np.zeros((draws, n_levels))
    scattered: list[tuple[NDArray[np.int64], Floats, Floats]] = []
    few = _few(size, lost + gained)
    for k in range(size.shape[1]):
        n_lost, n_gained = int(lost[:, k].sum()), int(gained[:, k].sum())
        if n_lost + n_gained == 0:
            continue
        levels = np.flatnonzero(size[:, k])
        if not few[k]:
            d = _by_cells(size[levels, k], n_lost, n_gained, draws, rng)
            plain[:, levels] += d
            weighted[:, levels] += d * weight[levels, k]
        else:
            level = np.repeat(levels, size[levels, k])[
                _distinct(int(size[:, k].sum()), draws, n_lost + n_gained, rng)
            ]
            sign = np.where(np.arange(n_lost + n_gained) < n_lost, -1.0, 1.0)
            cell = level + n_levels * np.arange(draws)[:, None]
            signs = np.broadcast_to(sign, cell.shape)
            scattered.append((cell.ravel(), signs.ravel(), (signs * weight[level, k]).ravel()))
    if scattered:
        cells, signs, weights = (np.concatenate(part) for part in zip(*scattered, strict=True))
        shape = (draws, n_levels)
        plain += np.bincount(cells, weights=signs, minlength=plain.size).reshape(shape)
        weighted += np.bincount(cells, weights=weights, minlength=plain.size).reshape(shape)
    return plain, weighted


def _few(size: NDArray[np.int64], changed: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Labels with so few changed answers that placing each is cheaper than filling every level."""
    marked = changed.sum(axis=0)
    by_cells = 2 * np.count_nonzero(size, axis=0) * _COST_OF_A_CELL
    few: NDArray[np.bool_] = (marked * _COST_OF_A_PLACE < by_cells) & (
        2 * marked <= size.sum(axis=0)
    )
    return few


def _by_cells(
    size: NDArray[np.int64], n_lost: int, n_gained: int, draws: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Level after level: how many of the lost and gained answers still to be placed fall on it."""
    left = np.full(draws, size.sum())
    lost_left, gained_left = np.full(draws, n_lost), np.full(draws, n_gained)
    d = np.empty((size.size, draws), dtype=np.int64)
    for level, n in enumerate(size):
        lost = rng.hypergeometric(lost_left, left - lost_left, n)
        gained = rng.hypergeometric(gained_left, left - lost_left - gained_left, n - lost)
        d[level] = gained - lost
        left -= n
        lost_left -= lost
        gained_left -= gained
    return d.T


def _distinct(total: int, rows: int, columns: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rows of different numbers below `total`, every arrangement equally likely.

    Numbers that clash with another in their row are drawn again, all but one of them, until none
    clashes. The law of this procedure does not change if the numbers are renamed, so given the
    set of numbers no arrangement is preferred.
    """
    places = np.empty((rows, columns), dtype=np.int64)
    chunk = int(np.clip(_CHUNK // total, 1, rows))
    holder = np.empty(chunk * total, dtype=np.int32)
    for start in range(0, rows, chunk):
        part = min(chunk, rows - start)
        row = np.repeat(np.arange(part) * total, columns)
        place = row + rng.integers(0, total, size=part * columns)
        index = np.arange(place.size, dtype=np.int32)
        while True:
            holder[place] = index  # of several that claim a place, one is left standing
            again = np.flatnonzero(holder[place] != index)
            if again.size == 0:
                break
            place[again] = row[again] + rng.integers(0, total, size=again.size)
        places[start : start + part] = (place - row).reshape(part, columns)
    return places
