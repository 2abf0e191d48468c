"""Tests of single coefficients with few clusters: the wild cluster bootstrap, null imposed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Signs alone make 2^G different draws; below this many clusters they are too few.
FEWEST_FOR_SIGNS = 12
_WEBB = np.sqrt(np.array([1.5, 1.0, 0.5]))
_TIES = 1e-9


@dataclass(frozen=True)
class WildP:
    """p-values of every coefficient being 0; NaN where no cluster varies."""

    two_sided: Floats
    greater: Floats  # against a coefficient above 0
    less: Floats


def wild_cluster_p(
    matrix: Floats,
    coefficient: Floats,
    residual: Floats,
    inverse: Floats,
    cluster: NDArray[np.intp],
    *,
    n_boot: int,
    rng: np.random.Generator,
) -> WildP:
    """p of each coefficient of a least-squares fit, by drawing signs of whole clusters.

    Parameters
    ----------
    matrix, coefficient, residual, inverse
        Of the fit: X, b, y − Xb and (X'X)⁻¹.
    cluster
        Codes 0 to G − 1, one per row.

    Notes
    -----
    Cameron, Gelbach and Miller 2008: residuals of the fit without the term, multiplied cluster by
    cluster with a random sign (below 12 clusters one of Webb's six values), are added to that
    fit; t of the term, with clustered errors, is compared with its draws.

    A draw needs no pass over the rows. All that enters are S_g = X_g'X_g and X_g'û_g of each
    cluster: leaving term j out adds (b_j / Q_jj) Q_j to the fit's residuals in the space of X, for
    Q = (X'X)⁻¹, so a million rows cost as much as a thousand.
    """
    groups = int(cluster.max()) + 1
    squares = np.empty((groups, matrix.shape[1], matrix.shape[1]))
    scores = np.empty((groups, matrix.shape[1]))
    for g in range(groups):
        rows = np.flatnonzero(cluster == g)
        own = matrix[rows]
        squares[g], scores[g] = own.T @ own, own.T @ residual[rows]
    weights = _weights(groups, n_boot, rng)
    found = np.full((3, len(coefficient)), np.nan)
    for j, value in enumerate(coefficient):
        found[:, j] = _p_of_one(j, float(value), squares, scores, inverse, weights)
    return WildP(*found)


def _p_of_one(
    j: int, value: float, squares: Floats, scores: Floats, inverse: Floats, weights: Floats
) -> tuple[float, float, float]:
    toward = squares @ inverse[:, j]  # (G, k): X_g'a_g, where a = X Q_j and b_j = a'y
    own = scores @ inverse[:, j]  # (G,): a_g'û_g
    spread = float(np.sqrt(own @ own))
    if spread <= _TIES * max(abs(value), np.finfo(float).tiny):
        return np.nan, np.nan, np.nan
    observed = value / spread
    restricted = scores + value / inverse[j, j] * toward  # X_g'ũ_g
    pushes = restricted @ inverse[:, j]  # (G,): what each cluster moves b_j by
    refit = toward @ (restricted @ inverse).T  # (G, G): what the fit takes back of it
    moved = weights @ pushes
    left = weights * pushes - weights @ refit.T
    deviation = np.sqrt(np.einsum("bg,bg->b", left, left))
    drawn = np.divide(moved, deviation, out=np.zeros_like(moved), where=deviation > 0)
    slack = _TIES * max(1.0, abs(observed))
    return (
        _share(np.abs(drawn) >= abs(observed) - slack),
        _share(drawn >= observed - slack),
        _share(drawn <= observed + slack),
    )


def _share(as_far: NDArray[np.bool_]) -> float:
    """The observed value counts as one of the draws, so that p is never 0."""
    return float((1 + as_far.sum()) / (1 + len(as_far)))


def _weights(groups: int, n_boot: int, rng: np.random.Generator) -> Floats:
    values = np.ones(1) if groups >= FEWEST_FOR_SIGNS else _WEBB
    drawn: Floats = rng.choice(np.concatenate((-values, values)), size=(n_boot, groups))
    return drawn
