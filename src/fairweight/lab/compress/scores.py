"""How important a weight or a slice of weights is: the least important go first."""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor

from fairweight.errors import InputError

INFINITY = math.inf


def magnitudes(weight: Tensor, name: str) -> Tensor:
    """|w| of each weight."""
    return _finite(weight, name).abs()


def slice_norms(weight: Tensor, name: str, *, dim: int, order: float) -> Tensor:
    """The norm of each slice along an axis: order 1, 2 or infinity.

    >>> weight = torch.tensor([[3.0, -4.0], [0.0, 5.5]])
    >>> [slice_norms(weight, "fc", dim=0, order=p).tolist() for p in (1, 2, INFINITY)]
    [[7.0, 5.5], [5.0, 5.5], [4.0, 5.5]]
    """
    others = [axis for axis in range(weight.dim()) if axis != dim]
    norms: Tensor = torch.linalg.vector_norm(_finite(weight, name), ord=order, dim=others)
    return norms


def random_scores(n: int, name: str, *, seed: int) -> Tensor:
    """Random numbers that belong to a parameter's name.

    The same at every update, so that a gradual schedule removes more of the same order; and
    independent of which other layers are pruned.
    """
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return torch.rand(n, generator=generator, dtype=torch.float64)


def _finite(weight: Tensor, name: str) -> Tensor:
    weight = weight.detach()
    if not torch.isfinite(weight).all():
        raise InputError(
            f"The weights of '{name}' are not all finite numbers, so none is the smallest; give a "
            "model whose training did not diverge."
        )
    return weight
