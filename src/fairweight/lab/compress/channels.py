"""Which layers share a channel: torch-pruning's dependency graph in our own words.

A channel is made by filters (several, where branches are summed), scaled by norms, and read by
the layers that follow. It can be removed as a whole only.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from fairweight.errors import InputError
from fairweight.lab.compress.layers import Layer
from fairweight.lab.compress.scores import slice_norms

# These look at several channels at once, so that a channel less changes all others.
MIXING = (nn.GroupNorm, nn.LayerNorm)
# torch-pruning can follow these in circles, without end and with all memory.
ENDLESS = (nn.LocalResponseNorm,)


@dataclass(frozen=True)
class Part:
    """Slices of one module that belong to channels: slice `index[i]` is of channel `of[i]`."""

    path: str
    module: Any
    index: Tensor
    of: Tensor

    def slices_of(self, channels: Tensor) -> Tensor:
        """The slices that belong to these channels."""
        return self.index[torch.isin(self.of, channels)]


@dataclass(frozen=True)
class Channels:
    """Channels that only exist together in all these modules."""

    n: int
    makers: list[Part] = field(default_factory=list)  # convolutions, linear layers: outputs
    readers: list[Part] = field(default_factory=list)  # convolutions, linear layers: inputs
    norms: list[Part] = field(default_factory=list)
    obstacles: list[str] = field(default_factory=list)  # why none of them can be removed

    @property
    def name(self) -> str:
        return " and ".join(f"'{part.path}'" for part in self.makers)


class ChannelGraph:
    """The channels of a model, found by running it once on an example."""

    def __init__(self, model: nn.Module, example: Tensor) -> None:
        self._graph = _traced(model, example)
        self._paths = {module: path for path, module in model.named_modules()}
        self._roots: list[Any] = []
        self.all: list[Channels] = []
        for group in self._graph.get_all_groups():
            self._roots.append(group)
            self.all.append(self._channels(group))

    def remove(self, place: int, channels: Tensor) -> None:
        """Remove channels of the how-many-th entry of `all` from the model, in place."""
        self._roots[place].prune(idxs=channels.tolist())

    def _channels(self, group: Any) -> Channels:
        found = Channels(n=len(group[0].idxs))
        for item in group.items:
            module = item.dep.target.module
            if module not in self._paths:
                found.obstacles.extend(_obstacle_of_operation(module))
                continue
            part = Part(
                self._paths[module],
                module,
                torch.tensor(item.idxs),
                torch.tensor([-1 if root is None else root for root in item.root_idxs]),
            )
            if isinstance(module, Layer):
                made = self._graph.is_out_channel_pruning_fn(item.dep.handler)
                (found.makers if made else found.readers).append(part)
                found.obstacles.extend(_obstacle_of_layer(part))
            elif isinstance(module, _NormBase):
                found.norms.append(part)
            elif isinstance(module, MIXING):
                found.obstacles.append(f"'{part.path}' ({_kind(module)}) mixes channels")
        if not found.readers:
            found.obstacles.append("they are the model's outputs")
        return found


def norms_of(parts: Iterable[Part], n: int, *, dim: int, order: float) -> Tensor:
    """The norm of all slices of each channel together; torch-pruning has none of order infinity.

    The norms of a channel's slices combine to the norm of everything that they hold: sums of
    L1 norms, Euclidean sums of L2 norms, and the largest of the L∞ norms.
    """
    total = torch.zeros(n)
    for part in parts:
        norms = slice_norms(part.module.weight, part.path, dim=dim, order=order)[part.index].cpu()
        if order == 1:
            total.scatter_add_(0, part.of, norms)
        elif order == 2:
            total.scatter_add_(0, part.of, norms.square())
        else:
            total.scatter_reduce_(0, part.of, norms, "amax")
    return total.sqrt() if order == 2 else total


def all_zero(parts: list[Part], n: int, *, dim: int) -> Tensor:
    """Which channels have only zeros in these slices (False without slices)."""
    if not parts:
        return torch.zeros(n, dtype=torch.bool)
    return norms_of(parts, n, dim=dim, order=torch.inf) == 0


def _traced(model: nn.Module, example: Tensor) -> Any:
    import torch_pruning  # type: ignore[import-untyped]

    for path, module in model.named_modules():
        if isinstance(module, ENDLESS):
            raise InputError(
                f"The model's channels cannot be removed: '{path}' ({_kind(module)}) mixes them; "
                "keep the masks."
            )
    frozen = [p for p in model.parameters() if not p.requires_grad]
    for parameter in frozen:
        parameter.requires_grad_(True)  # the graph is read from the gradients' functions
    try:
        with torch.enable_grad(), warnings.catch_warnings():
            # What it warns of (parameters outside of layers) is found by comparing outputs.
            warnings.simplefilter("ignore")
            return torch_pruning.DependencyGraph().build_dependency(model, example)
    except Exception as error:
        raise InputError(
            f"The model's channels cannot be followed on an example of shape "
            f"{tuple(example.shape)} ({type(error).__name__}: {error}); give an example that the "
            "model accepts, or keep the masks."
        ) from error
    finally:
        for parameter in frozen:
            parameter.requires_grad_(False)


def _obstacle_of_operation(module: Any) -> Iterator[str]:
    if isinstance(module, nn.Parameter):
        yield "a parameter outside of any layer depends on them"
    elif type(module).__name__ == "_OutputOp":
        yield "they are the model's outputs"


def _obstacle_of_layer(part: Part) -> Iterator[str]:
    groups = getattr(part.module, "groups", 1)
    if groups > 1 and groups != part.module.out_channels:
        yield f"'{part.path}' is a convolution in {groups} groups"


def _kind(module: nn.Module) -> str:
    return type(module).__name__
