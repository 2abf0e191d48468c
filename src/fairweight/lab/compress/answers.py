"""Whether a smaller network answers as the masked one does, and if not, from where on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from fairweight.errors import InputError


def inputs_of(model: nn.Module, paths: Iterable[str], batch: Tensor) -> dict[str, Tensor]:
    """What these modules see of a batch, in the order in which they see it."""
    seen: dict[str, Tensor] = {}

    def noting(path: str) -> RemovableHandle:
        def note(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            seen[path] = inputs[0].detach()

        return model.get_submodule(path).register_forward_pre_hook(note)

    handles = [noting(path) for path in paths]
    try:
        with torch.no_grad():
            model(batch)
    finally:
        for handle in handles:
            handle.remove()
    return seen


def channel_axis(layer: nn.Module, seen: Tensor) -> int:
    """The axis of a layer's input that its weights' input channels go along."""
    return seen.dim() - 1 if isinstance(layer, nn.Linear) else 1


def require_same_answers(
    masked: nn.Module, small: nn.Module, example: Tensor, removed: Mapping[str, Tensor]
) -> None:
    """The last word: channels may meet in ways that no graph shows.

    Parameters
    ----------
    removed
        Which input channels each reading layer lost.
    """
    random = torch.randn(example.shape, generator=torch.Generator().manual_seed(0))
    for batch in (example, random.to(example)):
        try:
            with torch.no_grad():
                pairs = zip(_tensors(masked(batch)), _tensors(small(batch)), strict=True)
                same = all(_close(one, other) for one, other in pairs)
        except RuntimeError as error:
            raise InputError(
                f"The smaller network does not run ({error}), because the model uses channels "
                "outside of its layers; keep the masks."
            ) from error
        if not same:
            raise InputError(
                "The smaller network would not answer as the masked one does: "
                f"{_first_difference(masked, small, batch, removed)}; leave the layers before "
                "that out, or keep the masks."
            )


def _first_difference(
    masked: nn.Module, small: nn.Module, batch: Tensor, removed: Mapping[str, Tensor]
) -> str:
    ours = inputs_of(small, removed, batch)
    for path, seen in inputs_of(masked, removed, batch).items():
        axis = channel_axis(masked.get_submodule(path), seen)
        left = torch.ones(seen.shape[axis], dtype=torch.bool)
        left[removed[path]] = False
        if not _close(seen.index_select(axis, torch.nonzero(left).flatten()), ours[path]):
            return f"what '{path}' reads of the other channels depends on those that were removed"
    return "its outputs depend on channels that no layer reads"


def _close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    scale = float(one.abs().max()) if one.numel() else 0.0
    return torch.allclose(one, other, rtol=0, atol=1e-4 * scale + 1e-6)


def _tensors(output: object) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, dict):
        for value in output.values():
            yield from _tensors(value)
    elif isinstance(output, tuple | list):
        for value in output:
            yield from _tensors(value)
