"""Interval of a ratio of totals over sampled units: clusters, weighted rows, people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft
from scipy.sparse import csc_matrix
from scipy.special import ndtr, stdtr, stdtrit

from fairweight.auditing.intervals.proportion import mcnemar, tango, wilson
from fairweight.base.types import Floats

# Residual sums of squares below this share of their terms are rounding errors of a zero.
_ROUNDING = 1e-12


def linearised(
    a: ArrayLike,
    d: ArrayLike,
    aa: ArrayLike,
    ad: ArrayLike,
    dd: ArrayLike,
    units: ArrayLike,
    alpha: ArrayLike = 0.05,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    variance: ArrayLike | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Limits and standard error of R = a / d, totals over independent units.

    Parameters
    ----------
    a, d
        Totals of numerator and denominator over the units.
    aa, ad, dd
        Σ a_u², Σ a_u d_u and Σ d_u² over the units.
    units
        Units with a part in the row: G.
    alpha
        One minus the confidence.
    bounds
        Range of the ratio; (0, 1) for a rate, (−1, 1) for a shift. Limits are cut at it.
    variance
        Of R, where it is not that of these units alone (`crossed_variance`).

    Returns
    -------
    low, high, standard_error

    Notes
    -----
    Units are sampled whole. V = G / (G − 1) · Σ (a_u − R d_u)² / d², t with G − 1 degrees of
    freedom. Where all units have the same ratio V is 0, which says nothing about the next unit:
    then the score interval of G examples is given (Wilson's for a rate, Tango's for a shift, with
    t in place of z), as if every unit were a single example: the widest honest reading. The
    standard error stays 0 there. NaN where d = 0 or G < 2.

    Under 20 units these limits are too narrow: callers report `not_estimable`.
    Measured coverage: docs/interval-coverage.md.

    Examples
    --------
    Three clusters of two examples with 0, 1 and 2 right answers: R = 3/6, residuals −1, 0, 1,
    V = 3/2 · 2/36 = 1/12, t(2) = 4.303, so ±1.24 cut at the bounds.

    >>> low, high, error = linearised(3, 6, 5, 6, 12, 3)
    >>> float(low), float(high), float(error.round(4))
    (0.0, 1.0, 0.2887)
    """
    held = np.nan if variance is None else variance
    a, d, aa, ad, dd, g, level, given = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64) for x in (a, d, aa, ad, dd, units, alpha, held))
    )
    error = np.sqrt(linearised_variance(a, d, aa, ad, dd, g) if variance is None else given)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = a / np.where(d > 0, d, np.nan)
        t = -stdtrit(np.where(g >= 2, g - 1, np.nan), level / 2)
        low, high = ratio - t * error, ratio + t * error
    low, high = (np.array(np.clip(side, *bounds)) for side in (low, high))
    equal = error == 0
    if equal.any():
        low[equal], high[equal] = equal_units_limits(
            ratio[equal], g[equal], 2 * ndtr(-t[equal]), bounds
        )
    undefined = np.isnan(ratio + error + t)
    low, high, error = (np.where(undefined, np.nan, x) for x in (low, high, error))
    return low, high, error


