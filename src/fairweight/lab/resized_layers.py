"""Layers of another size than an architecture builds: what removing channels leaves behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor, nn


def resize_layers(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Replace the layers whose stored weights (or biases) differ by layers that fit them.

    Convolutions, linear layers and batch norms are replaced; what else differs is left, and
    loading the weights will say so. A depthwise convolution stays one.
    """
    for path, module in list(model.named_modules()):
        weight = state.get(f"{path}.weight" if path else "weight")
        own = getattr(module, "weight", None)
        if weight is None or not isinstance(own, Tensor):
            continue
        # What a removed channel always sent may have become a bias that the layer had not.
        bias = f"{path}.bias" in state
        if own.shape == weight.shape and bias == (getattr(module, "bias", None) is not None):
            continue
        fitted = _fitted(module, weight, bias=bias)
        if fitted is not None:
            parent, _, name = path.rpartition(".")
            setattr(model.get_submodule(parent), name, fitted)


def _fitted(module: nn.Module, weight: Tensor, *, bias: bool) -> nn.Module | None:
    if isinstance(module, nn.Conv2d) and weight.dim() == 4:
        depthwise = module.groups == module.in_channels > 1
        groups = weight.shape[0] if depthwise else module.groups
        return nn.Conv2d(
            weight.shape[1] * groups,
            weight.shape[0],
            (weight.shape[2], weight.shape[3]),
            stride=_pair(module.stride),
            padding=module.padding if isinstance(module.padding, str) else _pair(module.padding),
            dilation=_pair(module.dilation),
            groups=groups,
            bias=bias,
            padding_mode=module.padding_mode,
        )
    if isinstance(module, nn.Linear) and weight.dim() == 2:
        return nn.Linear(weight.shape[1], weight.shape[0], bias=bias)
    if isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d) and weight.dim() == 1:
        return type(module)(
            len(weight),
            eps=module.eps,
            momentum=module.momentum,
            affine=module.affine,
            track_running_stats=module.track_running_stats,
        )
    return None


def _pair(sizes: Sequence[int]) -> tuple[int, int]:
    return sizes[0], sizes[1]
