"""A finished model as a folder: weights, card with its measured row, and ONNX if wanted."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from fairweight.lab.artifacts import save
from fairweight.lab.card import Card
from fairweight.lab.export import to_onnx
from fairweight.lab.measure import measure

ONNX = "model.onnx"


def write_model(
    model: nn.Module,
    folder: Path,
    card: Card,
    example: Tensor,
    *,
    onnx: bool,
    overwrite: bool = False,
) -> Card:
    """Measure a model and write it; an ONNX file of an earlier model does not stay behind."""
    card = replace(card, measured=plain_row(measure(model, example, card=card)))

    def exported(room: Path, written: Card) -> None:
        to_onnx(model, example, room / ONNX, card=written)

    return save(model, folder, card, beside=exported if onnx else None, overwrite=overwrite)


def plain_row(row: dict[str, Any]) -> dict[str, Any]:
    """A measured row as JSON can hold it: what is undefined is None."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
