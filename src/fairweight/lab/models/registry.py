"""The registry of architectures: a name to one function that builds a network.

A builder takes keywords only: `classes` (outputs: classes of one task, or the number of binary
attributes), `channels` and `size` (of the square images, in pixels), `width` (a factor on every
layer's number of channels) and options of its own. The network maps (N, channels, size, size) to
logits (N, classes) and names its block ends in `blocks` (see features.py).
"""

from __future__ import annotations

import importlib
import inspect
import math
import numbers
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor, nn

from fairweight.base.registry import Registry
from fairweight.base.trust import require_module
from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.batches import Scaling

# Networks of the user's own, named as `module:function`.


def build_imported(name: str, *, shape: Mapping[str, Any], own: Mapping[str, Any]) -> nn.Module:
    """Call `module:function` with what it has parameters for, and try the network on one image.

    Parameters
    ----------
    shape
        Classes, channels, size and width: passed as far as the function has such parameters.
    own
        Further keywords: the function must have them all.
    """
    function = _function(name)
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The parameters of '{name}' cannot be read; wrap it in a function that has"
            " 'classes' among its parameters."
        ) from error
    takes_any = any(item.kind is item.VAR_KEYWORD for item in parameters.values())
    for option in own:
        if option not in parameters and not takes_any:
            raise UnknownNameError(f"Parameter of '{name}'", option, parameters)
    arguments = {key: value for key, value in shape.items() if takes_any or key in parameters}
    if shape["width"] != 1 and "width" not in arguments:
        raise InputError(
            f"'{name}' has no parameter 'width', so width={shape['width']!r} has no effect;"
            " add the parameter or leave the width at 1."
        )
    arguments |= own
    try:
        model = function(**arguments)
    except InputError:
        raise
    except Exception as error:
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        raise InputError(
            f"'{name}' failed when called with ({given}): {type(error).__name__}: {error}"
        ) from error
    if not isinstance(model, nn.Module):
        raise InputError(f"'{name}' must return a torch.nn.Module, not {type(model).__name__}.")
    _try_out(name, model, shape)
    return model


def require_own(name: str, where: str) -> None:
    """Raise unless `module:function` is what that module defines itself.

    A module that is trusted imports others: `nets:os.system` is none of its functions.
    """
    module, _, attribute = name.partition(":")
    home = str(getattr(_function(name), "__module__", ""))
    if "." in attribute or not f"{home}.".startswith(f"{module}."):
        raise InputError(
            f"{where} names '{name}', which '{module}' does not define itself; name a function or "
            "class with the module that defines it."
        )


def _function(name: str) -> Callable[..., Any]:
    module_name, _, function_name = name.partition(":")
    if not module_name or not function_name:
        raise InputError(
            f"A network of your own is named 'module:function', such as 'nets:small', not '{name}'."
        )
    with _working_folder_importable():
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise InputError(
                    f"Module '{module_name}' of '{name}' needs '{error.name}', which is not"
                    " installed."
                ) from error
            raise InputError(
                f"Module '{module_name}' of '{name}' was not found: run where {module_name} can be"
                " imported, or put its folder on PYTHONPATH."
            ) from error
        except Exception as error:
            raise InputError(
                f"Module '{module_name}' of '{name}' cannot be imported:"
                f" {type(error).__name__}: {error}"
            ) from error
    function: Any = module
    for part in function_name.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        names = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        raise UnknownNameError(f"In module '{module_name}' the function", function_name, names)
    return function  # type: ignore[no-any-return]


@contextmanager
def _working_folder_importable() -> Iterator[None]:
    # An installed command does not look there, but users expect what `python -c` does.
    here = str(Path.cwd())
    sys.path.append(here)
    try:
        yield
    finally:
        sys.path.remove(here)


def _try_out(name: str, model: nn.Module, shape: Mapping[str, Any]) -> None:
    """One black image through the network: better a sentence now than a crash in training."""
    classes, channels, size = shape["classes"], shape["channels"], shape["size"]
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        # Weights and later draws must be those that the seed gives without this trial.
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            output = model(torch.zeros(1, channels, size, size))
    except Exception as error:
        raise InputError(
            f"The network of '{name}' cannot take an image of {channels} × {size} × {size}:"
            f" {type(error).__name__}: {error}"
        ) from error
    finally:
        for module in training:
            module.training = True
    given = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
    if given != (1, classes):
        raise InputError(
            f"The network of '{name}' must give one logit per class, here of shape (1, {classes})"
            f" for one image, not {given}; check its number of outputs."
        )


