"""What stages of the lab do: train, compress, predict, and compare representations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from fairweight import lab
from fairweight.lab.artifacts import read_card
from fairweight.lab.compression.registry import base_method, spec_from
from fairweight.lab.models.registry import check_named
from fairweight.lab.partition import prepare_once
from fairweight.lab.prediction import (
    data_of,
    model_files,
    training_table,
    variants_table,
    write_table,
)
from fairweight.lab.representations import similarity_row
from fairweight.lab.weights import pretrained_file
from fairweight.runs.executor import StageContext
from fairweight.runs.stage import MODEL, ONNX, PREDICTIONS, SIMILARITY, TRAINING, VARIANT
from fairweight.specs.data import Data
from fairweight.specs.toml import read_spec
from fairweight.specs.training import Model


def train(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], folder: Path, context: StageContext
) -> None:
    """Train a model from its first weights, dense or pruned on the way; an input is its teacher."""
    check_named(spec["model"]["architecture"], "The study")
    data = read_spec(Data, spec["data"], "The data")
    model = read_spec(Model, spec["model"], "The network")
    prepared = prepare_once(data, context.data)
    pretrained = model.init != "random"
    lab.train(
        data,
        model,
        spec["training"],
        folder / MODEL,
        pruning=spec["pruning"],
        distillation=spec.get("distill"),
        teacher=next((path / MODEL for path in inputs.values()), None),
        weights=pretrained_file(model, context.weights).path if pretrained else None,
        root=context.data,
        prepared=prepared,
        checkpoint=context.work / "training",
        progress=partial(_report, context),
    )
    write_table(training_table(prepared.train), folder / TRAINING)


def compress(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], folder: Path, context: StageContext
) -> None:
    """Compress the first input's model; the last input is its teacher."""
    parent, *others = inputs.values()
    data = read_spec(Data, spec.get("data") or read_card(parent / MODEL).data, "The data")
    prepared = prepare_once(data, context.data)
    # Every field, as the study's key means it: a missing one would be filled as for a user.
    method = {"method": spec["method"]["method"], **asdict(spec_from(spec["method"]))}
    lab.compress(
        parent / MODEL,
        method,
        data,
        out=folder / (ONNX if base_method(spec["method"]["method"]).output == "onnx" else MODEL),
        training=spec["finetune"],
        rewind=spec["rewind"],
        remove_channels=spec["remove_channels"],
        distillation=spec.get("distill"),
        teacher=(others[-1] if others else parent) / MODEL,
        root=context.data,
        prepared=prepared,
        checkpoint=context.work / "training",
        progress=partial(_report, context),
    )
    if "data" in spec:  # the copy's own, which no dense model was trained on
        write_table(training_table(prepared.train), folder / TRAINING)


def predict(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], folder: Path, context: StageContext
) -> None:
    """Predictions of the input's model; on held-out examples also its row of the variants table."""
    (made,) = inputs.values()
    path = made / MODEL if (made / MODEL).is_dir() else made / ONNX
    members = model_files([f"{spec['variant']}={path}"])
    prepared = prepare_once(data_of(members), context.data)
    part = prepared.part(spec["part"])
    lab.predict(
        members,
        part,
        out=folder / PREDICTIONS,
        scores=spec["scores"],
        progress=lambda done: context.progress(done, len(part)),
    )
    if spec["part"] != "test":
        return
    (row,) = variants_table(members, prepared).to_pylist()
    (folder / VARIANT).write_text(json.dumps(row), encoding="utf-8")


def similarity(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], folder: Path, context: StageContext
) -> None:
    """Distance between the representations of the two inputs' models."""
    one, other = (path / MODEL for path in inputs.values())
    part = prepare_once(read_spec(Data, read_card(one).data, "The data"), context.data).test
    found = lab.similarity(one, other, part, spec=spec, progress=context.progress, refuse=False)
    (folder / SIMILARITY).write_text(
        json.dumps(similarity_row(found, spec["measure"])), encoding="utf-8"
    )


def _report(context: StageContext, numbers: Mapping[str, float], done: int, total: int) -> None:
    """Report the progress of a training, with its loss, accuracy and sparsity."""
    words = [f"loss {numbers['loss']:.3f}"] if "loss" in numbers else []
    words += [
        f"{name} {100 * numbers[name]:.1f} %"
        for name in ("accuracy", "sparsity")
        if numbers.get(name)
    ]
    context.progress(done, total, " · ".join(words))
