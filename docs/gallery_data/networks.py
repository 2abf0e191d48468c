"""Populations of small networks of digits: dense ones, and pruned copies of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.base.types import Floats
from fairweight.studies.demo import Network, fit, prune

MEMBERS = 5
# Small and not trained to the end, so that every class has errors that can change.
HIDDEN, EPOCHS = 48, 7
GLOBAL, RANDOM = "global-magnitude", "random-unstructured"
SPARSITIES = {GLOBAL: (0.4, 0.6, 0.75), RANDOM: (0.05, 0.1)}
FEW = {GLOBAL: (0.6, 0.75)}
NAMES = {GLOBAL: "pruned", RANDOM: "random"}


@dataclass(frozen=True)
class Model:
    """A member of a population, and the dense one that it comes from."""

    variant: str
    seed: int
    method: str | None
    sparsity: float
    network: Network
    dense: Network

    def row(self, pixels: Floats, other: Network) -> dict[str, object]:
        """Its row of the variants table; a dense model is compared with another dense one."""
        is_dense = self.network is self.dense
        size = sum(part.nbytes for part in self.network.parameters)
        operations = 2 * sum(weight.size for weight in self.dense.weights)
        parent = None if is_dense else "dense"
        return {
            "variant": self.variant, "seed": self.seed, "parent": parent,
            "dataset": "digits", "model": "mlp", "method": self.method,
            "treatment": None if is_dense else "none", "sparsity": self.sparsity,
            "size_bytes": round(size * (1 - self.sparsity)), "flops_dense": operations,
            "flops_sparse": round(operations * (1 - self.sparsity)),
            "latency_ms": 1.0 - 0.7 * self.sparsity, "batch_size": 1,
            **distances(self.network, other if is_dense else self.dense, pixels),
        }  # fmt: skip


def population(
    pixels: Floats,
    labels: NDArray[np.int64],
    *,
    members: int = MEMBERS,
    sparsities: Mapping[str, tuple[float, ...]] = SPARSITIES,
) -> Iterator[Model]:
    """Dense members of several seeds, and their copies."""
    for seed in range(members):
        dense = fit(pixels, labels, seed=seed, hidden=HIDDEN, epochs=EPOCHS)
        yield Model("dense", seed, None, 0.0, dense, dense)
        for method, levels in sparsities.items():
            for sparsity in levels:
                copy = (
                    prune(dense, sparsity) if method == GLOBAL else thinned(dense, sparsity, seed)
                )
                name = f"{NAMES[method]}-{100 * sparsity:g}"
                yield Model(name, seed, method, sparsity, copy, dense)


def thinned(network: Network, share: float, seed: int) -> Network:
    """A copy that lost a share of its weights at random."""
    rng = np.random.default_rng(seed)
    kept = tuple(w * (rng.random(w.shape) >= share) for w in network.weights)
    return Network(kept, network.biases)


def distances(network: Network, other: Network, pixels: Floats) -> dict[str, float]:
    """1 − linear CKA of what two networks make of the same images, by block."""
    hidden = (own.layer_inputs(pixels)[1] for own in (network, other))
    return {
        "cka.hidden": _distance(*hidden),
        "cka.logits": _distance(network.logits(pixels), other.logits(pixels)),
    }


def _distance(first: Floats, second: Floats) -> float:
    a, b = (part - part.mean(axis=0) for part in (first, second))
    shared = np.linalg.norm(a.T @ b) ** 2
    return float(1 - shared / (np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b)))
