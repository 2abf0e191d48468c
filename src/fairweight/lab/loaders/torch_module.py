"""Torch modules in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.batches import Scaling
from fairweight.lab.card import Card
from fairweight.lab.loaders.digest import digest_of_module
from fairweight.lab.loaders.inputs import as_floats
from fairweight.lab.loaders.loaded import Loaded


def open_module(
    model: nn.Module, shown: str, *, scaling: Scaling | None, device: str, card: Card | None = None
) -> Loaded:
    """A module as it is now; it is put into evaluation mode for each batch and back."""
    model.to(device)
    card = card or Card()
    scaling = card.preprocessing or scaling
    return Loaded(
        run=runner(model, shown, scaling=scaling, device=device),
        classes=card.classes or None,
        tasks=card.tasks if card.classes else None,
        outputs=card.outputs if card.classes else None,
        identity=f"{digest_of_module(model)}{scaling}",
    )


def runner(
    model: nn.Module, shown: str, *, scaling: Scaling | None, device: str
) -> Callable[[Any], NDArray[Any]]:
    """A function from a batch to the logits as an array."""

    def run(inputs: Any) -> NDArray[Any]:
        images = as_floats(inputs, scaling, shown).to(device)
        training = model.training
        model.eval()
        try:
            with torch.inference_mode():
                output = tensor_of(model(images), shown)
        except RuntimeError as error:
            said = (str(error).strip().splitlines() or ["no reason given"])[0][:300]
            raise InputError(
                f"{shown} cannot take a batch of shape {tuple(images.shape)} ({said}); give "
                "images of the size and channels that it was trained on."
            ) from error
        finally:
            model.train(training)
        return output.to(torch.float32).cpu().numpy()

    return run


def tensor_of(output: Any, shown: str) -> Tensor:
    """The logits in what a module returned: a tensor, or an object or dict that holds them."""
    if isinstance(output, Tensor):
        return output
    held = output.get("logits") if isinstance(output, dict) else getattr(output, "logits", None)
    if isinstance(held, Tensor):
        return held
    raise InputError(
        f"{shown} returns {type(output).__name__}; it must return logits as one tensor, or an "
        "object with 'logits'."
    )
