"""Networks of the user's own, named as `module:function`."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fairweight.errors import InputError, UnknownNameError


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
    parameters = _parameters(name, function)
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


def _parameters(name: str, function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The parameters of '{name}' cannot be read; wrap it in a function that has"
            " 'classes' among its parameters."
        ) from error
    return signature.parameters


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
