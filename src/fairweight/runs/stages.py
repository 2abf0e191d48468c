"""What stages do: the only place of `runs` that calls the lab."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.runs.context import Context
from fairweight.specs.read_spec import read_spec

if TYPE_CHECKING:
    from fairweight.lab.prepared_data import Prepared

MODEL, ONNX = "model", "model.onnx"
PREDICTIONS, VARIANT, TRAINING = "predictions.parquet", "variant.json", "train.parquet"


def train(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context
) -> None:
    """A model from its first weights, dense or pruned while it trains."""
    from fairweight.lab.compress.registry import spec_from
    from fairweight.lab.make.predicted import training_table, write_table
    from fairweight.lab.make.trained import train_model
    from fairweight.specs.data import Data
    from fairweight.specs.model import Model
    from fairweight.specs.training import Training

    pruning = spec["pruning"]
    prepared = _prepared(json.dumps(spec["data"], sort_keys=True), context.data)
    train_model(
        read_spec(Data, spec["data"], "The data"),
        read_spec(Model, spec["model"], "The network"),
        read_spec(Training, spec["training"], "The training"),
        room / MODEL,
        prepared=prepared,
        method=None if pruning is None else pruning["method"],
        pruning=None if pruning is None else spec_from(pruning),
        checkpoint=context.work / "training",
        progress=_told(context),
    )
    write_table(training_table(prepared.train), room / TRAINING)


def compress(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context
) -> None:
    """A compressed copy of the one input's model."""
    from fairweight.lab.artifacts import read_card
    from fairweight.lab.compress.registry import spec_from
    from fairweight.lab.make.compressed import compress_model
    from fairweight.specs.quantization import Int8Dynamic, Int8Static
    from fairweight.specs.training import Training

    (parent,) = inputs.values()
    method = spec_from(spec["method"])
    quantised = isinstance(method, Int8Static | Int8Dynamic)
    finetune = spec["finetune"]
    data = read_card(parent / MODEL).data
    compress_model(
        parent / MODEL,
        spec["method"]["method"],
        method,
        room / (ONNX if quantised else MODEL),
        training=None if finetune is None else read_spec(Training, finetune, "The finetuning"),
        prepared=_prepared(json.dumps(data, sort_keys=True), context.data),
        rewind=spec["rewind"],
        remove=spec["remove_channels"],
        checkpoint=context.work / "training",
        progress=_told(context),
    )


def predict(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context
) -> None:
    """What the one input's model answers, and its row of the variants table."""
    from fairweight.lab.make.predicted import asked, data_of, predict_models, variants_table

    (made,) = inputs.values()
    path = made / MODEL if (made / MODEL).is_dir() else made / ONNX
    members = asked([f"{spec['variant']}={path}"])
    data = json.dumps(_plain(data_of(members)), sort_keys=True)
    prepared = _prepared(data, context.data)
    part = prepared.part(spec["part"])
    predict_models(
        members,
        part,
        room / PREDICTIONS,
        scores=spec["scores"],
        progress=lambda done: context.progress(done, len(part)),
    )
    (row,) = variants_table(members, prepared).to_pylist()
    (room / VARIANT).write_text(json.dumps(row), encoding="utf-8")


@lru_cache(maxsize=2)
def _prepared(data: str, root: Path | None) -> Prepared:
    """The parts of a data set, which many stages of a process share."""
    from fairweight.lab.prepared_data import prepare
    from fairweight.specs.data import Data

    return prepare(read_spec(Data, json.loads(data), "The data"), root)


def _plain(data: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(data)


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
