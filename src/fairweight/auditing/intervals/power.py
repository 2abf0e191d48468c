"""What data can find or rule out: power of the paired test and of the gate, before any result."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammaln, ndtr, ndtri

from fairweight.auditing.intervals.proportion import mcnemar, tango_test
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
    exact = exact[0.5 ** size[exact] <= level[exact]]  # p where every prediction is lost
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
    rows, back, shape = _distinct_rows(shift, discordance, alpha)
    delta, psi, level = np.abs(rows[0]), rows[1], rows[2]
    defined = np.flatnonzero((delta > 0) & (delta <= 1) & (psi >= 0) & (psi <= 1) & (level > 0))
    delta, psi, level = delta[defined], psi[defined], level[defined]
    # Power rises with n but for small steps of the discrete test, so a bracket about the normal
    # formula is widened until it holds and then halved.
    widest = np.maximum(psi, delta)
    inner = np.sqrt(np.maximum(widest - delta**2, 0.0))
    guess = ((-ndtri(level / 2) * np.sqrt(widest) + ndtri(power) * inner) / delta) ** 2
    low, high = np.floor(guess / 2), np.ceil(2 * guess) + 1
    open_ = np.ones(len(low), dtype=bool)

    def enough(n: Floats) -> NDArray[np.bool_]:
        """Of the rows that are open."""
        power_at = _power(n[open_], delta[open_], psi[open_], level[open_], repeated=True)
        found: NDArray[np.bool_] = power_at >= power
        return found

    while open_.any():
        open_[open_] = enough(np.maximum(low, 1.0)) & (low[open_] > 1)
        low[open_] = np.floor(low[open_] / 2)
    open_[:] = True
    while open_.any():
        open_[open_] = ~enough(high)
        high[open_] *= 2
    low = np.maximum(low, 0.0)
    while (open_ := high - low > 1).any():
        middle = np.floor((low + high) / 2)
        found = enough(middle)
        low[open_] = np.where(found, low[open_], middle[open_])
        high[open_] = np.where(found, middle[open_], high[open_])
    needed = np.full(rows[0].size, np.nan)
    needed[defined] = high
    worth: Floats = needed[back].reshape(shape) * np.asarray(design_effect, dtype=np.float64)
    return np.ceil(worth - 1e-9)


# Ruling a loss out: the gate passes a row where Tango's lower limit is above −margin.

GATE_LEVEL = 0.05  # one-sided


def least_n(margin: float, alpha: float = GATE_LEVEL) -> int:
    """The least n at which identical predictions rule out a loss of `margin`.

    Tango's lower limit without a discordant pair is −z² / (n + z²), which must be above −margin:
    n > z² (1 / margin − 1), with the one-sided z.

    >>> least_n(0.02)
    133
    """
    return math.floor(float(ndtri(alpha)) ** 2 * (1 / margin - 1)) + 1


def pass_chance(
    n: ArrayLike, margin: float, churn: float, loss: float = 0.0, *, alpha: float = GATE_LEVEL
) -> Floats:
    """How probably the gate rules out a loss of `margin` in a row of n examples.

    Parameters
    ----------
    n
        Examples of the row, or how many independent ones they are worth.
    margin
        The largest tolerated loss.
    churn
        Share ψ of examples on which just one of the two models is right.
    loss
        The true loss δ; where it is larger than the churn, all churn is loss.
    alpha
        One-sided level of the limit.

    Notes
    -----
    The number m of examples that changed is Binomial(n, ψ), the lost ones among them
    Binomial(m, (ψ + δ) / 2ψ); the chance is summed over both. From n ψ = 5,000 on Tango's
    statistic is taken as normal.

    Examples
    --------
    Identical predictions pass 2 points from n = 133 on. Three examples pass 49 points where none is
    lost (one loss and two gains leave −.493): with 10 % churn in .95³ = .857.

    >>> pass_chance([3], 0.49, 0.1).round(3).tolist()
    [0.857]
    >>> pass_chance([132, 133], 0.02, 0.0).tolist()
    [0.0, 1.0]
    """
    size = np.atleast_1d(np.asarray(n, dtype=np.float64))
    psi, z = max(churn, loss), -float(ndtri(alpha))
    lost, gained = (psi + loss) / 2, (psi - loss) / 2
    chance = np.zeros(size.shape)
    large = size * psi > _NORMAL_ABOVE
    if large.any():
        # The statistic's own error per example, where counts are as expected.
        unit = (margin - loss) / float(tango_test(1.0, lost, gained, -margin))
        distance = np.sqrt(size[large]) * (margin - loss) - z * unit
        chance[large] = ndtr(distance / math.sqrt(psi - loss**2))
    whole = np.floor(size[~large] + 1e-9)
    if whole.size:
        mean = whole * psi
        reach = _DEVIATIONS * np.sqrt(mean * (1 - psi)) + 8
        first = np.maximum(0.0, np.floor(mean - reach))
        width = (np.minimum(whole, np.ceil(mean + reach)) - first + 1).astype(np.intp)
        row = np.repeat(np.arange(whole.size), width)
        starts = np.cumsum(width) - width
        m = np.repeat(first - starts, width) + np.arange(row.size, dtype=np.float64)
        # The most lost among m that passes, −1 for none: the statistic falls with every loss.
        most, fails = np.full(m.size, -1.0), m + 1
        while np.any(fails - most > 1):
            middle = np.floor((most + fails) / 2)
            passes = tango_test(whole[row], middle, m - middle, -margin) > z
            open_ = fails - most > 1
            most = np.where(open_ & passes, middle, most)
            fails = np.where(open_ & ~passes, middle, fails)
        below = np.where(most >= m, 1.0, 0.0)
        some = (most >= 0) & (most < m)
        gains = gained / psi if psi > 0 else 0.5
        below[some] = betainc(m[some] - most[some], most[some] + 1, gains)
        weight = _binomial(m, whole[row], np.full(m.size, psi))
        chance[~large] = np.add.reduceat(weight * below, starts)
    return chance.reshape(np.shape(n))


@lru_cache(maxsize=4096)
def examples_to_pass(
    margin: float,
    churn: float,
    *,
    power: float = 0.8,
    rows: int = 1,
    loss: float = 0.0,
    alpha: float = GATE_LEVEL,
) -> int:
    """Examples that each of `rows` rows needs for all of them to pass with that power.

    Rows pass independently of each other, so each must with probability power^(1/rows). The chance
    of a discrete statistic rises in teeth: from this n on it never falls below that again.

    Examples
    --------
    >>> examples_to_pass(0.02, 0.0), examples_to_pass(0.05, 0.03)
    (133, 118)
    """
    if not 0 <= loss < margin:
        raise ValueError("the true loss must be below the margin")
    each = power ** (1 / rows)

    def short(n: NDArray[np.int_]) -> NDArray[np.bool_]:
        below: NDArray[np.bool_] = pass_chance(n, margin, churn, loss, alpha=alpha) < each
        return below

    low = least_n(margin, alpha) - 1  # not even identical predictions pass
    high = low + 1
    while short(np.array([high]))[0]:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if short(np.array([middle]))[0] else (low, middle)
    while True:  # one loss more is allowed about every 1 / margin examples: a tooth
        ahead = np.arange(high, high + math.ceil(4 / margin))
        missed = np.flatnonzero(short(ahead))
        if missed.size == 0:
            return high
        high = int(ahead[missed[-1]]) + 1


def margin_to_pass(
    n: float, churn: float, *, power: float = 0.8, rows: int = 1, alpha: float = GATE_LEVEL
) -> float:
    """The smallest margin that rows of n examples rule out with that power if they lose nothing.

    >>> round(margin_to_pass(133, 0.0), 4)
    0.0199
    """
    low, high = 1e-6, 1 - 1e-9
    while high - low > 1e-6:
        middle = (low + high) / 2
        enough = pass_chance(n, middle, churn, alpha=alpha) >= power ** (1 / rows)
        low, high = (low, middle) if enough else (middle, high)
    return high


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


def _power(
    n: Floats, delta: Floats, discordance: Floats, alpha: Floats, *, repeated: bool = False
) -> Floats:
    """Chance that mid-p McNemar is significant at alpha on the harmful side.

    With `repeated` the same shifts are asked for at other n: the tails, which do not depend on n,
    are kept.
    """
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
    share = np.minimum((psi + delta) / (2 * psi), 1.0)
    tests, code = np.unique([alpha[small], share[small] if repeated else alpha[small]], axis=1,
                            return_inverse=True)  # fmt: skip
    code = code.reshape(-1)
    kept = np.stack([
        _tails(level, lost, below) if repeated else _critical(level, below)
        for level, lost in tests.T.tolist()
    ])  # fmt: skip
    cuts = np.flatnonzero(np.diff(np.cumsum(width) // _CELLS)) + 1
    for part in np.split(np.arange(width.size), cuts):
        row = np.repeat(small[part], width[part])
        starts = np.cumsum(width[part]) - width[part]
        m = np.repeat(first[part] - starts, width[part]) + np.arange(row.size, dtype=np.float64)
        chance = kept[np.repeat(code[part], width[part]), m.astype(np.intp)]
        if not repeated:
            chance = _tail(m, chance, share[row])
        weight = _binomial(m, n[row], psi[row])
        power[small[part]] = np.add.reduceat(weight * chance, starts)
    return power


def _tail(m: Floats, most: Floats, share: Floats) -> Floats:
    """Chance that at most `most` of m discordant pairs are gained; 0 where it is −1."""
    some = most >= 0
    chance = np.zeros(m.size)
    chance[some] = betainc(m[some] - most[some], most[some] + 1, share[some])
    return chance


@lru_cache(maxsize=64)
def _tails(alpha: float, share: float, below: int) -> Floats:
    """For m = 0 … below − 1 discordant pairs the chance of a significant result."""
    return _tail(np.arange(below, dtype=np.float64), _critical(alpha, below), np.full(below, share))


@lru_cache(maxsize=256)
def _critical(alpha: float, below: int) -> Floats:
    """For m = 0 … below − 1 the most gained among m discordant pairs that is significant, or −1."""
    m = np.arange(below, dtype=np.float64)
    low, high = np.full(below, -1.0), np.ceil(m / 2)  # significant; not significant

    def narrowed(at: Floats) -> None:
        inside = (at > low) & (at < high)
        significant = mcnemar(m[inside] - at[inside], at[inside]) <= alpha
        low[inside] = np.where(significant, at[inside], low[inside])
        high[inside] = np.where(significant, high[inside], at[inside])

    # Mid-p is nearly normal; with its fourth cumulant this is mostly the answer, else next to it.
    z = ndtri(alpha / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        guess = np.floor(m / 2 + (z - (z**3 - 3 * z) / (12 * m)) * np.sqrt(m) / 2)
    for step in (0, 1, -1, 2, -2):
        narrowed(guess + step)
    while np.any(high - low > 1):
        narrowed(np.floor((low + high) / 2))
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
