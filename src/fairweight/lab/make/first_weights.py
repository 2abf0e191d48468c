"""The weights that a training starts from: drawn by its seed, or those of another model."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.artifacts import WEIGHTS
from fairweight.lab.batches import generator
from fairweight.lab.compress.layers import prunable


def first_seed(seed: int) -> int:
    """Of the first weights: apart from that of the order of images, which the same seed decides."""
    return int(torch.randint(2**62, (1,), generator=generator(seed)))


def load_first_weights(model: nn.Module, file: str | Path) -> None:
    """Put the weights of a safetensors file (or of a model's folder) into a network.

    The last layer starts afresh where the file's is for another number of classes; everything
    else must be there and fit.
    """
    place = Path(file)
    stored = _read(place / WEIGHTS if place.is_dir() else place)
    own = model.state_dict()
    last = list(prunable(model))[-1]
    afresh = {
        name
        for name in own
        if name.startswith(f"{last}.") and name in stored and stored[name].shape != own[name].shape
    }
    apart = sorted(own.keys() ^ stored.keys())
    apart += [n for n in own if n in stored and n not in afresh and stored[n].shape != own[n].shape]
    if apart:
        raise InputError(
            f"The weights in '{place}' do not fit the network: '{apart[0]}' is missing or of "
            "another shape on one side; give weights of the same architecture, width and options."
        )
    model.load_state_dict({n: own[n] if n in afresh else stored[n] for n in own})


def _read(file: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if file.suffix != ".safetensors":
        raise InputError(
            f"'{file}' cannot be a start: first weights come from a .safetensors file or from a "
            "folder that `train` wrote."
        )
    try:
        return load_file(file)
    except FileNotFoundError:
        raise InputError(f"There is no '{file}' to start from; check the path.") from None
    except (OSError, SafetensorError, ValueError) as error:
        raise InputError(
            f"'{file}' cannot be read as safetensors ({error}); it may be cut off: copy it again."
        ) from None
