"""Random draws of counted items: exact, and as cheap as their number allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int64]
Draw: TypeAlias = Callable[[np.random.Generator, int], Numbers]

SPARSE = 16  # below this many items per cell, drawing items costs less than drawing cells
FEW_CELLS = 2_000  # up to here a multinomial is cheap enough
MARGIN = 4.0  # standard deviations by which the Poisson total stays below the total
MOST_ITEMS = 100_000_000  # items whose cells are kept in a list
WORD = 64


def resampler(multiplicity: Numbers) -> Draw:
    """A function (generator, size) → bootstrap draws (size, cells) with replacement.

    Every draw takes as many items as there are. A multinomial over cells is the bootstrap over
    items; it is made in the cheapest of three ways, all exact: item by item where cells hold few;
    as it stands where cells are few; and else as independent Poisson numbers, whose law given
    their total is multinomial, with the items that are lacking drawn one by one.

    >>> draw = resampler(np.array([3, 0, 7]))
    >>> drawn = draw(np.random.default_rng(0), 4)
    >>> drawn.sum(axis=1).tolist(), drawn[:, 1].tolist()
    ([10, 10, 10, 10], [0, 0, 0, 0])
    """
    total, n_cells = int(multiplicity.sum()), len(multiplicity)
    if total < SPARSE * n_cells:
        return _by_items(multiplicity)
    if n_cells > FEW_CELLS and total <= MOST_ITEMS:
        return _by_poisson(multiplicity)
    shares = multiplicity / total
    return lambda rng, size: rng.multinomial(total, shares, size=size)


def _by_items(multiplicity: Numbers) -> Draw:
    total, n_cells = int(multiplicity.sum()), len(multiplicity)
    cell = np.repeat(np.arange(n_cells), multiplicity)
    alone = total == n_cells and bool((multiplicity == 1).all())

    def draw(rng: np.random.Generator, size: int) -> Numbers:
        drawn = np.empty((size, n_cells), dtype=np.int64)
        for row in drawn:
            items = rng.integers(0, total, total, dtype=np.int32)
            row[:] = np.bincount(items if alone else cell[items], minlength=n_cells)
        return drawn

    return draw


def _by_poisson(multiplicity: Numbers) -> Draw:
    total, n_cells = int(multiplicity.sum()), len(multiplicity)
    cell = np.repeat(np.arange(n_cells, dtype=np.int32), multiplicity)
    rate = multiplicity * (1 - MARGIN / np.sqrt(total))

    def draw(rng: np.random.Generator, size: int) -> Numbers:
        drawn = np.empty((size, n_cells), dtype=np.int64)
        for row in drawn:
            row[:] = rng.poisson(rate)
            while (lacking := total - int(row.sum())) < 0:  # once in tens of thousands of draws
                row[:] = rng.poisson(rate)
            row += np.bincount(cell[rng.integers(0, total, lacking)], minlength=n_cells)
        return drawn

    return draw


def coins(rng: np.random.Generator, multiplicity: Numbers, size: int) -> Numbers:
    """Heads (size, cells) among `multiplicity` fair coins per cell.

    Up to 64 coins are the bits of one random word.

    >>> heads = coins(np.random.default_rng(0), np.array([0, 1, 64, 1000]), 2000)
    >>> int(heads[:, 0].max()), bool(abs(heads[:, 2].mean() - 32) < 0.5)
    (0, True)
    """
    few = multiplicity <= WORD
    heads = np.empty((size, len(multiplicity)), dtype=np.int64)
    heads[:, few] = _bits(rng, multiplicity[few], size)
    if not few.all():
        heads[:, ~few] = rng.binomial(multiplicity[~few], 0.5, size=(size, int((~few).sum())))
    return heads


def _bits(rng: np.random.Generator, multiplicity: Numbers, size: int) -> NDArray[np.uint8]:
    """Ones among the first `multiplicity` bits of random words, no wider than needed."""
    most = int(multiplicity.max(initial=0))
    kind = np.dtype(np.uint8 if most <= 8 else np.uint64)
    words = rng.integers(0, 256**kind.itemsize, size=(size, len(multiplicity)), dtype=kind)
    mask = np.array([(1 << n) - 1 for n in range(most + 1)], dtype=kind)
    heads: NDArray[np.uint8] = np.bitwise_count(words & mask[multiplicity])
    return heads
