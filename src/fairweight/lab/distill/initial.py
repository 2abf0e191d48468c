"""The stage before a training, in which a student's features follow the teacher's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from torch import nn

from fairweight.lab.batches import Examples, Scaling
from fairweight.lab.checkpoint import STATE
from fairweight.lab.compress.pruner import Pruner
from fairweight.lab.distill.distiller import Distiller
from fairweight.lab.train import Progress, train
from fairweight.specs.training import Training


def initial_folder(checkpoint: Path) -> Path:
    """Where this stage's checkpoint is: beside the training's, which replaces its whole folder."""
    return checkpoint.with_name(f"{checkpoint.name}-initial")


def initialise(
    network: nn.Module,
    data: Examples,
    training: Training,
    distiller: Distiller | None,
    *,
    pruner: Pruner | None,
    scaling: Scaling | None,
    device: str,
    checkpoint: Path,
    save_every: float,
    progress: Progress | None,
) -> None:
    """Train the features of a network in place; nothing where no loss asks for it.

    What a schedule prunes before the first epoch is pruned before this stage too. Where the
    training itself was begun already, this stage is over.
    """
    if distiller is None or (checkpoint / STATE).is_file():
        return
    if pruner is not None:
        pruner.before_training(network)
    stage = replace(
        training,
        epochs=distiller.spec.initial_epochs,
        schedule="constant",
        milestones=(),
        warmup_epochs=0.0,
    )
    train(
        network,
        data,
        None,
        stage,
        distiller=distiller,
        scaling=scaling,
        device=device,
        checkpoint=initial_folder(checkpoint),
        save_every=save_every,
        progress=progress,
    )
