"""Methods of pruning: how important entries are, which of them go, and one table of methods."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.compression.registry import Masks, method
from fairweight.lab.compression.schedules import Step
from fairweight.lab.masks import Layer, chosen, mask_of, weight_name, without
from fairweight.specs.compression import (
    Control,
    GlobalMagnitude,
    L1Structured,
    L1Unstructured,
    L2Structured,
    LinfStructured,
    NOfM,
    RandomStructured,
    RandomUnstructured,
    Structured,
    ToSparsity,
)
from fairweight.specs.toml import summary_of

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
    kept = {  # slices that have anything left
        name: kept_weights(layer).transpose(0, dim).flatten(1).any(dim=1)
        for name, layer in found.items()
    }
    selected = per_layer(scores, kept, step)
    spread: dict[str, Tensor] = {}
    for name, layer in found.items():  # a flag per slice as a mask of the whole weight
        shape = [1] * layer.weight.dim()
        shape[dim] = -1
        spread[name] = selected[name].view(shape).expand(layer.weight.shape).contiguous()
    return spread


# Methods that differ in a score: of single weights or of slices, by size or at random.


class Scored(NamedTuple):
    """A method that removes what scores least; its spec says whether weights or slices."""

    name: str
    spec: type[ToSparsity]
    score: Callable[[Tensor, str, Any], Tensor]  # of a weight, its name and the spec
    source: str
    select: Select = per_layer

    def masks(self, model: nn.Module, spec: Any, step: Step | None) -> Masks:
        score: Score = lambda weight, name: self.score(weight, name, spec)  # noqa: E731
        due = step or Step(spec.sparsity)
        if isinstance(spec, Structured):
            return prune_slices(model, spec.layers, due, score, dim=spec.dim)
        return prune_weights(model, spec.layers, due, score, self.select)


def _size(weight: Tensor, name: str, spec: Any) -> Tensor:
    return magnitudes(weight, name)


def _norm(order: float) -> Callable[[Tensor, str, Any], Tensor]:
    return lambda weight, name, spec: slice_norms(weight, name, dim=spec.dim, order=order)


def _random(weight: Tensor, name: str, spec: Any) -> Tensor:
    n = weight.shape[spec.dim] if isinstance(spec, Structured) else weight.numel()
    return random_scores(n, name, seed=spec.seed).to(weight.device)


_HK, _IO, _PA, _SS = "Hooker et al.", "Iofinova et al.", "Paganini", "Simon Says"
_SG = "the resource-efficient study"
for _entry in (
    Scored("global-magnitude", GlobalMagnitude, _size, f"{_IO}; {_PA}", over_all),
    Scored("l1-structured", L1Structured, _norm(1), f"{_SS}; {_PA}"),
    Scored("l1-unstructured", L1Unstructured, _size, f"{_HK}; {_PA}; {_SG}"),
    Scored("l2-structured", L2Structured, _norm(2), f"{_PA}; {_SG}"),
    Scored("linf-structured", LinfStructured, _norm(INFINITY), _PA),
    Scored("random-structured", RandomStructured, _random, _PA),
    Scored("random-unstructured", RandomUnstructured, _random, _PA),
):
    _summary = summary_of(_entry.spec).rstrip(".")
    method(_entry.name, spec=_entry.spec, summary=_summary, source=_entry.source)(_entry.masks)


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


# Nothing: a model that is trained further beside those that are compressed.


@method(
    "control",
    spec=Control,
    summary="Nothing is removed: as many more epochs as the models beside it",
    source="whoever finetunes; here beside every finetuned variant",
    trains="must",
)
def control(model: nn.Module, spec: Control, step: Step | None) -> Masks:
    return {}
