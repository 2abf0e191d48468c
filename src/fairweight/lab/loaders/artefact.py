"""Folders that `save` wrote: weights as safetensors and a card."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from fairweight.lab.artifacts import CARD, MASKS, WEIGHTS, load
from fairweight.lab.batches import Scaling
from fairweight.lab.loaders.digest import digest_of_files
from fairweight.lab.loaders.loaded import Loaded
from fairweight.lab.loaders.torch_module import open_module


def open_artefact(folder: Path, shown: str, *, scaling: Scaling | None, device: str) -> Loaded:
    """The model of a folder; its own scaling of pixels comes before the one given."""
    model, card = load(folder)
    opened = open_module(model, shown, scaling=scaling, device=device, card=card)
    files = [folder / name for name in (CARD, WEIGHTS, MASKS) if (folder / name).is_file()]
    return replace(
        opened,
        outputs=card.outputs,
        identity=f"{digest_of_files(files)}{card.preprocessing or scaling}",
    )
