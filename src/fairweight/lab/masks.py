"""Masks: zeros in a model's parameters that stay zeros while it trains.

A mask is a parametrization, not a hook: a masked model can be copied, exported and saved.
Parameters keep the names of the unmasked model (`conv1.weight`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from fairweight.errors import InputError, UnknownNameError

# Which layers a method acts on: patterns over the paths of convolutions and linear layers.

Layer = nn.Conv1d | nn.Conv2d | nn.Conv3d | nn.Linear
WORDS = ("@first", "@last", "@conv", "@linear")


def prunable(model: nn.Module) -> dict[str, Layer]:
    """Every convolution and linear layer by its path, in the order of the model."""
    return {name: module for name, module in model.named_modules() if isinstance(module, Layer)}


def chosen(model: nn.Module, patterns: Sequence[str] | None = None) -> dict[str, Layer]:
    """The layers that fit any pattern and none of those that begin with `!`.

    A path stands for everything inside it; patterns that only leave out start from all.
    `conv1` may be written as `conv1.weight` too.
    """
    layers = prunable(model)
    if not layers:
        raise InputError(
            "The model has no convolution and no linear layer; give one that has layers to prune."
        )
    patterns = ("*",) if patterns is None else tuple(patterns)
    wanted = [p for p in patterns if not p.startswith("!")] or ["*"]
    unwanted = [p[1:] for p in patterns if p.startswith("!")]
    taken = {name for pattern in wanted for name in _fitting(layers, pattern)}
    taken -= {name for pattern in unwanted for name in _fitting(layers, pattern)}
    if not taken:
        raise InputError(
            f"layers = {list(patterns)} leaves no layer to prune; the model has: "
            f"{', '.join(layers)}."
        )
    return {name: layer for name, layer in layers.items() if name in taken}


def weight_name(path: str) -> str:
    """The name of a layer's weight; a model that is one layer has the path ''."""
    return f"{path}.weight".removeprefix(".")


def without(patterns: Sequence[str], paths: Iterable[str]) -> str:
    """What to write to leave these layers out too, for sentences.

    >>> without(("*", "!@last"), ["conv1"])
    'layers = ["*", "!@last", "!conv1"]'
    """
    listed = [*patterns, *(f"!{path}" for path in sorted(paths))]
    return "layers = [" + ", ".join(f'"{pattern}"' for pattern in listed) + "]"


def _fitting(layers: dict[str, Layer], pattern: str) -> list[str]:
    names = list(layers)
    if pattern.startswith("@"):
        if pattern not in WORDS:
            raise UnknownNameError("The word in layers", pattern, WORDS)
        kinds = {"@conv": (nn.Conv1d, nn.Conv2d, nn.Conv3d), "@linear": (nn.Linear,)}
        if pattern in kinds:
            return [name for name in names if isinstance(layers[name], kinds[pattern])]
        return [names[0] if pattern == "@first" else names[-1]]
    path = pattern.removesuffix(".weight")
    found = [n for n in names if fnmatchcase(n, path) or fnmatchcase(n, f"{path}.*")]
    if not found:
        # A pattern that means nothing is a typing error, and would prune something else.
        raise UnknownNameError("The layer in layers", pattern, names)
    return found


