"""What stages do: the only place of `runs` that calls the lab."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.runs.context import Context
from fairweight.specs.read_spec import read_spec

if TYPE_CHECKING:
    from fairweight.specs.distillation import Distillation

MODEL, ONNX = "model", "model.onnx"
PREDICTIONS, VARIANT, TRAINING = "predictions.parquet", "variant.json", "train.parquet"
SIMILARITY = "similarity.json"


def train(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context
) -> None:
    """A model from its first weights, dense or pruned while it trains; the input teaches it."""
    from fairweight.lab.compress.registry import spec_from
    from fairweight.lab.make.predicted import training_table, write_table
    from fairweight.lab.make.trained import train_model
    from fairweight.lab.models.registry import check_named
    from fairweight.lab.prepared_data import prepare_once
    from fairweight.specs.data import Data
    from fairweight.specs.model import Model
    from fairweight.specs.training import Training

    model = read_spec(Model, spec["model"], "The network")
    check_named(model.architecture, "The study")
    pruning = spec["pruning"]
    data = read_spec(Data, spec["data"], "The data")
    prepared = prepare_once(data, context.data)
    train_model(
        data,
        model,
        read_spec(Training, spec["training"], "The training"),
        room / MODEL,
        prepared=prepared,
        method=None if pruning is None else pruning["method"],
        pruning=None if pruning is None else spec_from(pruning),
        distillation=_distillation(spec),
        teacher=next((path / MODEL for path in inputs.values()), None),
        root=context.data,
        checkpoint=context.work / "training",
        progress=_told(context),
    )
    write_table(training_table(prepared.train), room / TRAINING)


def compress(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context
) -> None:
    """A compressed copy of the first input's model; the last one teaches it."""
    from fairweight.lab.artifacts import read_card
    from fairweight.lab.compress.registry import spec_from
    from fairweight.lab.make.compressed import compress_model
    from fairweight.lab.make.predicted import training_table, write_table
    from fairweight.lab.prepared_data import prepare_once
    from fairweight.specs.data import Data
    from fairweight.specs.quantization import Int8Dynamic, Int8Static
    from fairweight.specs.training import Training

    parent, *others = inputs.values()
    method = spec_from(spec["method"])
    quantised = isinstance(method, Int8Static | Int8Dynamic)
    finetune = spec["finetune"]
    data = read_spec(Data, spec.get("data") or read_card(parent / MODEL).data, "The data")
    prepared = prepare_once(data, context.data)
    compress_model(
        parent / MODEL,
        spec["method"]["method"],
        method,
        room / (ONNX if quantised else MODEL),
        training=None if finetune is None else read_spec(Training, finetune, "The finetuning"),
        root=context.data,
        prepared=prepared,
        rewind=spec["rewind"],
        remove=spec["remove_channels"],
        data=data,
        distillation=_distillation(spec),
        teacher=(others[-1] if others else parent) / MODEL,
        checkpoint=context.work / "training",
        progress=_told(context),
    )
    if "data" in spec:  # the copy's own, which no dense model was trained on
        write_table(training_table(prepared.train), room / TRAINING)


def predict(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context
) -> None:
    """What the one input's model answers, and of held-out ones its row of the variants table."""
    from fairweight.lab.make.predicted import asked, data_of, predict_models, variants_table
    from fairweight.lab.prepared_data import prepare_once

    (made,) = inputs.values()
    path = made / MODEL if (made / MODEL).is_dir() else made / ONNX
    members = asked([f"{spec['variant']}={path}"])
    prepared = prepare_once(data_of(members), context.data)
    part = prepared.part(spec["part"])
    predict_models(
        members,
        part,
        room / PREDICTIONS,
        scores=spec["scores"],
        progress=lambda done: context.progress(done, len(part)),
    )
    if spec["part"] != "test":
        return
    (row,) = variants_table(members, prepared).to_pylist()
    (room / VARIANT).write_text(json.dumps(row), encoding="utf-8")


def similarity(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context
) -> None:
    """How far the first input's representations are from those of the second."""
    from fairweight.lab.artifacts import read_card
    from fairweight.lab.prepared_data import prepare_once
    from fairweight.lab.similarity import compare_saved, similarity_row
    from fairweight.specs.data import Data
    from fairweight.specs.similarity import Similarity

    one, other = (path / MODEL for path in inputs.values())
    part = prepare_once(read_spec(Data, read_card(one).data, "The data"), context.data).test
    asked = read_spec(Similarity, spec, "The similarity")
    compared = compare_saved(
        one,
        other,
        part,
        spec=asked,
        progress=lambda done: context.progress(done, min(len(part), asked.examples or len(part))),
        refuse=False,
    )
    row = similarity_row(compared, asked.measure)
    (room / SIMILARITY).write_text(json.dumps(row), encoding="utf-8")


def _distillation(spec: Mapping[str, Any]) -> Distillation | None:
    from fairweight.specs.distillation import Distillation

    given = spec.get("distill")
    return None if given is None else read_spec(Distillation, given, "The distillation")


def _told(context: Context) -> Any:
    def told(numbers: Mapping[str, float], done: int, total: int) -> None:
        words = [f"loss {numbers['loss']:.3f}"] if "loss" in numbers else []
        words += [
            f"{name} {100 * numbers[name]:.1f} %"
            for name in ("accuracy", "sparsity")
            if numbers.get(name)
        ]
        context.progress(done, total, " · ".join(words))

    return told
