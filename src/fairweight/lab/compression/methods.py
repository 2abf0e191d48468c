"""The smallest weights of all layers together (GMP's criterion)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.compression.registry import Masks, method
from fairweight.lab.compression.schedules import Step
from fairweight.lab.masks import Layer, chosen, mask_of, weight_name, without
from fairweight.specs.compression import (
    GlobalMagnitude,
    L1Structured,
    L1Unstructured,
    L2Structured,
    LinfStructured,
    NOfM,
    RandomStructured,
    RandomUnstructured,
)

# How important a weight or a slice of weights is: the least important go first.

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


# Which entries go: exactly as many as asked, ties by position, never one that is back.
#
# Scores and masks are flat here: an entry is a weight or a slice. True stays.


def n_removed(n: int, already: int, step: Step) -> int:
    """How many of n entries are gone after a step, of which some are gone already.

    >>> n_removed(10, 0, Step(0.25)), n_removed(10, 4, Step(0.25))
    (2, 4)
    >>> n_removed(10, 4, Step(0.5, "remaining"))
    7
    """
    if step.of == "remaining":
        return already + round(step.amount * (n - already))
    return max(already, round(step.amount * n))


def keep_largest(scores: Tensor, kept: Tensor, n_gone: int) -> Tensor:
    """All but `n_gone` entries: those that are gone, then the smallest; of equals the first.

    >>> scores = torch.tensor([2.0, 1.0, 1.0, 3.0])
    >>> keep_largest(scores, torch.tensor([True, True, True, True]), 1).tolist()
    [True, False, True, True]
    >>> keep_largest(scores, torch.tensor([True, True, True, False]), 2).tolist()
    [True, False, True, False]
    """
    if n_gone <= 0:
        return kept.clone()
    if n_gone >= scores.numel():
        return torch.zeros_like(kept)
    scores = scores.masked_fill(~kept, -math.inf)
    limit = torch.kthvalue(scores, n_gone).values
    gone = scores < limit
    ties = torch.nonzero(scores == limit).flatten()
    gone[ties[: n_gone - int(gone.sum())]] = True
    return ~gone


def per_layer(
    scores: Mapping[str, Tensor], kept: Mapping[str, Tensor], step: Step
) -> dict[str, Tensor]:
    """The same share of each layer."""
    return {
        name: keep_largest(
            score, kept[name], n_removed(score.numel(), int((~kept[name]).sum()), step)
        )
        for name, score in scores.items()
    }


def over_all(
    scores: Mapping[str, Tensor], kept: Mapping[str, Tensor], step: Step
) -> dict[str, Tensor]:
    """A share of all layers' entries together; the order of layers breaks ties between them."""
    sizes = [score.numel() for score in scores.values()]
    together = torch.cat([score.flatten() for score in scores.values()])
    kept_together = torch.cat([kept[name].flatten() for name in scores])
    gone = n_removed(together.numel(), int((~kept_together).sum()), step)
    parts = keep_largest(together, kept_together, gone).split(sizes)  # type: ignore[no-untyped-call]
    return dict(zip(scores, parts, strict=True))


def of_each_group(scores: Tensor, kept: Tensor, n_kept: int) -> Tensor:
    """The `n_kept` largest entries of each row; of equals the last stay, as everywhere here.

    >>> of_each_group(torch.tensor([[1.0, 1.0, 3.0, 2.0]]), torch.ones(1, 4, dtype=torch.bool), 2)
    tensor([[False, False,  True,  True]])
    """
    order = torch.argsort(scores.masked_fill(~kept, -math.inf), dim=1, stable=True)
    gone = order[:, : scores.shape[1] - n_kept]
    return kept.scatter(1, gone, torch.zeros_like(gone, dtype=torch.bool))


# From layers to flat entries and back: single weights, or whole slices along an axis.

Score = Callable[[Tensor, str], Tensor]  # of a weight and its name
Select = Callable[[Mapping[str, Tensor], Mapping[str, Tensor], Step], dict[str, Tensor]]


def kept_weights(layer: Layer) -> Tensor:
    """Which weights of a layer are left."""
    mask = mask_of(layer, "weight")
    if mask is None:
        return torch.ones_like(layer.weight, dtype=torch.bool)
    return mask.kept


def kept_slices(kept: Tensor, dim: int) -> Tensor:
    """Which slices have anything left."""
    return kept.transpose(0, dim).flatten(1).any(dim=1)


def prune_weights(
    model: nn.Module,
    layers: Sequence[str],
    step: Step,
    score: Score,
    select: Select = per_layer,
) -> dict[str, Tensor]:
    """Masks of single weights."""
    found = {weight_name(path): layer for path, layer in chosen(model, layers).items()}
    scores = {name: score(layer.weight, name).flatten() for name, layer in found.items()}
    kept = {name: kept_weights(layer).flatten() for name, layer in found.items()}
    selected = select(scores, kept, step)
    return {name: selected[name].view(layer.weight.shape) for name, layer in found.items()}


