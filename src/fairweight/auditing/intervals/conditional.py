"""The change inside a level if it did not matter who belongs to it.

Given how many answers of all examples were lost and gained, the level is a random subset of them:
(lost, gained, same) inside it is multivariate hypergeometric. Of interest is the distribution of
T = gained − lost of the level.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from fairweight.auditing.counts.stats import Floats

# Windows of lost and of gained answers reach this far about their means; the mass outside is
# below 1e-15 (8.5 standard deviations, and a constant for the skewed tails of small means).
_DEVIATIONS = 8.5
_EXTRA = 10.0
# Where both numbers spread over this many standard deviations and more, sums over `lost` are sums
# over a smooth bell: every step-th term gives the same share of the whole up to 1e-19 if the
# step is at most 1/1.5 of the smaller deviation of one given the other (Poisson's summation
# formula).
_SMOOTH = 6.0
_STEPS_PER_DEVIATION = 1.5
# Cells of the (lost, gained) grids that are held in memory at once.
_CELLS = 2_000_000


def tails(
    n: Floats, size: Floats, lost: Floats, gained: Floats, observed: Floats
) -> tuple[Floats, Floats, Floats]:
    """P(T < observed), P(T = observed) and P(T > observed) for each level.

    Parameters
    ----------
    n
        Examples of the level.
    size, lost, gained
        All examples, and the lost and gained answers among them.
    observed
        gained − lost of the level.

    Examples
    --------
    Two of four examples are lost; a level of two holds both of them in one of six cases.

    >>> one = np.ones(1)
    >>> below, equal, above = tails(2 * one, 4 * one, 2 * one, 0 * one, -2 * one)
    >>> float(below[0]), float(equal[0].round(4)), float(above[0].round(4))
    (0.0, 0.1667, 0.8333)
    """
    lost_low, lost_width, lost_deviation = _window(n, size, lost)
    gained_low, gained_width, gained_deviation = _window(n, size, gained)
    narrower = np.minimum(lost_deviation, gained_deviation) * _independence(size, lost, gained)
    smooth = np.where(narrower < _SMOOTH, 1.0, narrower / _STEPS_PER_DEVIATION)
    step = 2 ** np.floor(np.log2(smooth)).astype(np.intp)
    lost_width = -(-lost_width // step)
    masses = np.zeros((3, n.size))
    # Levels with windows of about the same size share a padded grid.
    order = np.lexsort((gained_width, np.ceil(np.log2(lost_width)), step))
    start = 0
    while start < order.size:
        batch = _batch(order[start : start + _CELLS], lost_width, gained_width, step)
        every = int(step[batch[0]])
        lost_grid = lost_low[batch, None] + every * np.arange(lost_width[batch].max())
        gained_grid = gained_low[batch, None] + np.arange(gained_width[batch].max())
        for probability, change in _grid(
            n[batch], size[batch], lost[batch], gained[batch], lost_grid, gained_grid, every
        ):
            change -= observed[batch, None, None]
            masses[0, batch] += np.where(change < 0, probability, 0.0).sum(axis=(1, 2))
            masses[1, batch] += np.where(change == 0, probability, 0.0).sum(axis=(1, 2))
            masses[2, batch] += np.where(change > 0, probability, 0.0).sum(axis=(1, 2))
        start += batch.size
    # The sum is 1 up to the rounding of log-factorials, which grows with the size of the table.
    below, equal, above = masses / masses.sum(axis=0)
    return below, equal, above


def _independence(size: Floats, lost: Floats, gained: Floats) -> Floats:
    """√(1 − ρ²) of the numbers of lost and gained answers; 0 where one determines the other."""
    same = size - lost - gained
    with np.errstate(invalid="ignore", divide="ignore"):
        left = size * same / ((size - lost) * (size - gained))  # 1 − ρ²
    return np.sqrt(np.clip(np.nan_to_num(left), 0.0, 1.0))


def _window(n: Floats, size: Floats, marked: Floats) -> tuple[Floats, NDArray[np.intp], Floats]:
    """Least plausible number of marked examples among n of size, width of the window, deviation."""
    share = marked / size
    mean = n * share
    variance = mean * (1 - share) * (size - n) / np.maximum(size - 1, 1.0)
    deviation = np.sqrt(variance)
    reach = _DEVIATIONS * deviation + _EXTRA
    least = np.maximum(np.maximum(0.0, n + marked - size), np.floor(mean - reach))
    most = np.minimum(np.minimum(n, marked), np.ceil(mean + reach))
    return least, (most - least + 1).astype(np.intp), deviation


def _batch(
    order: NDArray[np.intp],
    lost_width: NDArray[np.intp],
    gained_width: NDArray[np.intp],
    step: NDArray[np.intp],
) -> NDArray[np.intp]:
    """As many of the first levels as share a step and fit into one padded grid, at least one."""
    order = order[step[order] == step[order[0]]]
    cells = (
        np.arange(1, order.size + 1)
        * np.maximum.accumulate(lost_width[order])
        * np.maximum.accumulate(gained_width[order])
    )
    return order[: max(1, int(np.searchsorted(cells, _CELLS, side="right")))]


def _grid(
    n: Floats,
    size: Floats,
    lost: Floats,
    gained: Floats,
    lost_grid: Floats,
    gained_grid: Floats,
    step: int,
) -> Iterator[tuple[Floats, Floats]]:
    """Slices of (probability, gained − lost) over the grid, of shape (levels, lost, gained).

    Only the last of the three binomial coefficients joins both axes, and only through
    lost + gained: log-factorials are evaluated on lines, not on the plane.
    """
    width = gained_grid.shape[1]
    log_lost = _log_choose(lost[:, None], lost_grid)
    log_gained = _log_choose(gained[:, None], gained_grid)
    length = step * (lost_grid.shape[1] - 1) + width
    together = lost_grid[:, :1] + gained_grid[:, :1] + np.arange(length)
    log_same = _log_choose((size - lost - gained)[:, None], n[:, None] - together)
    log_same -= _log_choose(size, n)[:, None]
    rows = max(1, _CELLS // (n.size * width))
    for first in range(0, lost_grid.shape[1], rows):
        part = slice(first, first + rows)
        line = log_same[:, step * first : step * (first + rows - 1) + width]
        joint = np.lib.stride_tricks.sliding_window_view(line, width, axis=1)[:, ::step]
        probability = np.exp(log_lost[:, part, None] + log_gained[:, None, :] + joint)
        yield probability, gained_grid[:, None, :] - lost_grid[:, part, None]


def _log_choose(total: Floats, chosen: Floats) -> Floats:
    """log of the binomial coefficient, −inf where there is no such choice."""
    possible = (chosen >= 0) & (chosen <= total)
    k = np.where(possible, chosen, 0.0)
    log = gammaln(total + 1) - gammaln(k + 1) - gammaln(total - k + 1)
    return np.where(possible, log, -np.inf)