def linearised_variance(
    a: Floats, d: Floats, aa: Floats, ad: Floats, dd: Floats, units: Floats
) -> Floats:
    """V = G / (G − 1) · Σ (a_u − R d_u)² / d² of R = a / d, from the sums of `linearised`.

    Exactly 0 where all units have the same ratio; NaN where d = 0 or G < 2.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        d = np.where(d > 0, d, np.nan)
        g = np.where(units >= 2, units, np.nan)
        ratio = a / d
        residual = aa - 2 * ratio * ad + ratio**2 * dd
        scale = aa + 2 * np.abs(ratio * ad) + ratio**2 * dd
        residual = np.where(residual <= _ROUNDING * scale, 0.0, residual)
        variance: Floats = g / (g - 1) * residual / d**2
    return variance


def crossed_variance(parts: Sequence[Floats]) -> Floats:
    """V_a + V_b − V_ab of examples that two columns bind, not below V_a or V_b.

    Parameters
    ----------
    parts
        Variances over the units of the first column, of the second, and of their pairs; a single
        one is the variance itself.

    References
    ----------
    Cameron, A. C., Gelbach, J. B. & Miller, D. L. (2011), Journal of Business & Economic
    Statistics 29, 238-249.

    Examples
    --------
    >>> one, other, both = np.array([4.0, 1.0]), np.array([2.0, 1.0]), np.array([1.0, 3.0])
    >>> crossed_variance([one, other, both]).tolist()
    [5.0, 1.0]
    """
    if len(parts) == 1:
        return parts[0]
    one, other, both = parts
    return np.maximum(one + other - both, np.maximum(one, other))


def equal_units_limits(
    ratio: Floats, units: Floats, alpha: Floats, bounds: tuple[float, float]
) -> tuple[Floats, Floats]:
    if bounds[0] >= 0:
        return wilson(np.clip(ratio, 0, 1) * units, units, alpha)
    shift = np.clip(ratio, -1, 1)
    return tango(units, np.maximum(-shift, 0) * units, np.maximum(shift, 0) * units, alpha)


# The paired test for units of several examples: flip the sign of each unit's difference.

# Cosines evaluated for one column before the exact distribution gives way to draws.
_MOST_COSINES = 20_000_000
# Numbers held in memory at once.
_CHUNK = 2_000_000


def sign_flip(
    differences: ArrayLike | Any,
    *,
    n_draws: int = 9_999,
    rng: np.random.Generator | None = None,
) -> Floats:
    """Two-sided mid-p value of each column's sum if every unit's sign were a fair coin.

    Parameters
    ----------
    differences
        Units × columns, dense or a scipy sparse matrix: the sum of compressed − baseline over the
        examples (or weights) of a unit. Units are drawn whole because their examples go together.
    n_draws, rng
        Only for columns with differences that are not whole numbers.

    Returns
    -------
    NDArray
        One p-value per column: 1 where every difference is 0, NaN where one is NaN.

    Notes
    -----
    With S the sum under random signs and s the observed one, p = 2 P(S > |s|) + P(S = |s|). Whole
    numbers: exact, from the characteristic function (a product of cosines) by an inverse Fourier
    transform, with an absolute error near 1e-14. If every difference is −1, 0 or 1 this is the
    mid-p McNemar test. Else, and for sums of millions, (1 + draws at least as extreme) /
    (1 + draws).

    Examples
    --------
    Differences −1, −2, −2: of the 8 sums only −5 and 5 are as extreme; half of 2/8.

    >>> sign_flip([[-1], [-2], [-2]]).round(6).tolist()
    [0.125]
    """
    matrix = csc_matrix(differences, dtype=np.float64)
    matrix.eliminate_zeros()
    n_columns = matrix.shape[1]
    column = np.repeat(np.arange(n_columns), np.diff(matrix.indptr))
    size = np.abs(matrix.data)
    undefined = np.bincount(column[np.isnan(size)], minlength=n_columns) > 0
    broken = np.bincount(column[size != np.round(size)], minlength=n_columns) > 0
    total = np.bincount(column, weights=size, minlength=n_columns)
    order = np.lexsort((size, column))
    column, size = column[order], size[order]
    new = np.ones(size.size, dtype=np.bool_)
    new[1:] = (column[1:] != column[:-1]) | (size[1:] != size[:-1])
    large = total * np.bincount(column[new], minlength=n_columns) / 2 > _MOST_COSINES
    drawn = ~undefined & (broken | large)
    whole = ~undefined & ~drawn & (total > 0)
    p = np.where(undefined, np.nan, 1.0)
    if whole.any():
        p[whole] = _exact(matrix[:, np.flatnonzero(whole)])
    if drawn.any():
        rng = np.random.default_rng() if rng is None else rng
        chosen = matrix[:, np.flatnonzero(drawn)]
        used = np.unique(chosen.indices)
        rows = chosen.tocsr()[used].T.tocsr()  # columns × units
        observed = np.abs(np.asarray(rows.sum(axis=1)).ravel())
        slack = 1e-9 * np.asarray(abs(rows).sum(axis=1)).ravel()
        extreme = np.zeros(observed.size)
        chunk = max(1, _CHUNK // max(used.size, 1))
        for start in range(0, n_draws, chunk):
            draws = min(chunk, n_draws - start)
            signs = rng.integers(0, 2, size=(used.size, draws), dtype=np.int8) * 2.0 - 1.0
            extreme += np.count_nonzero(np.abs(rows @ signs) >= (observed - slack)[:, None], axis=1)
        p[drawn] = (1 + extreme) / (1 + n_draws)
    return p


def _exact(matrix: Any) -> Floats:
    n_columns = matrix.shape[1]
    column = np.repeat(np.arange(n_columns), np.diff(matrix.indptr))
    size = np.abs(matrix.data)
    total = np.bincount(column, weights=size)
    observed = np.abs(np.bincount(column, weights=matrix.data))
    units = np.diff(matrix.indptr)
    largest = np.maximum.reduceat(size, matrix.indptr[:-1])
    equal = total == units * largest
    against = (total - observed) / 2
    p = mcnemar(against / largest, (total - against) / largest)  # right where all are equal
    length = 2 ** np.ceil(np.log2(total + 1)).astype(np.int64)
    for transform in np.unique(length[~equal]):
        rows = np.flatnonzero(~equal & (length == transform))
        for part in np.array_split(rows, -(-rows.size * transform // _CHUNK)):
            p[part] = _by_fourier(matrix[:, part], int(transform))
    return np.clip(p, 0.5**units, 1.0)


def _by_fourier(matrix: Any, length: int) -> Floats:
    """The exact p of columns with sums of sizes below `length`."""
    n_columns = matrix.shape[1]
    column = np.repeat(np.arange(n_columns), np.diff(matrix.indptr))
    sizes, code = np.unique(np.abs(matrix.data), return_inverse=True)
    counts = np.zeros((n_columns, sizes.size))
    np.add.at(counts, (column, code), 1.0)
    total = counts @ sizes
    observed = np.abs(np.bincount(column, weights=matrix.data))
    # (S + total) / 2 = Σ size · coin runs over 0 … total; about its centre the transform is the
    # product of cos(size · half_angle) over units: a sum of logarithms and a parity of signs.
    half_angle = np.pi * np.arange(length // 2 + 1) / length
    cosine = np.cos(sizes[:, None] * half_angle)
    log = np.log(np.maximum(np.abs(cosine), 1e-300))
    sign = 1.0 - 2.0 * ((counts @ (cosine < 0)) % 2)
    centred = sign * np.exp(counts @ log)
    probability = irfft(centred * np.exp(-1j * total[:, None] * half_angle), n=length, axis=1)
    beyond = np.arange(length) - ((total + observed) / 2)[:, None]
    p: Floats = np.where(beyond > 0, 2 * probability, np.where(beyond == 0, probability, 0)).sum(1)
    return p


# Two-way t: limits of a mean over members (models) and examples, both sampled.

Term: TypeAlias = tuple[ArrayLike, ArrayLike]  # a part of the variance, its degrees of freedom


ROUNDING = 1e-12  # differences of means of rates below this are rounding errors of 0
NO_VARIANCE = 1e-24


@dataclass(frozen=True)
class TwoWay:
    """An estimate with its variance and the degrees of freedom of that variance: Student's t."""

    estimate: Floats
    variance: Floats
    degrees: Floats

    def limits(self, alpha: ArrayLike) -> tuple[Floats, Floats]:
        """Estimate ± t standard errors; NaN where the variance is unknown."""
        with np.errstate(invalid="ignore"):
            reach = -stdtrit(self.degrees, np.asarray(alpha) / 2) * np.sqrt(self.variance)
        return self.estimate - reach, self.estimate + reach

    @property
    def p_value(self) -> Floats:
        """Two-sided p of an estimate of 0; 1 where nothing differs anywhere."""
        with np.errstate(invalid="ignore", divide="ignore"):
            p: Floats = 2 * stdtr(self.degrees, -np.abs(self.estimate) / np.sqrt(self.variance))
        nothing = (np.abs(self.estimate) <= ROUNDING) & (self.variance <= NO_VARIANCE)
        return np.where(nothing, 1.0, p)