def prune_slices(
    model: nn.Module, layers: Sequence[str], step: Step, score: Score, *, dim: int
) -> dict[str, Tensor]:
    """Masks of whole slices, the same share of each layer."""
    found = {weight_name(path): layer for path, layer in chosen(model, layers).items()}
    scores = {name: score(layer.weight, name) for name, layer in found.items()}
    kept = {name: kept_slices(kept_weights(layer), dim) for name, layer in found.items()}
    selected = per_layer(scores, kept, step)
    return {name: _spread(selected[name], layer.weight, dim) for name, layer in found.items()}


def _spread(kept: Tensor, weight: Tensor, dim: int) -> Tensor:
    """A flag per slice as a mask of the whole weight."""
    shape = [1] * weight.dim()
    shape[dim] = -1
    return kept.view(shape).expand(weight.shape).contiguous()


@method(
    "global-magnitude",
    spec=GlobalMagnitude,
    summary="The smallest weights of all layers together",
    source="Iofinova et al.; Paganini",
)
def global_magnitude(model: nn.Module, spec: GlobalMagnitude, step: Step | None) -> Masks:
    return prune_weights(
        model, spec.layers, step or Step(spec.sparsity), magnitudes, select=over_all
    )


# The slices of the smallest sum of absolute weights.


@method(
    "l1-structured",
    spec=L1Structured,
    summary="The slices of the smallest sum of absolute weights",
    source="Simon Says; Paganini",
)
def l1_structured(model: nn.Module, spec: L1Structured, step: Step | None) -> Masks:
    score = partial(slice_norms, dim=spec.dim, order=1)
    return prune_slices(model, spec.layers, step or Step(spec.sparsity), score, dim=spec.dim)


# The smallest weights of each layer.


@method(
    "l1-unstructured",
    spec=L1Unstructured,
    summary="The smallest weights of each layer",
    source="Hooker et al.; Paganini; the resource-efficient study",
)
def l1_unstructured(model: nn.Module, spec: L1Unstructured, step: Step | None) -> Masks:
    return prune_weights(model, spec.layers, step or Step(spec.sparsity), magnitudes)


# The slices of the smallest Euclidean norm.


@method(
    "l2-structured",
    spec=L2Structured,
    summary="The slices of the smallest Euclidean norm",
    source="Paganini; the resource-efficient study",
)
def l2_structured(model: nn.Module, spec: L2Structured, step: Step | None) -> Masks:
    score = partial(slice_norms, dim=spec.dim, order=2)
    return prune_slices(model, spec.layers, step or Step(spec.sparsity), score, dim=spec.dim)


# The slices whose largest absolute weight is smallest.


@method(
    "linf-structured",
    spec=LinfStructured,
    summary="The slices whose largest absolute weight is smallest",
    source="Paganini",
)
def linf_structured(model: nn.Module, spec: LinfStructured, step: Step | None) -> Masks:
    score = partial(slice_norms, dim=spec.dim, order=INFINITY)
    return prune_slices(model, spec.layers, step or Step(spec.sparsity), score, dim=spec.dim)


# N:M: of every m neighbouring input channels the n largest weights stay.


@method(
    "n-of-m",
    spec=NOfM,
    summary="The n largest weights of every m neighbouring input channels (2:4, 1:4, 1:8)",
    source="Iofinova et al.",
)
def n_of_m(model: nn.Module, spec: NOfM, step: Step | None) -> Masks:
    """The pattern is whole or, where nothing is due yet, not there."""
    n = spec.m if step is not None and step.amount == 0 else spec.n
    masks: Masks = {}
    for path, layer in chosen(model, spec.layers).items():
        weight = layer.weight
        if weight.shape[1] % spec.m == 0:
            scores = _grouped(magnitudes(weight, path), spec.m)
            kept = of_each_group(scores, _grouped(kept_weights(layer), spec.m), n)
            inputs_last = (weight.shape[0], *weight.shape[2:], weight.shape[1])
            masks[weight_name(path)] = kept.view(inputs_last).movedim(-1, 1).contiguous()
        elif spec.indivisible == "refuse":
            raise InputError(
                f"The layer '{path}' has {weight.shape[1]} input channels (of one group), which "
                f"are no multiple of m = {spec.m}; leave it out with "
                f'{without(spec.layers, [path])}, or all such layers with indivisible = "leave".'
            )
    return masks


def _grouped(weight: Tensor, m: int) -> Tensor:
    """Input channels last, then m at a time: a row per group."""
    return weight.movedim(1, -1).reshape(-1, m)


# Random slices of each layer.


@method(
    "random-structured",
    spec=RandomStructured,
    summary="Random slices of each layer",
    source="Paganini",
)
def random_structured(model: nn.Module, spec: RandomStructured, step: Step | None) -> Masks:
    def score(weight: Tensor, name: str) -> Tensor:
        return random_scores(weight.shape[spec.dim], name, seed=spec.seed).to(weight.device)

    return prune_slices(model, spec.layers, step or Step(spec.sparsity), score, dim=spec.dim)


# Random weights of each layer.


@method(
    "random-unstructured",
    spec=RandomUnstructured,
    summary="Random weights of each layer",
    source="Paganini",
)
def random_unstructured(model: nn.Module, spec: RandomUnstructured, step: Step | None) -> Masks:
    def score(weight: Tensor, name: str) -> Tensor:
        return random_scores(weight.numel(), name, seed=spec.seed).to(weight.device)

    return prune_weights(model, spec.layers, step or Step(spec.sparsity), score)
