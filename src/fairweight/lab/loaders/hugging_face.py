"""Image classifiers in the layout of Hugging Face, where `transformers` is installed."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from fairweight.errors import InputError
from fairweight.lab.batches import Scaling
from fairweight.lab.card import Card
from fairweight.lab.loaders.digest import digest_of_files
from fairweight.lab.loaders.loaded import Loaded
from fairweight.lab.loaders.torch_module import open_module

CONFIG, PROCESSOR = "config.json", "preprocessor_config.json"


def open_hugging_face(folder: Path, shown: str, *, scaling: Scaling | None, device: str) -> Loaded:
    """A folder with config.json and safetensors; nothing is downloaded and no code of it is run.

    Classes come from its `id2label`, the scaling of pixels from its image processor. Images are
    not resized: give them in the size that the model was trained on.
    """
    try:
        transformers = importlib.import_module("transformers")
    except ModuleNotFoundError:
        raise InputError(
            f"{shown} is a Hugging Face model, which needs transformers: pip install transformers."
        ) from None
    kept: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        model: nn.Module = transformers.AutoModelForImageClassification.from_pretrained(
            str(folder), use_safetensors=True, **kept
        )
        processor = (
            transformers.AutoImageProcessor.from_pretrained(str(folder), **kept)
            if (folder / PROCESSOR).is_file()
            else None
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"'{folder}' cannot be read as an image classifier ({said}); save it again with "
            "save_pretrained."
        ) from None
    config: Any = model.config
    names = {int(index): str(name) for index, name in config.id2label.items()}
    own = _scaling(processor)
    card = Card(
        classes=tuple(names[index] for index in sorted(names)),
        preprocessing=own,
        tasks=getattr(config, "problem_type", None) == "multi_label_classification",
    )
    opened = open_module(model, shown, scaling=scaling, device=device, card=card)
    files = sorted(file for file in folder.iterdir() if file.is_file())
    return replace(opened, identity=f"{digest_of_files(files)}{own or scaling}")


def _scaling(processor: Any) -> Scaling | None:
    """Mean and deviation of pixels from 0 to 1, as the processor says; None if it does not."""
    if processor is None or not getattr(processor, "do_normalize", False):
        return None
    mean, std = processor.image_mean, processor.image_std
    factor = 255 * getattr(processor, "rescale_factor", 1 / 255)  # of what 0 to 1 becomes
    if not factor:
        return None
    return Scaling(tuple(m / factor for m in mean), tuple(s / factor for s in std))
