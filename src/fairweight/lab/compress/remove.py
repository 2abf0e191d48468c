"""Channels really removed: a smaller network that answers as the masked one does."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.compress.answers import channel_axis, inputs_of, require_same_answers
from fairweight.lab.compress.channels import ChannelGraph, Channels, Part, all_zero
from fairweight.lab.compress.mask import bake, masks, set_masks
from fairweight.lab.compress.whole_channels import channel_masks
from fairweight.specs.compression import Structured


@dataclass(frozen=True)
class Constant:
    """What silent channels still send to a layer that reads them, whatever the image is."""

    part: Part
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
    silent = [_silent(channels, partial=partial) for channels in graph.all]
    readers = {part.path for channels in graph.all for part in channels.readers}
    inputs = inputs_of(masked, readers, example)
    for place, channels in enumerate(graph.all):
        silent[place], constants = _constants(channels, silent[place], inputs, partial=partial)
        for constant in constants:
            _fold(constant)
    removed = _removed_inputs(graph, silent)
    for place, gone in enumerate(silent):
        if len(gone):
            graph.remove(place, gone)
    require_same_answers(masked, small.eval(), example, removed)
    return small.train(model.training)


def _removed_inputs(graph: ChannelGraph, silent: list[Tensor]) -> dict[str, Tensor]:
    """Which input channels each reading layer loses; several groups of channels may meet there."""
    removed: dict[str, Tensor] = {}
    for channels, gone in zip(graph.all, silent, strict=True):
        for part in channels.readers:
            before = removed.get(part.path, torch.empty(0, dtype=torch.long))
            removed[part.path] = torch.cat([before, part.slices_of(gone)])
    return removed


def _silent(channels: Channels, *, partial: bool) -> Tensor:
    """The channels that nothing makes or nothing reads."""
    unmade = all_zero(channels.makers, channels.n, dim=0)
    gone = unmade | all_zero(channels.readers, channels.n, dim=1)
    if channels.obstacles:
        if gone.any() and not partial:
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
    if not partial:
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
    channels: Channels, silent: Tensor, inputs: dict[str, Tensor], *, partial: bool
) -> tuple[Tensor, list[Constant]]:
    """The silent channels that can go, and what must be added to biases when they do.

    A silent filter still sends its bias, as changed by norms and activations. A layer that sees
    it everywhere alike can take it into its own bias; at a border of zeros it is not alike.
    """
    unread = all_zero(channels.readers, channels.n, dim=1)
    constants: list[Constant] = []
    for part in channels.readers:
        sent = silent[~unread[silent]]
        index = part.slices_of(sent)
        values, varies = _sent(part, inputs[part.path], index)
        padded = (values != 0) & _pads_with_zeros(part.module)
        stuck = varies | padded
        if stuck.any():
            if not partial:
                raise InputError(_refusal(channels, part, int(stuck.sum()), bool(varies.any())))
            lost = part.of[torch.isin(part.index, index[stuck])]
            silent = silent[~torch.isin(silent, lost)]
            return _constants(channels, silent, inputs, partial=partial)
        constants.append(Constant(part, index, values))
    return silent, constants


def _refusal(channels: Channels, reader: Part, n: int, varies: bool) -> str:
    why = (
        "something between mixes channels"
        if varies
        else "a bias, a norm or an activation makes constants, which it cannot take into its bias "
        "because it pads with zeros"
    )
    return (
        f"Removing the masked channels of {channels.name} would change the answers: {n} of them "
        f"are not 0 where '{reader.path}' reads them ({why}); mask with prune(model, spec, "
        "example), or use partial=True to keep the zeros there."
    )


def _sent(part: Part, seen: Tensor, index: Tensor) -> tuple[Tensor, Tensor]:
    """The value of each slice's input, and whether it differs between places or images."""
    axis = channel_axis(part.module, seen)
    values = seen.index_select(axis, index.to(seen.device)).movedim(axis, 0).flatten(1)
    low, high = values.amin(dim=1), values.amax(dim=1)
    return (low + high) / 2, (high - low) > 1e-6 * (1 + high.abs())


def _pads_with_zeros(layer: nn.Module) -> bool:
    if isinstance(layer, nn.Linear):
        return False
    padding = layer.padding
    padded = padding == "same" if isinstance(padding, str) else any(padding)  # type: ignore[arg-type]
    return padded and layer.padding_mode == "zeros"


def _fold(constant: Constant) -> None:
    layer = constant.part.module
    if not constant.values.any():
        return
    with torch.no_grad():
        slices = layer.weight.index_select(1, constant.index.to(layer.weight.device))
        added = slices.flatten(2).sum(2) if slices.dim() > 2 else slices
        sums = added @ constant.values
        if layer.bias is None:
            layer.bias = nn.Parameter(sums)
        else:
            layer.bias += sums
