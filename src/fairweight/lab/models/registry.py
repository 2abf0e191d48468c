"""The registry of architectures: a name to one function that builds a network.

A builder takes keywords only: `classes` (outputs: classes of one task, or the number of binary
attributes), `channels` and `size` (of the square images, in pixels), `width` (a factor on every
layer's number of channels) and options of its own. The network maps (N, channels, size, size) to
logits (N, classes) and names its block ends in `blocks` (see features.py).
"""

from __future__ import annotations

import inspect
import math
import numbers
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import nn

from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.models.imported import build_imported, require_own
from fairweight.trust import require_module

Builder: TypeAlias = Callable[..., nn.Module]

SHAPE = ("classes", "channels", "size", "width")
LONGEST = 600  # characters of a message about what a file says


@dataclass(frozen=True)
class Architecture:
    """A kind of network: its name, what it is, where it comes from, and its builder."""

    name: str
    builder: Builder
    summary: str  # one line, for listings
    source: str
    options: tuple[str, ...]  # keywords of the builder beyond those that all take

    @property
    def defaults(self) -> dict[str, Any]:
        """Options with the values that they have if nobody gives others."""
        parameters = inspect.signature(self.builder).parameters
        return {option: parameters[option].default for option in self.options}


_ARCHITECTURES: dict[str, Architecture] = {}


def architecture(name: str, *, summary: str, source: str) -> Callable[[Builder], Builder]:
    """Register a builder under a name; the decorated function stays usable as it is."""

    def add(builder: Builder) -> Builder:
        if name in _ARCHITECTURES:
            raise InputError(
                f"An architecture named '{name}' is registered already; choose another name."
            )
        options = tuple(key for key in inspect.signature(builder).parameters if key not in SHAPE)
        _ARCHITECTURES[name] = Architecture(name, builder, summary, source, options)
        return builder

    return add


def unregister(name: str) -> None:
    """Remove an architecture (for tests and notebooks that define one again)."""
    _ARCHITECTURES.pop(name)


def architectures() -> tuple[Architecture, ...]:
    """Every registered architecture, in order of registration.

    >>> [entry.name for entry in architectures()][:2]
    ['lenet', 'alexnet']
    """
    return tuple(_ARCHITECTURES.values())


def build(
    name: str,
    *,
    classes: int,
    channels: int = 3,
    size: int = 32,
    width: float = 1.0,
    **own: Any,
) -> nn.Module:
    """A network with random weights, which `torch.manual_seed` determines.

    Parameters
    ----------
    name
        A registered architecture, or `module:function` for a function (or class) of your own. It
        gets those of `classes`, `channels`, `size` and `width` that it has parameters for.
    classes
        Number of outputs: classes of one task, or binary attributes.
    channels, size
        Of the images: 1 for grey and 3 for colour; the side in pixels.
    width
        Every layer's number of channels is multiplied by it (and rounded, at least 1).
    own
        Options of the architecture, such as `stem="imagenet"` of the ResNets.

    >>> net = build("lenet", classes=10, channels=1, size=28)
    >>> sum(weight.numel() for weight in net.parameters() if weight.dim() > 1)
    59838
    """
    shape: dict[str, Any] = {
        "classes": _count("classes", classes),
        "channels": _count("channels", channels),
        "size": _count("size", size),
        "width": _factor("width", width),
    }
    if ":" in name:
        return build_imported(name, shape=shape, own=own)
    if name not in _ARCHITECTURES:
        raise UnknownNameError(
            "Architecture",
            name,
            _ARCHITECTURES,
            remedy="A function of your own is given as 'module:function'.",
        )
    entry = _ARCHITECTURES[name]
    for option in own:
        if option not in entry.options:
            raise UnknownNameError(f"Option of architecture '{name}'", option, entry.options)
    return entry.builder(**shape, **own)


def check_named(name: str, where: str) -> None:
    """Raise unless a card or a study may name this architecture."""
    if ":" in name:
        require_module(name, where)
        require_own(name, where)


def build_from_file(name: str, options: Mapping[str, Any], where: str) -> nn.Module:
    """A network that a card or a study names: registered, or of a module that the user trusts.

    Parameters
    ----------
    options
        As for `build`.
    where
        What names it, for messages: `The card of 'models/a'`.
    """
    check_named(name, where)
    if "name" in options or "classes" not in options:
        missing = "'name' is none" if "name" in options else "'classes' is missing"
        raise InputError(f"{where}: the options of '{name[:80]}' cannot be used ({missing}).")
    try:
        shapes_only = torch.get_default_device().type == "meta"
        if ":" in name or shapes_only:
            return build(name, **options)
        with torch.device("meta"):  # shapes only: numbers of a file may ask for any amount
            needed = 4 * sum(held.numel() for held in build(name, **options).parameters())
        if needed > (limit := available_memory()):
            raise InputError(
                f"{where}: '{name}' with these options needs {needed / 1e9:,.0f} GB, and this "
                f"machine has {limit / 1e9:,.0f}; correct the options."
            )
        return build(name, **options)
    except InputError as error:
        raise InputError(_short(str(error))) from error
    except Exception as error:  # whatever torch makes of the values of a file
        said = _short(" ".join(str(error).split()))
        raise InputError(f"{where}: '{name}' cannot be made ({said}); correct it.") from error


def available_memory() -> float:
    """Bytes that a network may take on this machine."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return 16e9


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _count(argument: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < 1:
        raise InputError(f"{argument} must be a whole number of at least 1, not {value!r}.")
    return int(value)


def _factor(argument: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputError(f"{argument} must be a number above 0, such as 0.5, not {value!r}.")
    factor = float(value)
    if not (math.isfinite(factor) and factor > 0):
        raise InputError(f"{argument} must be a number above 0, such as 0.5, not {value!r}.")
    return factor
