"""A model from its specs: read the data, build the network, train it, write the folder."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fairweight.errors import InputError
from fairweight.lab.card import Card
from fairweight.lab.compress.prune import Spec
from fairweight.lab.compress.pruner import Pruner
from fairweight.lab.distill.teacher import Teacher
from fairweight.lab.make.first_weights import first_seed, load_first_weights
from fairweight.lab.make.fitted import Made, compression_of, finish, fit
from fairweight.lab.make.taught import leak, load_teacher, taught
from fairweight.lab.make.variant_name import DENSE, taught_name, variant_name
from fairweight.lab.models.imported import require_own
from fairweight.lab.models.registry import build
from fairweight.lab.prepared_data import Prepared, prepare
from fairweight.lab.train import Progress
from fairweight.specs.data import Data
from fairweight.specs.distillation import Distillation
from fairweight.specs.model import Model
from fairweight.specs.training import Training
from fairweight.trust import modules_of, trusting


def train_model(
    data: Data,
    model: Model,
    training: Training,
    out: str | Path,
    *,
    root: str | Path | None = None,
    prepared: Prepared | None = None,
    method: str | None = None,
    pruning: Spec | None = None,
    distillation: Distillation | None = None,
    teacher: str | Path | None = None,
    init: str | Path | None = None,
    variant: str | None = None,
    onnx: bool = False,
    checkpoint: Path | None = None,
    device: str = "cpu",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Made:
    """Train a network on a data set and write it as a folder with its card.

    A run that was interrupted goes on where it stopped when it is asked for again.

    Parameters
    ----------
    root
        The folder with data sets.
    method, pruning
        The name and spec of a method that prunes from the first weights on.
    distillation, teacher
        How the network is held near a teacher, and the teacher's folder.
    init
        A safetensors file, or the folder of a model, whose weights are the start.
    variant
        What the model is called; by default `dense`, or the method with its sparsity.
    onnx
        Also write `model.onnx` into the folder.
    overwrite
        Replace files too that fairweight did not write, or that were changed since.
    checkpoint
        The folder of the half-done training; by default hidden beside `out`.
    prepared
        The parts of the data, where they were read before.
    """
    if (distillation is None) != (teacher is None):
        raise InputError(
            "A distillation (--distill) needs a teacher (--teacher), and a teacher a distillation; "
            "give both or neither."
        )
    if ":" in model.architecture:
        require_own(model.architecture, "The network")
    prepared = prepared or prepare(data, root)
    training = _with_loss(training, prepared)
    network, options = _network(model, prepared, training.seed)
    if init is not None:
        load_first_weights(network, init)
    compression = {} if pruning is None else compression_of(pruning, "from the first weights")
    taught_by: Teacher | None = None
    if distillation is not None and teacher is not None:
        taught_by, of = load_teacher(teacher, prepared.train.classes)
        told = leak(of, data, prepared, root, role="teacher")
        compression |= {"distillation": taught(distillation, of)}
        compression |= {"leak": told} if told else {}
    card = Card(
        architecture=model.architecture,
        options=options,
        classes=prepared.train.classes,
        tasks=prepared.train.multi_label,
        variant=variant or trained_name(method, pruning, distillation),
        seed=training.seed,
        dataset=data.name,
        data=asdict(data),
        training={**asdict(training), "init": None if init is None else str(init)},
        compression=compression,
    )
    pruner = None if pruning is None else Pruner(pruning)
    trained = fit(
        network,
        prepared,
        training,
        out,
        pruner=pruner,
        distillation=distillation,
        teacher=taught_by,
        checkpoint=checkpoint,
        device=device,
        progress=progress,
    )
    with trusting(modules=modules_of(model.architecture)):  # the caller named it
        return finish(trained, prepared, card, out, onnx=onnx, device=device, overwrite=overwrite)


def trained_name(
    method: str | None, pruning: Spec | None, distillation: Distillation | None
) -> str:
    """What a model that is trained from its first weights is called."""
    pruned = DENSE if pruning is None or method is None else variant_name(method, pruning)
    return taught_name(pruned, distillation)


def _with_loss(training: Training, prepared: Prepared) -> Training:
    """Attributes are learnt with a binary loss each; there is no other way to read their labels."""
    return replace(training, loss="binary" if prepared.train.multi_label else "cross-entropy")


def _network(model: Model, prepared: Prepared, seed: int) -> tuple[nn.Module, dict[str, Any]]:
    _, height, width, channels = prepared.train.images.shape
    if height != width:
        raise InputError(
            f"The images of '{prepared.train.name}' are {width} × {height} pixels, but networks "
            "take squares; read them in one size (option size, such as size=64)."
        )
    options: dict[str, Any] = {
        "classes": len(prepared.train.classes),
        "channels": channels,
        "size": height,
        "width": model.width,
        **model.options,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(first_seed(seed))
        return build(model.architecture, **options), options
