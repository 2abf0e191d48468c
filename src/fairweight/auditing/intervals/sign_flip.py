"""The paired test for units of several examples: flip the sign of each unit's difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.intervals.mcnemar import mcnemar

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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
    from scipy.sparse import csc_matrix

    matrix = csc_matrix(differences, dtype=np.float64)
    matrix.eliminate_zeros()
    n_columns = matrix.shape[1]
    column = np.repeat(np.arange(n_columns), np.diff(matrix.indptr))
    size = np.abs(matrix.data)
    undefined = np.bincount(column[np.isnan(size)], minlength=n_columns) > 0
    broken = np.bincount(column[size != np.round(size)], minlength=n_columns) > 0
    total = np.bincount(column, weights=size, minlength=n_columns)
    large = total * _distinct(column, size, n_columns) / 2 > _MOST_COSINES
    drawn = ~undefined & (broken | large)
    whole = ~undefined & ~drawn & (total > 0)
    p = np.where(undefined, np.nan, 1.0)
    if whole.any():
        p[whole] = _exact(matrix[:, np.flatnonzero(whole)])
    if drawn.any():
        rng = np.random.default_rng() if rng is None else rng
        p[drawn] = _monte_carlo(matrix[:, np.flatnonzero(drawn)], n_draws, rng)
    return p


def _distinct(column: NDArray[np.intp], size: Floats, n_columns: int) -> NDArray[np.intp]:
    """Different sizes in each column."""
    order = np.lexsort((size, column))
    column, size = column[order], size[order]
    new = np.ones(size.size, dtype=np.bool_)
    new[1:] = (column[1:] != column[:-1]) | (size[1:] != size[:-1])
    return np.bincount(column[new], minlength=n_columns)


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
    from scipy.fft import irfft

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


def _monte_carlo(matrix: Any, n_draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    used = np.unique(matrix.indices)
    rows = matrix.tocsr()[used].T.tocsr()  # columns × units
    observed = np.abs(np.asarray(rows.sum(axis=1)).ravel())
    slack = 1e-9 * np.asarray(abs(rows).sum(axis=1)).ravel()
    extreme = np.zeros(observed.size)
    chunk = max(1, _CHUNK // max(used.size, 1))
    for start in range(0, n_draws, chunk):
        draws = min(chunk, n_draws - start)
        signs = rng.integers(0, 2, size=(used.size, draws), dtype=np.int8) * 2.0 - 1.0
        extreme += np.count_nonzero(np.abs(rows @ signs) >= (observed - slack)[:, None], axis=1)
    result: NDArray[np.float64] = (1 + extreme) / (1 + n_draws)
    return result
