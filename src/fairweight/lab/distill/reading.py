"""Which features of a network the losses of a sum read, and where they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.distill.registry import DistillationLoss
from fairweight.lab.models.features import feature_paths, watched

LOGITS = "logits"


def names_read(loss: DistillationLoss, model: nn.Module, given: Mapping[str, str]) -> list[str]:
    """The names of the features that a loss reads from this network, in its order."""
    if loss.reads == LOGITS:
        return [LOGITS]
    if loss.reads == "max-pools":
        found = [name for name, part in model.named_modules() if isinstance(part, nn.MaxPool2d)]
        if not found:
            raise InputError(
                f"The loss '{loss.name}' reads the outputs of MaxPool2d layers, and the network "
                "has none; use another loss, such as hint."
            )
        return found
    known = _known(model, given)
    blocks = [name for name in known if name.startswith("block")]
    if loss.reads == "pooled":
        return _some([name for name in known if name == "pooled"], loss, "pooled")
    blocks = _some(blocks, loss, "block1")
    if loss.reads == "last-block":
        return blocks[-1:]
    if loss.reads == "stem-and-blocks":
        return [*_some([n for n in known if n == "stem"], loss, "stem"), *blocks]
    return blocks


def paths_of(model: nn.Module, names: Iterable[str], given: Mapping[str, str]) -> dict[str, str]:
    """The paths of the modules behind features; the logits are what the network returns."""
    wanted = [name for name in names if name != LOGITS]
    paths = feature_paths(model, [given.get(name, name) for name in wanted])
    return dict(zip(wanted, paths.values(), strict=True))


def run(model: nn.Module, images: Tensor, paths: Mapping[str, str]) -> dict[str, Tensor]:
    """Run a network once: its features by name, and its `logits`."""
    if not paths:
        logits: Tensor = model(images)
        return {LOGITS: logits}
    found, logits = watched(model, images, paths)
    return {**found, LOGITS: logits}


def _known(model: nn.Module, given: Mapping[str, str]) -> dict[str, str]:
    blocks: Any = getattr(model, "blocks", None)
    return {**(blocks if isinstance(blocks, Mapping) else {}), **given}


def _some(names: list[str], loss: DistillationLoss, feature: str) -> list[str]:
    if not names:
        raise InputError(
            f"The loss '{loss.name}' reads {loss.reads}, and the network has no feature "
            f'\'{feature}\'; say where it is: features = {{"{feature}": "path.of.a.module"}}.'
        )
    return names
