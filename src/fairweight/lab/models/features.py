"""What a network computes at its block ends, by name.

A network names them in its attribute `blocks`, a dictionary from feature name to the path of the
module whose output it is: `stem`, `block1`, `block2`, …, `pooled` (N, channels), `logits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from fairweight.errors import InputError, UnknownNameError


def features(model: nn.Module, x: Tensor, names: Iterable[str] | None = None) -> dict[str, Tensor]:
    """Run a network once and return the outputs at its block ends.

    Parameters
    ----------
    x
        A batch of images.
    names
        Features by the network's own names, or paths of modules (`layer1.0.conv1`); by default
        everything in the network's attribute `blocks`.

    Returns
    -------
    dict
        By name, in the order asked for. Gradients flow unless the caller switches them off. Of a
        module that runs several times the last output is returned.
    """
    paths = feature_paths(model, names)
    return watched(model, x, paths)[0]


def watched(
    model: nn.Module, x: Tensor, paths: Mapping[str, str]
) -> tuple[dict[str, Tensor], Tensor]:
    """The outputs of the modules at these paths, by name, and the network's own output."""
    seen: dict[str, Any] = {}

    def keep(path: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            seen[path] = output

        return hook

    handles = [
        model.get_submodule(path).register_forward_hook(keep(path)) for path in set(paths.values())
    ]
    try:
        output: Tensor = model(x)
    finally:
        for handle in handles:
            handle.remove()
    for name, path in paths.items():
        if path not in seen:
            raise InputError(
                f"Feature '{name}' has no value: module '{path}' does not run in the network's "
                "forward."
            )
        if not isinstance(seen[path], Tensor):
            raise InputError(
                f"Feature '{name}' is not a tensor: module '{path}' returns "
                f"{type(seen[path]).__name__}; name a module that returns one tensor."
            )
    return {name: seen[path] for name, path in paths.items()}, output


def feature_paths(model: nn.Module, names: Iterable[str] | None = None) -> dict[str, str]:
    """The path of the module behind each feature."""
    blocks = getattr(model, "blocks", None)
    known: Mapping[str, str] = blocks if isinstance(blocks, Mapping) else {}
    if names is None:
        if not known:
            raise InputError(
                f"The network ({type(model).__name__}) does not say where its blocks end: pass"
                " names=[...] with paths of modules, or give it an attribute"
                " blocks = {'block1': 'path.of.module', ...}."
            )
        names = tuple(known)
    elif isinstance(names, str):
        raise InputError(f"names must be a list of names, such as ['{names}'], not '{names}'.")
    modules = dict(model.named_modules())
    paths = {}
    for name in names:
        path = known.get(name, name)
        if path not in modules or not path:
            offered = [*known, *(key for key in modules if key and key not in known)]
            raise UnknownNameError("Feature", name, offered)
        paths[name] = path
    return paths
