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
_MOST_COSINES = 50_000_000
# Signs held in memory at once by the Monte Carlo.
_CHUNK = 4_000_000


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
    p = np.ones(matrix.shape[1])
    drawn: list[int] = []
    for column in range(matrix.shape[1]):
        values = matrix.data[matrix.indptr[column] : matrix.indptr[column + 1]]
        values = values[values != 0]
        if np.isnan(values).any():
            p[column] = np.nan
        elif not np.equal(values, np.round(values)).all() or _cosines(values) > _MOST_COSINES:
            drawn.append(column)
        elif values.size:
            p[column] = _exact(values)
    if drawn:
        rng = np.random.default_rng() if rng is None else rng
        p[drawn] = _monte_carlo(matrix[:, drawn], n_draws, rng)
    return p


def _cosines(values: Floats) -> float:
    sizes = np.abs(values)
    return float(sizes.sum()) * np.unique(sizes).size / 2


def _exact(values: Floats) -> float:
    from scipy.fft import irfft, next_fast_len

    sizes, counts = np.unique(np.abs(values).astype(np.int64), return_counts=True)
    step = np.gcd.reduce(sizes)
    sizes //= step
    total = int(sizes @ counts)
    observed = abs(round(values.sum() / step))
    if sizes.size == 1:
        against = (total - observed) // 2
        return float(mcnemar(against, total - against))
    # (S + total) / 2 = Σ size · coin runs over 0 … total; its transform about the centre is real.
    length = next_fast_len(total + 1, real=True)
    half_angle = np.pi * np.arange(length // 2 + 1) / length
    transform = np.ones(half_angle.size)
    for size, count in zip(sizes, counts, strict=True):
        transform *= np.cos(size * half_angle) ** count
    # exp(−i · half_angle · total) moves the centre back to total / 2.
    probability = irfft(transform * np.exp(-1j * half_angle * total), n=length)[: total + 1]
    at = (total + observed) // 2
    p = 2 * probability[at + 1 :].sum() + probability[at]
    return float(np.clip(p, 0.5 ** float(counts.sum()), 1.0))


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
