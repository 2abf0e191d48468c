"""Train a network and write it beside its checkpoint: what all ways to a model share."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.batches import Examples, Scaling, model_input
from fairweight.lab.card import Card
from fairweight.lab.compress.prune import Spec
from fairweight.lab.compress.pruner import Pruner
from fairweight.lab.compress.registry import fields_of
from fairweight.lab.distill.distiller import Distiller, initial_distiller
from fairweight.lab.distill.initial import initial_folder, initialise
from fairweight.lab.distill.teacher import Teacher
from fairweight.lab.make.folder import write_model
from fairweight.lab.prepared_data import Prepared, as_examples
from fairweight.lab.train import Progress, Trained, evaluate, train
from fairweight.specs.distillation import Distillation
from fairweight.specs.training import Training

SAVE_EVERY = 15.0  # seconds of work that an interruption may cost
TIMED_AT_ONCE = 64  # images in the batch that is timed


@dataclass(frozen=True)
class Made:
    """A model as it was written, and its accuracy on the examples held out."""

    path: Path
    card: Card
    test_accuracy: float


def fit(
    network: nn.Module,
    prepared: Prepared,
    training: Training,
    out: str | Path,
    *,
    pruner: Pruner | None,
    distillation: Distillation | None = None,
    teacher: Teacher | None = None,
    scaling: Scaling | None = None,
    checkpoint: Path | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Trained:
    """Train a network; an interrupted run goes on from its checkpoint, by default beside `out`."""
    place = checkpoint or _checkpoint(out)
    if pruner is not None:
        steps = max(1, -(-len(prepared.train) // training.batch_size))
        pruner.check_length(training.epochs, steps)
    data, distiller = as_examples(prepared.train), None
    if distillation is not None and teacher is not None:
        distiller = Distiller(distillation, teacher)
        initialise(
            network,
            data,
            training,
            initial_distiller(distillation, teacher),
            pruner=pruner,
            scaling=scaling,
            device=_checked(device),
            checkpoint=place,
            save_every=SAVE_EVERY,
            progress=progress,
        )
    return train(
        network,
        data,
        None if prepared.validation is None else as_examples(prepared.validation),
        training,
        pruner=pruner,
        distiller=distiller,
        scaling=scaling,
        device=_checked(device),
        checkpoint=place,
        save_every=SAVE_EVERY,
        progress=progress,
    )


def finish(
    trained: Trained,
    prepared: Prepared,
    card: Card,
    out: str | Path,
    *,
    onnx: bool,
    device: str = "cpu",
    overwrite: bool = False,
) -> Made:
    """Judge a model on the examples held out, write it, and forget the checkpoint."""
    held_out = as_examples(prepared.test)
    network, scaling = trained.model.to(device), trained.scaling
    loss = "binary" if card.tasks else "cross-entropy"
    accuracy = evaluate(network, held_out, scaling, loss=loss, device=device)["accuracy"]
    went: dict[str, Any] = {"test_accuracy": accuracy}
    if trained.history:
        went |= {"history": list(trained.history), "kept_epoch": trained.kept_epoch}
    card = replace(card, preprocessing=scaling, training={**card.training, **went})
    example = timed_example(held_out, scaling)
    written = write_model(network.cpu(), Path(out), card, example, onnx=onnx, overwrite=overwrite)
    for place in (_checkpoint(out), initial_folder(_checkpoint(out))):
        shutil.rmtree(place, ignore_errors=True)
    return Made(Path(out), written, accuracy)


def timed_example(data: Examples, scaling: Scaling) -> Tensor:
    """One batch of real inputs: what models are exported with, and timed on."""
    return model_input(data.images[:TIMED_AT_ONCE], scaling).contiguous()


def compression_of(pruning: Spec, treatment: str) -> dict[str, Any]:
    """What was done, as plain values for a card."""
    return {**fields_of(pruning), "sparsity": pruning.sparsity, "treatment": treatment}


def _checkpoint(out: str | Path) -> Path:
    folder = Path(out)
    return folder.parent / f".{folder.name}.training"


def _checked(device: str) -> str:
    """The device, if torch has it."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = (str(error).strip().splitlines() or ["unknown"])[0][:120]
        raise InputError(
            f"device = '{device}' cannot be used here ({reason}); use cpu, cuda or mps, as far as "
            "this machine and this torch have them."
        ) from None
    return device
