"""SVCCA and CKA as their definitions say, written out with numpy: slow, plain, and apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def reduced(x: Matrix, *, reduce: str | int, threshold: float, centred: bool, keep: str) -> Matrix:
    """The data in their main directions, by a singular value decomposition."""
    used = x - x.mean(0) if centred else x
    _, sizes, right = np.linalg.svd(used, full_matrices=False)
    if isinstance(reduce, int):
        number = reduce
    else:
        sizes = sizes if reduce == "singular-values" else sizes**2
        number = int((np.cumsum(sizes) / sizes.sum() < threshold).sum()) + (keep == "reach")
    result: Matrix = used @ right[:number].T
    return result


def correlations(x: Matrix, y: Matrix) -> Matrix:
    """Canonical correlations of two matrices."""
    left, _, _ = np.linalg.svd(x - x.mean(0), full_matrices=False)
    right, _, _ = np.linalg.svd(y - y.mean(0), full_matrices=False)
    values: Matrix = np.linalg.svd(left.T @ right, compute_uv=False)
    return values


def plain_svcca(
    x: Matrix,
    y: Matrix,
    *,
    reduce: str | int = "singular-values",
    threshold: float = 0.99,
    centred: bool = False,
    keep: str = "below",
    summary: str = "mean",
    share: float = 0.98,
) -> float:
    options: dict[str, Any] = {
        "reduce": reduce, "threshold": threshold, "centred": centred, "keep": keep,
    }  # fmt: skip
    first, second = reduced(x, **options), reduced(y, **options)
    rho = correlations(first, second)
    if summary == "mean":
        return float(1 - rho.sum() / min(first.shape[1], second.shape[1]))
    # google/svcca, sum_threshold: the first i with sum(rho[:i]) / sum(rho) >= share
    number = next((i for i in range(len(rho)) if rho[:i].sum() / rho.sum() >= share), len(rho))
    return float(1 - rho[:number].mean())


def plain_cka(x: Matrix, y: Matrix) -> float:
    x, y = x - x.mean(0), y - y.mean(0)
    cross = np.linalg.norm(y.T @ x) ** 2
    return float(1 - cross / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)))


def plain_hsic(x: Matrix, y: Matrix) -> float:
    """HSIC₁, with traces and vectors of ones as in equation 5 of Song et al. (2012)."""
    n = len(x)
    k, m = x @ x.T, y @ y.T
    np.fill_diagonal(k, 0)
    np.fill_diagonal(m, 0)
    one = np.ones(n)
    total = np.trace(k @ m) + (one @ k @ one) * (one @ m @ one) / ((n - 1) * (n - 2))
    total -= 2 / (n - 2) * (one @ k @ m @ one)
    return float(total / (n * (n - 3)))


def related(
    n: int, p: int, q: int, *, seed: int, mean: float = 1.0, decay: float = 1.0
) -> tuple[Matrix, Matrix]:
    """Two sets of features that share some of their directions, of falling sizes."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(n, min(p, q)))
    sides = []
    for width in (p, q):
        mixed = shared @ rng.normal(size=(min(p, q), width)) + rng.normal(size=(n, width)) * 2
        spectrum = np.arange(1.0, width + 1) ** -decay
        rotation = np.linalg.qr(rng.normal(size=(width, width)))[0]
        sides.append((mixed * spectrum) @ rotation + mean * rng.normal(size=width))
    return sides[0], sides[1]
