"""Which layers a method acts on: patterns over the paths of convolutions and linear layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from torch import nn

from fairweight.errors import InputError, UnknownNameError

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
