"""What the data could have found: power of the paired test, before looking at its result."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammaln, ndtr, ndtri

from fairweight.auditing.intervals.proportion import mcnemar
from fairweight.base.types import Floats

# Above this many expected discordant pairs the normal formula is exact to three digits.
_NORMAL_ABOVE = 5_000.0
# Six standard deviations of the number of discordant pairs leave out 1e-9.
_DEVIATIONS = 6.0
# Steps and relative precision of the search for a shift.
_STEPS = 60
_TOLERANCE = 1e-6
# (row, discordant pairs) cells held in memory at once.
_CELLS = 2_000_000


def min_detectable_shift(
    n: ArrayLike,
    discordance: ArrayLike,
    alpha: ArrayLike = 0.05,
    *,
    power: float = 0.8,
    design_effect: ArrayLike = 1.0,
) -> Floats:
    """Least harmful shift (as a positive size) that mid-p McNemar finds with the given power.

    Parameters
    ----------
    n
        Examples of the row.
    discordance
        Share of examples on which the two models differ, pooled over the variant: never the
        row's own result. Where a shift is larger than it, all discordance is harmful.
    alpha
        Two-sided level of the test, after the correction for its family (alpha / m).
    power
        Chance of a significant result in the harmful direction.
    design_effect
        Variance inflation by clusters; n is divided by it.

    Returns
    -------
    NDArray
        NaN where not even a shift of 1 (every answer lost) would be found.

    Notes
    -----
    With ψ = max(discordance, δ): the number m of discordant pairs is Binomial(n, ψ) and the lost
    ones among them Binomial(m, (ψ + δ) / 2ψ); the power is summed over both. From n ψ = 5,000 on
    the normal formula √n δ = z_α √ψ + z_power √(ψ − δ²) is used.

    Examples
    --------
    Five examples cannot be significant at 0.05 unless all five are lost: (1/2)⁵ = 0.03, so
    δ⁵ = 0.8 at least, δ = 0.956. Four examples never are: (1/2)⁴ = 0.0625.

    >>> min_detectable_shift([4, 5], 0.1).round(3).tolist()
    [nan, 0.956]
    """
    rows, back, shape = _distinct_rows(n, discordance, alpha, design_effect)
    size, psi, level = np.floor(rows[0] / rows[3] + 1e-9), rows[1], rows[2]
    defined = (size >= 1) & (psi >= 0) & (psi <= 1) & (level > 0)
    found = np.full(size.size, np.nan)
    large = defined & (size * psi > _NORMAL_ABOVE)
    # δ of √n δ = z_α √ψ + z_power √(ψ − δ²), a quadratic equation.
    many, z_alpha, z_power = size[large], -ndtri(level[large] / 2), ndtri(power)
    inner = psi[large] * z_power**2 * (many - z_alpha**2 + z_power**2)
    outer = np.sqrt(many * psi[large]) * z_alpha + np.sign(z_power) * np.sqrt(inner)
    found[large] = outer / (many + z_power**2)
    exact = np.flatnonzero(defined & ~large)
    exact = exact[_power(size[exact], np.ones(exact.size), psi[exact], level[exact]) >= power]
    found[exact] = _least_shift(size[exact], psi[exact], level[exact], power)
    return found[back].reshape(shape)


def examples_needed(
    shift: ArrayLike,
    discordance: ArrayLike,
    alpha: ArrayLike = 0.05,
    *,
    power: float = 0.8,
    design_effect: ArrayLike = 1.0,
) -> Floats:
    """Examples with which a shift of that size is found with the given power.

    The counterpart of `min_detectable_shift`, with the same test and the same meaning of
    `discordance`. NaN where the shift is 0 or not a number.

    Examples
    --------
    >>> needed = examples_needed(0.05, 0.1)
    >>> bool(min_detectable_shift(needed, 0.1) <= 0.05)
    True
    """
    rows, back, shape = _distinct_rows(shift, discordance, alpha, design_effect)
    delta, psi, level, effect = np.abs(rows[0]), rows[1], rows[2], rows[3]
    defined = np.flatnonzero((delta > 0) & (delta <= 1) & (psi >= 0) & (psi <= 1) & (level > 0))
    delta, psi, level = delta[defined], psi[defined], level[defined]
    # Power rises with n but for small steps of the discrete test, so a bracket about the normal
    # formula is widened until it holds and then halved.
    widest = np.maximum(psi, delta)
    inner = np.sqrt(np.maximum(widest - delta**2, 0.0))
    guess = ((-ndtri(level / 2) * np.sqrt(widest) + ndtri(power) * inner) / delta) ** 2
    low, high = np.floor(guess / 2), np.ceil(2 * guess) + 1
    while np.any(wide := _power(np.maximum(low, 1.0), delta, psi, level) >= power):
        if np.all(low[wide] <= 1):
            break
        low = np.where(wide, np.floor(low / 2), low)
    while np.any(short := _power(high, delta, psi, level) < power):
        high = np.where(short, 2 * high, high)
    low = np.maximum(low, 0.0)
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        enough = _power(middle, delta, psi, level) >= power
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    needed = np.full(rows[0].size, np.nan)
    needed[defined] = np.ceil(high * effect[defined] - 1e-9)
    return needed[back].reshape(shape)


def _least_shift(n: Floats, discordance: Floats, alpha: Floats, power: float) -> Floats:
    """Root of the exact power by false position on the probit scale, where it is nearly a line."""
    target = ndtri(power)
    low, high = np.zeros(n.size), np.ones(n.size)
    at_low = ndtri(alpha / 2) - target
    at_high = np.full(n.size, 8.0)
    last = np.zeros(n.size)
    active = np.arange(n.size)
    for _ in range(_STEPS):
        if active.size == 0:
            break
        i = active
        middle = (low[i] * at_high[i] - high[i] * at_low[i]) / (at_high[i] - at_low[i])
        value = _power(n[i], middle, discordance[i], alpha[i])
        value = np.clip(ndtri(value), -8.0, 8.0) - target
        up = value >= -_TOLERANCE
        # Illinois: an end that stays put twice counts half, so that both ends move.
        at_low[i] = np.where(up, np.where(last[i] > 0, at_low[i] / 2, at_low[i]), value)
        at_high[i] = np.where(up, value, np.where(last[i] < 0, at_high[i] / 2, at_high[i]))
        low[i], high[i] = np.where(up, low[i], middle), np.where(up, middle, high[i])
        last[i] = np.where(up, 1.0, -1.0)
        active = i[(np.abs(value) > _TOLERANCE) & (high[i] - low[i] > _TOLERANCE * high[i])]
    return high


def _distinct_rows(*columns: ArrayLike) -> tuple[Floats, NDArray[np.intp], tuple[int, ...]]:
    """The different rows, each computed once, and where each row of the input is among them."""
    full = np.broadcast_arrays(*(np.asarray(x, dtype=np.float64) for x in columns))
    table = np.stack([column.ravel() for column in full])
    rows, back = np.unique(table, axis=1, return_inverse=True)
    return rows, back.ravel(), full[0].shape


def _power(n: Floats, delta: Floats, discordance: Floats, alpha: Floats) -> Floats:
    """Chance that mid-p McNemar is significant at alpha on the harmful side."""
    psi = np.maximum(discordance, delta)
    power = np.zeros(n.size)
    large = n * psi > _NORMAL_ABOVE
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(np.maximum(psi - delta**2, 0.0))
        z = (np.sqrt(n) * delta + ndtri(alpha / 2) * np.sqrt(psi)) / spread
    power[large] = ndtr(z[large])
    small = np.flatnonzero(~large)
    mean = n[small] * psi[small]
    reach = _DEVIATIONS * np.sqrt(mean * (1 - psi[small])) + 8
    first = np.maximum(0.0, np.floor(mean - reach))
    width = (np.minimum(n[small], np.ceil(mean + reach)) - first + 1).astype(np.intp)
    if small.size == 0:
        return power
    below = 1 << int((first + width).max()).bit_length()
    levels, code = np.unique(alpha[small], return_inverse=True)
    critical = np.stack([_critical(float(level), below) for level in levels])
    share = np.minimum((psi + delta) / (2 * psi), 1.0)
    cuts = np.flatnonzero(np.diff(np.cumsum(width) // _CELLS)) + 1
    for part in np.split(np.arange(width.size), cuts):
        row = np.repeat(small[part], width[part])
        starts = np.cumsum(width[part]) - width[part]
        m = np.repeat(first[part] - starts, width[part]) + np.arange(row.size, dtype=np.float64)
        most = critical[np.repeat(code[part], width[part]), m.astype(np.intp)]
        # At most `most` gained among m pairs is significant: a binomial tail.
        some = most >= 0
        chance = np.zeros(m.size)
        chance[some] = betainc(m[some] - most[some], most[some] + 1, share[row[some]])
        weight = _binomial(m, n[row], psi[row])
        power[small[part]] = np.add.reduceat(weight * chance, starts)
    return power


@lru_cache(maxsize=256)
def _critical(alpha: float, below: int) -> Floats:
    """For m = 0 … below − 1 the most gained among m discordant pairs that is significant, or −1."""
    m = np.arange(below, dtype=np.float64)
    low, high = np.full(below, -1.0), np.ceil(m / 2)  # significant; not significant
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        significant = mcnemar(m - middle, middle) <= alpha
        low, high = np.where(significant, middle, low), np.where(significant, high, middle)
    low.flags.writeable = False
    return low


def _binomial(k: Floats, n: Floats, p: Floats) -> Floats:
    """Binomial probability; p may be 0 or 1."""
    with np.errstate(invalid="ignore", divide="ignore"):
        log = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
        log += np.where(k > 0, k * np.log(p), 0.0)
        log += np.where(k < n, (n - k) * np.log1p(-p), 0.0)
    probability: Floats = np.exp(log)
    return probability
