"""Methods and models as plain rows, for tables and for JSON; this imports the lab."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from fairweight.lab.compress.catalogue import Entry, ScheduleEntry, catalogue
from fairweight.lab.distill.registry import DistillationLoss, losses
from fairweight.lab.models import Architecture, architectures
from fairweight.specs.described import SpecField

# Recipes that begin with random weights, with the length of their training: on MNIST, 24 epochs
# are the 10,000 steps of Hooker et al., and 360 are eleven rounds and the training before them.
FROM_SCRATCH = {
    "agp-filters": "--epochs 240",
    "agp-weights": "--epochs 240",
    "gmp-random-init": "--epochs 100",
    "gmp-random-init-short": "--epochs 20",
    "zhu-gupta": "--epochs 24",
    "iterative-magnitude": "--epochs 360",
}


def method_rows() -> list[dict[str, Any]]:
    """Everything that `fairweight methods` lists, in its order."""
    return [
        *map(_row, catalogue()),
        *map(_row_of_loss, losses()),
        *map(_row_of_model, architectures()),
    ]


def _row(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "method": entry.method,
        "summary": entry.summary,
        "source": entry.source,
        "fields": _field_rows(entry.fields),
        "schedules": [_schedule_row(schedule) for schedule in entry.schedules],
        "example": _example(entry),
    }


def _row_of_loss(entry: DistillationLoss) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": "loss",
        "summary": entry.summary,
        "source": entry.source,
        "notes": f"Reads {entry.reads}; weighs {entry.weight:g} beside {entry.ce:g} of the "
        "cross-entropy." + (" Acts only in a stage before the training." if entry.initial else ""),
        "options": entry.options,
        "example": "fairweight compress models/dense-0 --method global-magnitude --sparsity 0.9 "
        f"--epochs 3 --lr 0.01 --distill {entry.name}",
    }


def _row_of_model(entry: Architecture) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": "model",
        "summary": entry.summary,
        "source": entry.source,
        "notes": inspect.getdoc(entry.builder) or "",
        "options": entry.defaults,
        "example": f"fairweight train --dataset cifar10 --data DIR --model {entry.name}",
    }


def _schedule_row(schedule: ScheduleEntry) -> dict[str, Any]:
    return {
        "name": schedule.name,
        "summary": schedule.summary,
        "updates": schedule.formula.updates,
        "removed": schedule.formula.removed,
        "fields": _field_rows(schedule.fields),
    }


def _field_rows(fields: Iterable[SpecField]) -> list[dict[str, Any]]:
    return [
        {
            "name": field.name,
            "type": field.type,
            "required": field.required,
            "default": field.default,
            "meaning": field.meaning,
        }
        for field in fields
    ]


def _example(entry: Entry) -> str:
    names = {field.name for field in entry.fields}
    told = f"--method {entry.name}" + (" --sparsity 0.9" if "sparsity" in names else "")
    if entry.name in FROM_SCRATCH:
        return f"fairweight train --dataset mnist --data DIR {told} {FROM_SCRATCH[entry.name]}"
    if entry.kind == "recipe":
        told += " --epochs 80 --lr 0.005"
    elif "dim" in names:
        told = told.replace("0.9", "0.5") + " --remove-channels"
    elif "indivisible" in names:
        told += " --method-option indivisible=leave"
    return f"fairweight compress models/dense-0 {told}"
