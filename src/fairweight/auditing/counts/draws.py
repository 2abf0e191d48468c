"""Random draws of counted items: exact, and as cheap as their number allows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts64 = NDArray[np.int64]

DENSE = 16  # items per cell from which a multinomial costs less than drawing every item
WORD = 64


def resample(rng: np.random.Generator, multiplicity: Counts64, size: int) -> Counts64:
    """Bootstrap draws (size, cells) of as many items as there are, with replacement.

    A multinomial over cells is the bootstrap over items. Where cells hold few items each, the
    items are drawn one by one instead, which is the same distribution and costs less.

    >>> drawn = resample(np.random.default_rng(0), np.array([3, 0, 7]), 4)
    >>> drawn.sum(axis=1).tolist(), drawn[:, 1].tolist()
    ([10, 10, 10, 10], [0, 0, 0, 0])
    """
    total = int(multiplicity.sum())
    n_cells = len(multiplicity)
    if total >= DENSE * n_cells:
        return rng.multinomial(total, multiplicity / total, size=size)
    cell = np.repeat(np.arange(n_cells), multiplicity)
    offset = (np.arange(size) * n_cells)[:, None]
    places = cell[rng.integers(0, total, size=(size, total), dtype=np.int32)] + offset
    counted = np.bincount(places.reshape(-1), minlength=size * n_cells)
    return counted.reshape(size, n_cells).astype(np.int64, copy=False)


def coins(rng: np.random.Generator, multiplicity: Counts64, size: int) -> Counts64:
    """Heads (size, cells) among `multiplicity` fair coins per cell.

    Up to 64 coins are the bits of one random word.

    >>> heads = coins(np.random.default_rng(0), np.array([0, 1, 64, 1000]), 2000)
    >>> heads[:, 0].max(), bool(abs(heads[:, 2].mean() - 32) < 0.5)
    (np.int64(0), True)
    """
    few = multiplicity <= WORD
    heads = np.empty((size, len(multiplicity)), dtype=np.int64)
    words = rng.integers(0, 2**WORD, size=(size, int(few.sum())), dtype=np.uint64)
    spare = (WORD - multiplicity[few]).astype(np.uint64)
    # Shifting a word by its full width is not defined, so no coins at all is a case of its own.
    kept = np.where(spare == WORD, 0, words >> np.minimum(spare, np.uint64(WORD - 1)))
    heads[:, few] = np.bitwise_count(kept.astype(np.uint64))
    if not few.all():
        heads[:, ~few] = rng.binomial(multiplicity[~few], 0.5, size=(size, int((~few).sum())))
    return heads
