"""A dense and a compressed model on made-up people, with scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairweight.auditing.prediction_matrix import Answers, from_arrays


def pair(
    n: int = 400,
    seed: int = 0,
    *,
    first: int = 0,
    task: str | None = None,
    lean: float = 0.6,
    clusters: bool = False,
) -> Answers:
    """Two sexes, of whom more men are positive; the compressed model is noisier and leans to them.

    Parameters
    ----------
    first
        The first identity; other rows have others.
    lean
        How much the compressed model's logits are raised for men.
    """
    rng = np.random.default_rng(seed)
    man = rng.random(n) < 0.4
    label = (rng.random(n) < 0.25 + 0.25 * man).astype(int)
    dense = 1.6 * label - 0.8 + rng.normal(size=n) * 0.6 + 0.2 * man
    small = dense + rng.normal(size=n) * 0.7 + lean * man - 0.5
    made = from_arrays(
        label,
        {"dense": (dense > 0).astype(int), "small": (small > 0).astype(int)},
        groups={"sex": np.where(man, "m", "f")},
        score={name: 1 / (1 + np.exp(-2 * z)) for name, z in (("dense", dense), ("small", small))},
        ids=list(range(first, first + n)),
        cluster=[f"c{first + i // 4}" for i in range(n)] if clusters else None,
    )
    return replace(made, task=task)
