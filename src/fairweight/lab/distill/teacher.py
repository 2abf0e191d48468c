"""A teacher: it never trains, and is asked once per batch, or once for all."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.batches import Examples, Scaling, model_input
from fairweight.lab.distill.memory import require_memory
from fairweight.lab.distill.reading import run
from fairweight.lab.memory_format import in_format, lay_out

ASKED_AT_ONCE = 256


class Teacher:
    """A frozen network that sees the student's images.

    Parameters
    ----------
    scaling
        How its own pixels are scaled; the student's may be scaled otherwise.
    """

    def __init__(self, network: nn.Module, scaling: Scaling) -> None:
        self.network = network.eval().requires_grad_(False)
        self.scaling = scaling
        self._layout = lay_out(network)
        self._cached: dict[str, Tensor] = {}

    def to(self, device: str) -> None:
        self.network.to(device)

    def features(
        self, images: Tensor, index: Tensor, paths: Mapping[str, str], seen_as: Scaling
    ) -> dict[str, Tensor]:
        """Its features of a batch of the student's images, without gradients."""
        if self._cached:
            return {name: held[index] for name, held in self._cached.items()}
        with torch.no_grad():
            adapted = rescaled(images, seen_as, self.scaling)
            return run(self.network, in_format(adapted, self._layout), paths)

    def remember(self, data: Examples, paths: Mapping[str, str], wanted: set[str]) -> None:
        """Compute the features of all examples now, in their order, and keep them."""
        device = next(self.network.parameters()).device
        with torch.no_grad():
            for start in range(0, len(data), ASKED_AT_ONCE):
                pixels = data.images[start : start + ASKED_AT_ONCE]
                batch = model_input(pixels, self.scaling).to(device)
                found = run(self.network, in_format(batch, self._layout), paths)
                found = {name: value for name, value in found.items() if name in wanted}
                if not self._cached:
                    self._cached = _room(found, len(data))
                for name, value in found.items():
                    self._cached[name][start : start + len(batch)] = value


def rescaled(images: Tensor, now: Scaling, wanted: Scaling) -> Tensor:
    """Images that were scaled one way, scaled another way."""
    if now == wanted:
        return images
    if len(now.mean) != len(wanted.mean):
        raise InputError(
            f"The teacher takes images of {len(wanted.mean)} channels, and the student's have "
            f"{len(now.mean)}; choose a teacher of the same kind of images."
        )
    pairs = zip(now.mean, now.std, wanted.mean, wanted.std, strict=True)
    numbers = [(own / other, (mean - of) / other) for mean, own, of, other in pairs]
    change = torch.tensor(numbers, device=images.device).T[:, :, None, None]
    return images * change[0] + change[1]


def _room(found: Mapping[str, Tensor], n: int) -> dict[str, Tensor]:
    needed = sum(n * value[0].numel() * value.element_size() for value in found.values())
    require_memory(
        needed,
        f"The teacher's features of {n:,} examples",
        "leave cache out, so that the teacher is asked for every batch",
    )
    return {name: value.new_empty((n, *value.shape[1:])) for name, value in found.items()}
