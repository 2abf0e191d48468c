"""Replicates of counted items, drawn; limits and p-values from them.

Draws are exact, and as cheap as their number allows: the bootstrap draws items again, the null
exchanges them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from fairweight.base.types import Floats, Limits

Numbers: TypeAlias = NDArray[np.int64]
Draw: TypeAlias = Callable[[np.random.Generator, int], Numbers]

SPARSE = 16  # below this many items per cell, drawing items costs less than drawing cells
FEW_CELLS = 2_000  # up to here a multinomial is cheap enough
MARGIN = 4.0  # standard deviations by which the Poisson total stays below the total
MOST_ITEMS = 100_000_000  # items whose cells are kept in a list
ITEMS_AT_ONCE = 500_000  # of tables that are not large several draws are made in one call
WORD = 64
TABLED = 128  # the largest rate whose Poisson numbers are looked up
COLUMNS = 256  # numbers in a table: a byte; 11 standard deviations above the largest rate
# Fewer replicates than this beyond a limit and the percentile itself is noise.
_RESOLVED = 5
# Draws whose squares are made at a time: copies of them stay small.
_AT_ONCE = 500_000


class Replicates:
    """Draws, the first axis, with what limits at any level are read from: made once, on demand.

    Only the draws in order are held, so that those of many rows take their memory once.

    Attributes
    ----------
    ordered
        The draws of each row from the least to the largest, (…, R); NaN come last.

    >>> drawn = Replicates(np.array([[1.0], [float("nan")], [3.0]]))
    >>> drawn.undefined.round(2).tolist(), drawn.still.tolist(), drawn.mean.tolist()
    ([0.33], [False], [2.0])
    """

    def __init__(self, draws: Floats) -> None:
        self.ordered: Floats = np.array(np.moveaxis(draws, 0, -1), order="C")
        self.ordered.sort(axis=-1)

    @cached_property
    def defined(self) -> NDArray[np.intp]:
        """How many draws of each row are numbers."""
        number = np.full(self.ordered.shape[:-1], self.ordered.shape[-1], dtype=np.intp)
        if np.isnan(self.ordered[..., -1]).any():
            number -= np.count_nonzero(np.isnan(self.ordered), axis=-1)
        return number

    @property
    def undefined(self) -> Floats:
        """The share of the others; over 5 % a result is called unstable."""
        number = self.ordered.shape[-1]
        share: Floats = (number - self.defined) / number
        return share

    @property
    def still(self) -> NDArray[np.bool_]:
        """Rows whose draws are all alike: they say nothing about the next example.

        A group on which two models agree everywhere would else get an interval of no width.
        """
        return np.asarray(self.ordered[..., 0] == self.ordered[..., -1])

    @cached_property
    def mean(self) -> Floats:
        whole = (self.defined == self.ordered.shape[-1]).all()  # nansum copies
        with np.errstate(invalid="ignore", divide="ignore"):
            made: Floats = (np.sum if whole else np.nansum)(self.ordered, axis=-1) / self.defined
            return made

    def deviation(self, less: int = 1) -> Floats:
        """The standard error that the draws estimate; of the draws themselves with `less` 0."""
        rows, mean = self.ordered.reshape(-1, self.ordered.shape[-1]), self.mean.reshape(-1, 1)
        square = np.empty(len(rows))
        at_once = max(1, _AT_ONCE // max(rows.shape[1], 1))
        for start in range(0, len(rows), at_once):
            part = slice(start, start + at_once)
            moved = (rows[part] - mean[part]) ** 2
            square[part] = np.where(np.isnan(rows[part]), 0.0, moved).sum(axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            made: Floats = np.sqrt(square.reshape(self.mean.shape) / (self.defined - less))
            return made

    def percentile(self, alpha: ArrayLike = 0.05) -> tuple[Floats, Floats]:
        """Quantiles alpha/2 and 1 − alpha/2 of the defined draws.

        `alpha` may be an array that broadcasts against the remaining axes. NaN where no draw is
        defined.

        >>> low, high = Replicates(np.arange(101.0)).percentile(alpha=0.1)
        >>> float(low), float(high)
        (5.0, 95.0)
        """
        return percentile(self.ordered, self.defined, alpha)

    def simultaneous(self, estimate: ArrayLike, level: ArrayLike) -> tuple[Floats, Floats]:
        """Percentile limits at a small level, such as alpha / m for a family of m.

        >>> low, high = Replicates(np.arange(1001.0)).simultaneous(500.0, 0.1 / 2)
        >>> float(low), float(high)
        (25.0, 975.0)
        """
        return simultaneous(estimate, self.ordered, self.defined, self.deviation(), level)


# The same of draws in order, (…, R), and of how many of them are defined: rows of many tables can
# be put together.


def quantile(ordered: Floats, defined: NDArray[np.intp], share: Floats) -> Floats:
    """Linear interpolation between order statistics, as numpy's default; NaN where none is."""
    last = np.maximum(defined - 1, 0)
    place = share * last
    left = np.floor(place).astype(np.intp)
    right = np.minimum(left + 1, last)
    row = np.arange(last.size).reshape(last.shape)
    flat = ordered.reshape(-1, ordered.shape[-1])
    at_left, at_right = flat[row, left], flat[row, right]
    result: Floats = at_left + (place - left) * (at_right - at_left)
    return result


