"""Which modules of two networks are compared, and under which names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from torch import nn

from fairweight.errors import InputError
from fairweight.lab.models.features import feature_paths

# Names (or paths) of features in both networks; or a name to a path, or to a path in each.
Names: TypeAlias = Iterable[str] | Mapping[str, str | tuple[str, str]]
Paths: TypeAlias = dict[str, tuple[str, str]]

# The ends of blocks and what comes before the softmax, as in Simon Says.
COMPARED = re.compile(r"block\d+|logits")


def compared_layers(a: nn.Module, b: nn.Module, names: Names | None) -> Paths:
    """The path of the module behind each name, in both networks.

    Parameters
    ----------
    names
        By default the blocks and the logits, which both networks must have.
    """
    if names is None:
        names = _common_blocks(a, b)
    elif isinstance(names, str):
        raise InputError(f"names must be a list of names, such as ['{names}'], not '{names}'.")
    if not isinstance(names, Mapping):
        names = {name: (name, name) for name in names}
    if not names:
        raise InputError("names is empty; name features, or leave it out.")
    found: Paths = {}
    for name, given in names.items():
        first, second = (given, given) if isinstance(given, str) else given
        found[name] = (feature_paths(a, [first])[first], feature_paths(b, [second])[second])
    return found


def _common_blocks(a: nn.Module, b: nn.Module) -> tuple[str, ...]:
    first, second = (
        tuple(name for name in feature_paths(network) if COMPARED.fullmatch(name))
        for network in (a, b)
    )
    if first != second:
        raise InputError(
            f"The networks have different blocks ({', '.join(first)} and {', '.join(second)}), so "
            "it is not clear which belong together; name features that both have, such as "
            "'logits', or map names to a path in each: {'last': ('layer3', 'layer4')}."
        )
    return first