def two_way(
    estimate: ArrayLike,
    members: Sequence[Term],
    examples: Term,
    interactions: Sequence[Term],
) -> TwoWay:
    """Variance of a mean over K members and n examples, from its mean squares.

    Parameters
    ----------
    estimate
        The mean over members and examples (or the difference of two such means).
    members
        s²(member means) / K with K − 1 degrees of freedom; one term for paired members (of their
        differences), one for each side where members are independent.
    examples
        s²(example means) / n with n − 1 degrees of freedom, of the (difference of) means over
        members; with clusters the linearised variance over G clusters and G − 1.
    interactions
        MS_int / (K n) with (K − 1)(n − 1) degrees of freedom, one for every term of `members`.

    Notes
    -----
    Member means vary by σ²_member + σ²_int / n, example means by σ²_example + σ²_int / K; their sum
    counts the interaction twice, so it is taken off once:
    V = s²(member means)/K + s²(example means)/n − MS_int/(K n), and never below either of the first
    two terms. Degrees of freedom after Satterthwaite, V² / Σ (term² / its own), the term that is
    taken off included, and at least 1. (Not below K − 1 was the rule before. Where the terms nearly
    cancel, V is small by chance, and the degrees must be allowed to say so.)
    Members and examples are both resampled in thought: the limits are about another training run on
    other examples. Measured coverage at 3, 5 and 10 members: docs/statistics.md.

    Examples
    --------
    Two members and two examples, values 1 2 / 3 6: member means 1.5, 4.5 (s² = 4.5), example means
    2, 4 (s² = 2), MS_int = 1: V = 4.5/2 + 2/2 − 1/4 = 3.

    >>> found = two_way(3.0, [(4.5 / 2, 1)], (2 / 2, 1), [(1 / 4, 1)])
    >>> float(found.variance)
    3.0
    """
    value = np.asarray(estimate, dtype=np.float64)
    by_member = np.asarray(sum(np.asarray(v, dtype=np.float64) for v, _ in members))
    by_example = np.asarray(examples[0], dtype=np.float64)
    shared = np.asarray(sum(np.asarray(v, dtype=np.float64) for v, _ in interactions))
    # Not below either: a negative estimate of one component must not hide the other.
    variance = np.maximum(by_member + by_example - shared, np.maximum(by_member, by_example))
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.zeros(variance.shape)
        for part, degrees in (*members, examples, *interactions):
            spread = spread + np.asarray(part) ** 2 / np.asarray(degrees)
        fewest = np.minimum.reduce([np.asarray(d, dtype=np.float64) for _, d in members])
        degrees_all = np.where(spread > 0, variance**2 / spread, fewest)
    return TwoWay(value, variance, np.maximum(degrees_all, 1.0))