def percentile(ordered: Floats, defined: NDArray[np.intp], alpha: ArrayLike) -> Limits:
    """Quantiles alpha/2 and 1 − alpha/2; `alpha` may be an array that broadcasts."""
    tail = np.asarray(alpha, dtype=np.float64) / 2
    return quantile(ordered, defined, tail), quantile(ordered, defined, 1 - tail)


def simultaneous(
    estimate: ArrayLike,
    ordered: Floats,
    defined: NDArray[np.intp],
    error: Floats,
    level: ArrayLike,
) -> Limits:
    """Percentile limits at a small level, such as alpha / m for a family of m.

    Where fewer than five draws lie beyond such a limit, it is not resolved by them: then the limits
    are estimate ± z · standard error of the draws, and never inside the extremes that were
    observed.
    """
    value, level = np.asarray(estimate, np.float64), np.asarray(level, np.float64)
    low, high = percentile(ordered, defined, level)
    resolved = (defined * level / 2 >= _RESOLVED) | (defined == 0)
    if not resolved.all():
        reach = -ndtri(level / 2) * error
        lowest, highest = (quantile(ordered, defined, np.array(end)) for end in (0.0, 1.0))
        low = np.where(resolved, low, np.minimum(value - reach, lowest))
        high = np.where(resolved, high, np.maximum(value + reach, highest))
    undefined = np.isnan(value)
    return np.where(undefined, np.nan, low), np.where(undefined, np.nan, high)


def basic(
    estimate: ArrayLike,
    replicates: Replicates,
    alpha: ArrayLike = 0.05,
    floor: float | None = None,
) -> tuple[Floats, Floats]:
    """The basic (reflected) interval [2T − q_high, 2T − q_low], cut at `floor` if one is given.

    For statistics that noise can only inflate (CEV, SDE) the percentile interval misses the truth
    nearly always; reflection takes the inflation back.

    >>> low, high = basic(10.0, Replicates(np.arange(101.0)), alpha=0.1, floor=0.0)
    >>> float(low), float(high)
    (0.0, 15.0)
    """
    twice = 2 * np.asarray(estimate, dtype=np.float64)
    q_low, q_high = replicates.percentile(alpha)
    low, high = twice - q_high, twice - q_low
    if floor is None:
        return low, high
    return np.maximum(low, floor), np.maximum(high, floor)


def bias_corrected(
    estimate: ArrayLike, replicates: Replicates, *, drop_negative: bool = False
) -> Floats:
    """2T − mean of the replicates: the estimate less its bootstrap bias.

    With `drop_negative` a negative value, impossible for a variance or a distance, is NaN.

    >>> drawn = Replicates(np.array([6.0, 7.0, 8.0]))
    >>> float(bias_corrected(5.0, drawn)), float(bias_corrected(1.0, drawn, drop_negative=True))
    (3.0, nan)
    """
    corrected: Floats = 2 * np.asarray(estimate, dtype=np.float64) - replicates.mean
    with np.errstate(invalid="ignore"):
        return np.where(drop_negative & (corrected < 0), np.nan, corrected)


