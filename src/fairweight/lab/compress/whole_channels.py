"""Masks of whole channels: filters, their biases and norms, alike in all layers that share them.

Masking filters layer by layer leaves constants (biases, shifts of norms), and layers whose
outputs are summed lose different filters; such channels cannot be removed. These can.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.compress.channels import ChannelGraph, Channels, Part, all_zero, norms_of
from fairweight.lab.compress.layers import chosen, without
from fairweight.lab.compress.mask import bake
from fairweight.lab.compress.schedules import Step
from fairweight.lab.compress.scores import INFINITY, random_scores
from fairweight.lab.compress.select import keep_largest, n_removed
from fairweight.specs.compression import (
    L1Structured,
    L2Structured,
    LinfStructured,
    RandomStructured,
    Structured,
)

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
        selected = keep_largest(_importance(channels, parts, spec), kept, gone)
        silent = torch.nonzero(~selected).flatten()
        for part in parts:
            _cut(masks, f"{part.path}.weight", part.module.weight, part.slices_of(silent), spec.dim)
        if spec.dim == 0:
            for part in (*channels.makers, *channels.norms):
                for name in ("weight", "bias"):
                    if (value := getattr(part.module, name, None)) is not None:
                        _cut(masks, f"{part.path}.{name}", value, part.slices_of(silent), 0)
    return masks


def _importance(channels: Channels, parts: list[Part], spec: Structured) -> Tensor:
    if isinstance(spec, RandomStructured):
        return random_scores(channels.n, f"{channels.makers[0].path}.weight", seed=spec.seed)
    return norms_of(parts, channels.n, dim=spec.dim, order=ORDERS[type(spec)])


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