class Mask(nn.Module):
    """Multiplies a parameter by a mask of 0 and 1; where it is 0, the gradient is 0 too."""

    mask: Tensor  # of the parameter's own type: multiplying by booleans takes four times as long

    def __init__(self, mask: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.mask

    @property
    def kept(self) -> Tensor:
        """True where the parameter is left."""
        return self.mask != 0


def set_masks(
    model: nn.Module, given: Mapping[str, Tensor], *, allow_regrowth: bool = False
) -> None:
    """Mask parameters by name; True stays.

    What an earlier mask removed stays removed, unless `allow_regrowth`.
    """
    modules = dict(model.named_modules())
    for name, keep in given.items():
        path, _, attribute = name.rpartition(".")
        module = modules.get(path)
        if module is None or not isinstance(getattr(module, attribute, None), Tensor):
            known = map(_plain, dict(model.named_parameters()))
            raise UnknownNameError("The parameter", name, known)
        parameter = getattr(module, attribute)
        if keep.dtype != torch.bool or keep.shape != parameter.shape:
            raise InputError(
                f"The mask of '{name}' has shape {tuple(keep.shape)} and type {keep.dtype}; give "
                f"a mask of shape {tuple(parameter.shape)} and type torch.bool."
            )
        if (mask := mask_of(module, attribute)) is None:
            # Laid out like the parameter (channels last): mixed layouts are slow to multiply.
            _own_class(module)
            own = torch.empty_like(parameter, requires_grad=False).copy_(keep)
            parametrize.register_parametrization(module, attribute, Mask(own))
        else:
            keep = keep.to(mask.mask.device)
            mask.mask.copy_(keep if allow_regrowth else mask.kept & keep)


def masks(model: nn.Module) -> dict[str, Tensor]:
    """Every mask by the name of its parameter; True stays."""
    return {name: mask.kept for name, _, _, mask in _masked(model)}


def mask_of(module: nn.Module, attribute: str) -> Mask | None:
    """The mask of a module's parameter, if it has one."""
    if not parametrize.is_parametrized(module, attribute):
        return None
    found = module.parametrizations[attribute]  # type: ignore[index]
    return next((part for part in found if isinstance(part, Mask)), None)


def bake(model: nn.Module) -> nn.Module:
    """Make the zeros part of the parameters and remove the masks, in place."""
    for _, module, attribute, _ in list(_masked(model)):
        _own_class(module)
        parametrize.remove_parametrizations(module, attribute, leave_parametrized=True)
    return model


def layer_sparsity(model: nn.Module, layers: Sequence[str] | None = None) -> dict[str, float]:
    """Share of zeros in the weights of each convolution and linear layer."""
    return {
        name: _n_zeros(layer.weight) / layer.weight.numel()
        for name, layer in chosen(model, layers).items()
    }


def sparsity(model: nn.Module, layers: Sequence[str] | None = None) -> float:
    """Share of zeros in the weights of all convolutions and linear layers together."""
    weights = [layer.weight for layer in chosen(model, layers).values()]
    return sum(map(_n_zeros, weights)) / sum(weight.numel() for weight in weights)


def dense_values(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers as they are below the masks, by the names of the unmasked model."""
    hidden = {id(mask.mask) for _, _, _, mask in _masked(model)}
    state: dict[str, Tensor] = model.state_dict(keep_vars=True)
    return {_plain(name): value for name, value in state.items() if id(value) not in hidden}


def load_dense_values(model: nn.Module, values: Mapping[str, Tensor]) -> None:
    """Put values below the masks, which stay: what rewinding does."""
    own = dense_values(model)
    if missing := [name for name in own if name not in values]:
        raise InputError(
            f"The weights to rewind to lack '{missing[0]}'; give those of the same model."
        )
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(values[name])


def _own_class(module: nn.Module) -> None:
    """Give a parametrized module a class of its own.

    torch keeps parametrizations as properties of a class that it makes for the module, and a
    deep copy shares that class: adding or removing one on the copy would break the original.
    """
    if parametrize.is_parametrized(module):
        made = type(module)
        module.__class__ = type(made.__name__, made.__bases__, dict(made.__dict__))


def _plain(name: str) -> str:
    """`conv1.parametrizations.weight.original` is `conv1.weight`."""
    return name.replace("parametrizations.", "").removesuffix(".original")


def _n_zeros(weight: Tensor) -> int:
    return weight.numel() - int(torch.count_nonzero(weight.detach()))


def _masked(model: nn.Module) -> Iterator[tuple[str, nn.Module, str, Mask]]:
    """Every masked parameter: its plain name, its module, its attribute, its mask."""
    for path, module in list(model.named_modules()):
        if parametrize.is_parametrized(module):
            for attribute in module.parametrizations:
                mask = mask_of(module, attribute)
                if mask is not None:
                    yield f"{path}.{attribute}".lstrip("."), module, attribute, mask