Builder: TypeAlias = Callable[..., nn.Module]

SHAPE = ("classes", "channels", "size", "width")
LONGEST = 600  # characters of a message about what a file says


@dataclass(frozen=True)
class Pretrained:
    """Published weights of an architecture: where they are, and how they take pixels.

    Parameters
    ----------
    kind
        `imagenet`: weights to start from, with a last layer for other classes. `shipped`: a
        network that is used as it is.
    package, files
        The package that holds the file, and a pattern for the file inside it.
    fetch
        How the package is fetched where Python does not install it.
    classes
        Of `shipped`: what the outputs mean, in their order.
    converted
        Makes our tensors of the file's, where names or axes differ.
    """

    kind: Literal["imagenet", "shipped"]
    package: str
    files: str
    scaling: Scaling
    fetch: str = ""
    classes: tuple[str, ...] = ()
    converted: Callable[[dict[str, Tensor]], dict[str, Tensor]] | None = None


@dataclass(frozen=True)
class Architecture:
    """A kind of network: its name, what it is, where it comes from, and its builder."""

    name: str
    builder: Builder
    summary: str  # one line, for listings
    source: str
    options: tuple[str, ...]  # keywords of the builder beyond those that all take
    pretrained: Pretrained | None = None

    @property
    def defaults(self) -> dict[str, Any]:
        """Options with the values that they have if nobody gives others."""
        parameters = inspect.signature(self.builder).parameters
        return {option: parameters[option].default for option in self.options}


ARCHITECTURES: Registry[Architecture] = Registry(
    "architecture", remedy="A function of your own is given as 'module:function'."
)
unregister = ARCHITECTURES.remove


def architecture(
    name: str, *, summary: str, source: str, pretrained: Pretrained | None = None
) -> Callable[[Builder], Builder]:
    """Register a builder under a name; the decorated function stays usable as it is."""

    def add(builder: Builder) -> Builder:
        options = tuple(key for key in inspect.signature(builder).parameters if key not in SHAPE)
        entry = Architecture(name, builder, summary, source, options, pretrained)
        ARCHITECTURES.add(name, entry)
        return builder

    return add


def architectures() -> tuple[Architecture, ...]:
    """Every registered architecture, in order of registration.

    >>> [entry.name for entry in architectures()][:2]
    ['lenet', 'alexnet']
    """
    return tuple(ARCHITECTURES.values())


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
    given: object = width
    real = isinstance(given, numbers.Real) and not isinstance(given, bool)
    if not (real and math.isfinite(width) and width > 0):
        raise InputError(f"width must be a number above 0, such as 0.5, not {width!r}.")
    shape: dict[str, Any] = {
        "classes": _count("classes", classes),
        "channels": _count("channels", channels),
        "size": _count("size", size),
        "width": float(width),
    }
    if ":" in name:
        return build_imported(name, shape=shape, own=own)
    entry = ARCHITECTURES[name]
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


# How networks are fitted to a width and to an image size.

Scale: TypeAlias = Literal["small", "imagenet"]

LARGEST_SMALL = 64


def scaled(channels: int, width: float) -> int:
    """A layer's number of channels at a width.

    >>> scaled(64, 0.25), scaled(6, 0.1), scaled(32, 1.0)
    (16, 1, 32)
    """
    return max(1, round(channels * width))


def scale_of(argument: str, given: Scale | None, size: int) -> Scale:
    """The form that was asked for, or the one for that image size: small up to 64 pixels.

    >>> scale_of("stem", None, 32), scale_of("stem", None, 224), scale_of("stem", "small", 224)
    ('small', 'imagenet', 'small')
    """
    if given is None:
        return "small" if size <= LARGEST_SMALL else "imagenet"
    if given not in ("small", "imagenet"):
        raise InputError(f"{argument} must be 'small' or 'imagenet', not {given!r}.")
    return given


# Initial weights of networks of rectified convolutions.


def initialise_convolutions(model: nn.Module) -> None:
    """He's normal initialisation by fan-out, as torchvision and RepDistiller do."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
