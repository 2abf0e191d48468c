"""Checkpoints of a training run: tensors as safetensors, the rest as JSON, never pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from fairweight.base.files import atomic_directory
from fairweight.errors import InputError
from fairweight.lab.artifacts import write_tensors

WEIGHTS, STATE = "state.safetensors", "state.json"
COMPANIONS = ("pruner", "distiller", "weighting")


@dataclass
class Position:
    """How far a run has come, and its best epoch so far."""

    epoch: int = 0
    step: int = 0  # within the epoch
    best_epoch: int = -1
    best_accuracy: float = float("-inf")
    history: list[dict[str, float]] = field(default_factory=list)


def save_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    position: Position,
    best: Mapping[str, Tensor] | None,
    companions: Mapping[str, Mapping[str, Tensor]],
    run: Mapping[str, Any],
) -> None:
    """Write everything that the next step depends on; an older checkpoint stays until it is done.

    `companions` are the states of the pruner, the distiller and the weighting; `run` is what the
    run was asked to be: a checkpoint of another run is not continued.
    """
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    numbers: dict[str, float] = {}
    for index, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{index}.{name}"] = value
            elif value is not None:
                numbers[f"optimizer.{index}.{name}"] = value
    if best is not None:
        tensors |= {f"best.{name}": value for name, value in best.items()}
    for companion, own in companions.items():
        tensors |= {f"{companion}.{name}": value for name, value in own.items()}
    document = {
        "run": run,
        "epoch": position.epoch,
        "step": position.step,
        "best_epoch": position.best_epoch,
        "best_accuracy": position.best_accuracy if position.best_epoch >= 0 else None,
        "history": position.history,
        "numbers": numbers,
    }
    with atomic_directory(folder) as unfinished:
        held = {k: v.detach().contiguous().clone() for k, v in tensors.items()}
        write_tensors(unfinished / WEIGHTS, held)
        (unfinished / STATE).write_text(json.dumps(document), encoding="utf-8")


def load_checkpoint(
    folder: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    run: Mapping[str, Any],
) -> tuple[Position, dict[str, Tensor] | None, dict[str, dict[str, Tensor]]] | None:
    """Restore model and optimiser to where the run stopped; None if there is nothing to continue.

    Returns the position, the best weights so far and the companions' states.
    """
    if not (folder / STATE).is_file():
        return None
    try:
        document = json.loads((folder / STATE).read_text(encoding="utf-8"))
        tensors = load_file(folder / WEIGHTS)
    except (OSError, ValueError, SafetensorError) as error:
        raise InputError(
            f"The checkpoint {folder} cannot be read ({error}); delete it to train from the start."
        ) from None
    if document["run"] != json.loads(json.dumps(run)):
        raise InputError(
            f"The checkpoint {folder} is of another run (other settings, data or seed); name "
            "another folder, or delete it to train from the start."
        )

    parts: dict[str, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        prefix, _, rest = name.partition(".")
        parts.setdefault(prefix, {})[rest] = value
    model.load_state_dict(parts["model"])
    state: dict[int, dict[str, Any]] = {}
    for name, value in (*parts.get("optimizer", {}).items(), *document["numbers"].items()):
        index, key = name.removeprefix("optimizer.").split(".", 1)
        state.setdefault(int(index), {})[key] = value
    whole = optimizer.state_dict()
    optimizer.load_state_dict({**whole, "state": state})
    accuracy = document["best_accuracy"]
    position = Position(
        document["epoch"],
        document["step"],
        document["best_epoch"],
        float("-inf") if accuracy is None else accuracy,
        document["history"],
    )
    return position, parts.get("best"), {name: parts.get(name, {}) for name in COMPANIONS}