def exceedance_p(observed: ArrayLike, null: ArrayLike, two_sided: bool = True) -> Floats:
    """(1 + number of null draws at least as extreme) / (1 + number of defined null draws).

    Two-sided: extreme in absolute value, for statistics whose null is symmetric about 0 (every
    signed shift under exchange of the two predictions); else extreme means large. Undefined draws
    are left out on both sides of the division.

    >>> float(exceedance_p(2.0, [-3.0, 1.0, 0.0, float("nan")]))
    0.5
    """
    draws = np.asarray(null, dtype=np.float64)
    value = np.asarray(observed, dtype=np.float64)
    if two_sided:
        draws, value = np.abs(draws), np.abs(value)
    # A draw that equals the observed value up to rounding is a tie, not a smaller value.
    slack = 1e-9 * np.abs(value) + 1e-15
    extreme = np.count_nonzero(draws >= value - slack, axis=0)
    missing = np.isnan(draws)
    defined = len(draws) - (np.count_nonzero(missing, axis=0) if missing.any() else 0)
    undefined = np.isnan(value) | (defined == 0)
    return np.where(undefined, np.nan, (1 + extreme) / (1 + defined))


# Intervals of composites that noise can only inflate: CEV, SDE and their forms in points.


def inflated_limits(
    estimate: Floats,
    replicates: Replicates,
    null: Replicates | None,
    alpha: float,
    *,
    absolute: bool,
    reach_up: float = 1.0,
) -> tuple[Floats, Floats]:
    """The basic interval, cut at 0; for means of absolute values with ends that noise allows.

    Parameters
    ----------
    estimate, replicates
        T, (rows,), and its bootstrap replicates, (R, rows).
    null
        Replicates under exchange of the two models' predictions, (R, rows), if there are any.
    absolute
        True for means of absolute changes (SDE), false for variances (CEV).
    reach_up
        How many bootstrap deviations above T the upper end of an absolute mean is at least.

    Notes
    -----
    Reflection takes the inflation of a variance back, but not that of a mean of absolute values:
    T* is about √2 T with a small spread where nothing changed, and 2T − q excludes 0. There the
    lower end is at most √(T² − S²), S the 1 − alpha/2 quantile of the null (what noise alone makes
    adds to a change in squares), and the upper end at least T plus `reach_up` bootstrap deviations.
    Measured coverage at 1,000 examples per class: docs/statistics.md.

    Examples
    --------
    Under the null T reaches 4, so of an estimate of 5 at least √(25 − 16) = 3 is no noise.

    >>> draws, null = Replicates(np.full((200, 1), 5.5)), Replicates(np.full((200, 1), 4.0))
    >>> low, high = inflated_limits(np.array([5.0]), draws, null, 0.05, absolute=True)
    >>> float(low[0]), float(high[0])
    (3.0, 5.0)
    """
    low, high = basic(estimate, replicates, alpha, floor=0.0)
    if not absolute or null is None:
        return low, high
    _, reach = null.percentile(alpha)
    low = np.minimum(low, np.sqrt(np.maximum(estimate**2 - reach**2, 0.0)))
    return low, np.maximum(high, estimate + reach_up * replicates.deviation(less=0))


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
    together = max(1, ITEMS_AT_ONCE // max(total, 1))

    def draw(rng: np.random.Generator, size: int) -> Numbers:
        drawn = np.empty((size, n_cells), dtype=np.int64)
        for start in range(0, size, together):
            here = drawn[start : start + together]
            # One call for many numbers: a call costs as much as thousands of them.
            items = rng.integers(0, total, (len(here), total), dtype=np.int32)
            for row, own in zip(here, items, strict=True):
                places = own if alone else cell.take(own, mode="clip")
                row[:] = np.bincount(places, minlength=n_cells)
        return drawn

    return draw


def _by_poisson(multiplicity: Numbers) -> Draw:
    total, n_cells = int(multiplicity.sum()), len(multiplicity)
    cell = np.repeat(np.arange(n_cells, dtype=np.int32), multiplicity)
    below = 1 - MARGIN / np.sqrt(total)
    large = np.flatnonzero(multiplicity > TABLED)
    rate = multiplicity[large] * below
    keep, other = (t.ravel() for t in walker(poisson_laws(np.arange(TABLED + 1) * below)))
    table = np.where(multiplicity > TABLED, 0, multiplicity) * COLUMNS

    def poisson(rng: np.random.Generator) -> Numbers:
        word = rng.integers(0, 2**64, n_cells, dtype=np.uint64)
        column = word.astype(np.uint8)  # its last byte; the others decide who has the column
        at = table + column
        number = np.where(word < keep.take(at), column, other.take(at)).astype(np.int64)
        number[large] = rng.poisson(rate)
        return number

    def draw(rng: np.random.Generator, size: int) -> Numbers:
        drawn = np.empty((size, n_cells), dtype=np.int64)
        for row in drawn:
            row[:] = poisson(rng)
            while (lacking := total - int(row.sum())) < 0:  # once in tens of thousands of draws
                row[:] = poisson(rng)
            row += np.bincount(
                cell[rng.integers(0, total, lacking, dtype=np.int32)], minlength=n_cells
            )
        return drawn

    return draw


def poisson_laws(rates: Floats) -> Floats:
    """P(0), P(1), ... of Poisson numbers, (rates, `COLUMNS`).

    >>> poisson_laws(np.array([0.0, 2.0]))[:, :3].round(4).tolist()
    [[1.0, 0.0, 0.0], [0.1353, 0.2707, 0.2707]]
    """
    number = np.arange(COLUMNS)
    log_factorial = np.cumsum(np.log(np.maximum(number, 1)))
    known = np.maximum(rates, np.finfo(float).tiny)[:, None]
    law: Floats = np.exp(number * np.log(known) - known - log_factorial)
    law /= law.sum(axis=1, keepdims=True)
    return law


def walker(laws: Floats) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Tables that turn one random word into a number of a law (the alias method).

    All `COLUMNS` columns are as wide as each other. Column k gives k to words below its bound, and
    another number to the others; the last byte of a word says which column it falls into.

    References
    ----------
    Walker, A. J. (1977). "An efficient method for generating discrete random variables with
    general distributions." ACM Transactions on Mathematical Software 3, 253-256.
    """
    left = laws * COLUMNS  # what is still to be placed of every number, in widths of a column
    keep = np.ones_like(left)
    other = np.tile(np.arange(COLUMNS, dtype=np.uint8), (len(laws), 1))
    placed = np.zeros(left.shape, dtype=bool)
    law = np.arange(len(laws))
    for _ in range(COLUMNS - 1):  # the least fills its column up with the most
        least = np.where(placed, np.inf, left).argmin(axis=1)
        most = np.where(placed, -np.inf, left).argmax(axis=1)
        keep[law, least], other[law, least] = left[law, least], most
        left[law, most] -= 1 - left[law, least]
        placed[law, least] = True
    # 53 bits, above the byte of the column; a whole column has no other number to give.
    bound = np.clip(np.round(keep * 2.0**53), 0, 2.0**53 - 1).astype(np.uint64) << np.uint64(11)
    return bound, other


def coins(rng: np.random.Generator, multiplicity: Numbers, size: int) -> Numbers:
    """Heads (size, cells) among `multiplicity` fair coins per cell.

    Up to 64 coins are the bits of one random word.

    >>> heads = coins(np.random.default_rng(0), np.array([0, 1, 64, 1000]), 2000)
    >>> int(heads[:, 0].max()), bool(abs(heads[:, 2].mean() - 32) < 0.5)
    (0, True)
    """
    few = multiplicity <= WORD
    heads = np.empty((size, len(multiplicity)), dtype=np.int64)
    # Ones among the first bits of random words that are no wider than needed.
    most = int(multiplicity[few].max(initial=0))
    kind = np.dtype(np.uint8 if most <= 8 else np.uint64)
    words = rng.integers(0, 256**kind.itemsize, size=(size, int(few.sum())), dtype=kind)
    mask = np.array([(1 << n) - 1 for n in range(most + 1)], dtype=kind)
    heads[:, few] = np.bitwise_count(words & mask[multiplicity[few]])
    if not few.all():
        heads[:, ~few] = rng.binomial(multiplicity[~few], 0.5, size=(size, int((~few).sum())))
    return heads
