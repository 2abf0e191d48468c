"""Channels: which layers share them (torch-pruning's graph), masks of them, their removal.

A channel is made by filters (several, where branches are summed), scaled by norms, and read by
the layers that follow. It can be removed as a whole only.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from fairweight.errors import InputError
from fairweight.lab.compression.methods import (
    INFINITY,
    keep_largest,
    n_removed,
    random_scores,
    slice_norms,
)
from fairweight.lab.compression.schedules import Step
from fairweight.lab.masks import Layer, bake, chosen, masks, set_masks, without
from fairweight.specs.compression import (
    L1Structured,
    L2Structured,
    LinfStructured,
    RandomStructured,
    Structured,
)

# These look at several channels at once, so that a channel less changes all others.
MIXING = (nn.GroupNorm, nn.LayerNorm)
# torch-pruning can follow these in circles, without end and with all memory.
ENDLESS = (nn.LocalResponseNorm,)


@dataclass(frozen=True)
class LayerSlices:
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
    makers: list[LayerSlices] = field(default_factory=list)  # convolutions, linear layers: outputs
    readers: list[LayerSlices] = field(default_factory=list)  # convolutions, linear layers: inputs
    norms: list[LayerSlices] = field(default_factory=list)
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
                if isinstance(module, nn.Parameter):
                    found.obstacles.append("a parameter outside of any layer depends on them")
                elif type(module).__name__ == "_OutputOp":
                    found.obstacles.append("they are the model's outputs")
                continue
            part = LayerSlices(
                self._paths[module],
                module,
                torch.tensor(item.idxs),
                torch.tensor([-1 if root is None else root for root in item.root_idxs]),
            )
            if isinstance(module, Layer):
                made = self._graph.is_out_channel_pruning_fn(item.dep.handler)
                (found.makers if made else found.readers).append(part)
                groups = getattr(module, "groups", 1)
                if groups > 1 and groups != module.out_channels:
                    found.obstacles.append(f"'{part.path}' is a convolution in {groups} groups")
            elif isinstance(module, _NormBase):
                found.norms.append(part)
            elif isinstance(module, MIXING):
                found.obstacles.append(f"'{part.path}' ({type(module).__name__}) mixes channels")
        if not found.readers:
            found.obstacles.append("they are the model's outputs")
        return found


def norms_of(parts: Iterable[LayerSlices], n: int, *, dim: int, order: float) -> Tensor:
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


def all_zero(parts: list[LayerSlices], n: int, *, dim: int) -> Tensor:
    """Which channels have only zeros in these slices (False without slices)."""
    if not parts:
        return torch.zeros(n, dtype=torch.bool)
    return norms_of(parts, n, dim=dim, order=torch.inf) == 0


def _traced(model: nn.Module, example: Tensor) -> Any:
    import torch_pruning  # type: ignore[import-untyped]

    for path, module in model.named_modules():
        if isinstance(module, ENDLESS):
            raise InputError(
                f"The model's channels cannot be removed: '{path}' ({type(module).__name__}) mixes "
                "them; keep the masks."
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


# Masks of whole channels: filters, their biases and norms, alike in all layers that share them.
#
# Masking filters layer by layer leaves constants (biases, shifts of norms), and layers whose
# outputs are summed lose different filters; such channels cannot be removed. These can.

ORDERS: dict[type[Structured], float] = {
    L1Structured: 1,
    L2Structured: 2,
    LinfStructured: INFINITY,
}


def channel_masks(
    model: nn.Module, spec: Structured, example: Tensor, step: Step | None = None
) -> dict[str, Tensor]:
    """Masks under which chosen channels are silent: what makes them is 0 (dim 0), or what reads
    them is (dim 1).

    The importance of a channel is the norm of all its slices in the layers that share it; in a
    plain chain of layers that chooses what `prune` chooses.
    """
    if not isinstance(spec, Structured):
        raise InputError(
            f"Channels cannot be removed by {type(spec).__name__}, which removes single weights; "
            "use l1-structured, l2-structured, linf-structured or random-structured."
        )
    twin = bake(copy.deepcopy(model)).eval()
    step = step or Step(spec.sparsity)
    masks: dict[str, Tensor] = {}
    for channels in _eligible(twin, spec, example):
        parts = channels.makers if spec.dim == 0 else channels.readers
        kept = ~all_zero(parts, channels.n, dim=spec.dim)
        gone = n_removed(channels.n, int((~kept).sum()), step)
        if isinstance(spec, RandomStructured):
            name = f"{channels.makers[0].path}.weight"
            importance = random_scores(channels.n, name, seed=spec.seed)
        else:
            importance = norms_of(parts, channels.n, dim=spec.dim, order=ORDERS[type(spec)])
        selected = keep_largest(importance, kept, gone)
        silent = torch.nonzero(~selected).flatten()
        for part in parts:
            _cut(masks, f"{part.path}.weight", part.module.weight, part.slices_of(silent), spec.dim)
        if spec.dim == 0:
            for part in (*channels.makers, *channels.norms):
                for name in ("weight", "bias"):
                    if (value := getattr(part.module, name, None)) is not None:
                        _cut(masks, f"{part.path}.{name}", value, part.slices_of(silent), 0)
    return masks


def _eligible(model: nn.Module, spec: Structured, example: Tensor) -> list[Channels]:
    """The channels that the chosen layers make (dim 0) or read (dim 1)."""
    wanted = set(chosen(model, spec.layers))
    eligible, reached = [], set[str]()
    for channels in ChannelGraph(model, example).all:
        paths = {part.path for part in (channels.makers if spec.dim == 0 else channels.readers)}
        if not paths & wanted:
            continue
        if channels.obstacles:
            raise InputError(
                f"The channels of {channels.name} cannot be removed: {channels.obstacles[0]}; "
                f"leave them out with {without(spec.layers, paths & wanted)}."
            )
        if paths - wanted:
            raise InputError(
                f"The layers {_listed(paths)} share their channels, but layers = "
                f"{list(spec.layers)} chooses only some of them; choose all of them or none."
            )
        eligible.append(channels)
        reached |= paths
    if missing := sorted(wanted - reached):
        side = "make channels that other layers read" if spec.dim == 0 else "read channels"
        raise InputError(
            f"The layers {_listed(missing)} do not {side} (dim = {spec.dim}); leave "
            f"them out with {without(spec.layers, missing)}."
        )
    return eligible


def _cut(masks: dict[str, Tensor], name: str, value: Tensor, index: Tensor, dim: int) -> None:
    mask = masks.setdefault(name, torch.ones_like(value, dtype=torch.bool, requires_grad=False))
    mask.index_fill_(dim, index.to(mask.device), False)


def _listed(paths: set[str] | list[str]) -> str:
    return ", ".join(f"'{path}'" for path in sorted(paths))


# Whether a smaller network answers as the masked one does, and if not, from where on.


def inputs_of(model: nn.Module, paths: Iterable[str], batch: Tensor) -> dict[str, Tensor]:
    """What these modules see of a batch, in the order in which they see it."""
    seen: dict[str, Tensor] = {}

    def note(path: str, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        seen[path] = inputs[0].detach()

    handles = [
        model.get_submodule(path).register_forward_pre_hook(partial(note, path)) for path in paths
    ]
    try:
        with torch.no_grad():
            model(batch)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def channel_axis(layer: nn.Module, seen: Tensor) -> int:
    """The axis of a layer's input that its weights' input channels go along."""
    return seen.dim() - 1 if isinstance(layer, nn.Linear) else 1


def require_same_answers(
    masked: nn.Module, small: nn.Module, example: Tensor, removed: Mapping[str, Tensor]
) -> None:
    """The last word: channels may meet in ways that no graph shows.

    Parameters
    ----------
    removed
        Which input channels each reading layer lost.
    """
    random = torch.randn(example.shape, generator=torch.Generator().manual_seed(0))
    for batch in (example, random.to(example)):
        try:
            with torch.no_grad():
                pairs = zip(_tensors(masked(batch)), _tensors(small(batch)), strict=True)
                same = all(_close(one, other) for one, other in pairs)
        except RuntimeError as error:
            raise InputError(
                f"The smaller network does not run ({error}), because the model uses channels "
                "outside of its layers; keep the masks."
            ) from error
        if same:
            continue
        reason = "its outputs depend on channels that no layer reads"
        ours = inputs_of(small, removed, batch)
        for path, seen in inputs_of(masked, removed, batch).items():
            axis = channel_axis(masked.get_submodule(path), seen)
            left = torch.ones(seen.shape[axis], dtype=torch.bool)
            left[removed[path]] = False
            if not _close(seen.index_select(axis, torch.nonzero(left).flatten()), ours[path]):
                reason = f"what '{path}' reads of the other channels depends on those removed"
                break
        raise InputError(
            f"The smaller network would not answer as the masked one does: {reason}; leave the "
            "layers before that out, or keep the masks."
        )


def _close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    scale = float(one.abs().max()) if one.numel() else 0.0
    return torch.allclose(one, other, rtol=0, atol=1e-4 * scale + 1e-6)


def _tensors(output: object) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, dict):
        for value in output.values():
            yield from _tensors(value)
    elif isinstance(output, tuple | list):
        for value in output:
            yield from _tensors(value)


# Channels really removed: a smaller network that answers as the masked one does.


@dataclass(frozen=True)
class Constant:
    """What silent channels still send to a layer that reads them, whatever the image is."""

    part: LayerSlices
    index: Tensor  # the slices of silent channels
    values: Tensor  # one per slice


def remove_channels(
    model: nn.Module, spec: Structured | None, example: Tensor, *, partial: bool = False
) -> nn.Module:
    """A smaller copy of a model.

    Parameters
    ----------
    model
        A masked model loses the channels that its masks silence, and `spec` is not looked at;
        any other is masked by `channel_masks` first.
    example
        A batch of inputs, for following the channels and for comparing outputs.
    partial
        Leave masked filters that cannot be removed as zeros, instead of refusing.

    Raises
    ------
    InputError
        The smaller network would answer otherwise; the sentence says where.
    """
    masked = copy.deepcopy(model).eval()
    if not masks(masked):
        if spec is None:
            raise InputError(
                "The model has no masks, so spec= must say which channels to remove; give a "
                "structured method such as L1Structured(sparsity=0.5)."
            )
        set_masks(masked, channel_masks(masked, spec, example))
    bake(masked)
    small = copy.deepcopy(masked)
    graph = ChannelGraph(small, example)
    silent = [_silent(channels, lenient=partial) for channels in graph.all]
    readers = {part.path for channels in graph.all for part in channels.readers}
    inputs = inputs_of(masked, readers, example)
    for place, channels in enumerate(graph.all):
        silent[place], constants = _constants(channels, silent[place], inputs, lenient=partial)
        for constant in constants:
            layer = constant.part.module
            if not constant.values.any():
                continue
            with torch.no_grad():
                slices = layer.weight.index_select(1, constant.index.to(layer.weight.device))
                added = slices.flatten(2).sum(2) if slices.dim() > 2 else slices
                sums = added @ constant.values
                if layer.bias is None:
                    layer.bias = nn.Parameter(sums)
                else:
                    layer.bias += sums
    # Which input channels each reading layer loses; several groups of channels may meet there.
    removed: dict[str, Tensor] = {}
    for channels, gone in zip(graph.all, silent, strict=True):
        for part in channels.readers:
            before = removed.get(part.path, torch.empty(0, dtype=torch.long))
            removed[part.path] = torch.cat([before, part.slices_of(gone)])
    for place, gone in enumerate(silent):
        if len(gone):
            graph.remove(place, gone)
    require_same_answers(masked, small.eval(), example, removed)
    return small.train(model.training)


def _silent(channels: Channels, *, lenient: bool) -> Tensor:
    """The channels that nothing makes or nothing reads."""
    unmade = all_zero(channels.makers, channels.n, dim=0)
    gone = unmade | all_zero(channels.readers, channels.n, dim=1)
    if channels.obstacles:
        if gone.any() and not lenient:
            raise InputError(
                f"Masked channels of {channels.name} cannot be removed: {channels.obstacles[0]}; "
                "leave these layers out, or use partial=True to keep the zeros there."
            )
        return torch.empty(0, dtype=torch.long)
    if gone.all():
        raise InputError(
            f"No channel of {channels.name} would be left; remove fewer than all "
            f"{channels.n} of them (a sparsity of at most {1 - 1 / channels.n:.3g})."
        )
    if not lenient:
        for part in channels.makers:
            only_here = all_zero([part], channels.n, dim=0) & ~gone
            if only_here.any():
                raise InputError(
                    f"{int(only_here.sum())} masked filters of '{part.path}' cannot be removed, "
                    f"because the layers {channels.name} share their channels and others of them "
                    "still make them; mask with prune(model, spec, example), or use partial=True "
                    "to keep the zeros there."
                )
    return torch.nonzero(gone).flatten()


def _constants(
    channels: Channels, silent: Tensor, inputs: dict[str, Tensor], *, lenient: bool
) -> tuple[Tensor, list[Constant]]:
    """The silent channels that can go, and what must be added to biases when they do.

    A silent filter still sends its bias, as changed by norms and activations. A layer that sees
    it everywhere alike can take it into its own bias; at a border of zeros it is not alike.
    """
    unread = all_zero(channels.readers, channels.n, dim=1)
    constants: list[Constant] = []
    for part in channels.readers:
        index = part.slices_of(silent[~unread[silent]])
        # The value of each slice's input, and whether it differs between places or images.
        seen = inputs[part.path]
        axis = channel_axis(part.module, seen)
        sent = seen.index_select(axis, index.to(seen.device)).movedim(axis, 0).flatten(1)
        low, high = sent.amin(dim=1), sent.amax(dim=1)
        values, varies = (low + high) / 2, (high - low) > 1e-6 * (1 + high.abs())
        padding = getattr(part.module, "padding", ())  # a linear layer has none
        padded = padding == "same" if isinstance(padding, str) else any(padding)
        padded = padded and part.module.padding_mode == "zeros"
        stuck = varies | ((values != 0) & padded)
        if stuck.any():
            if not lenient:
                why = (
                    "something between mixes channels"
                    if varies.any()
                    else "a bias, a norm or an activation makes constants, which it cannot take "
                    "into its bias because it pads with zeros"
                )
                raise InputError(
                    f"Removing the masked channels of {channels.name} would change the answers: "
                    f"{int(stuck.sum())} of them are not 0 where '{part.path}' reads them ({why}); "
                    "mask with prune(model, spec, example), or use partial=True to keep the zeros "
                    "there."
                )
            lost = part.of[torch.isin(part.index, index[stuck])]
            silent = silent[~torch.isin(silent, lost)]
            return _constants(channels, silent, inputs, lenient=lenient)
        constants.append(Constant(part, index, values))
    return silent, constants
