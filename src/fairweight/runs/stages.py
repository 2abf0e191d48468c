"""Kinds of stages that call the lab, and counting in parts: what they do, read and cost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

from fairweight.errors import InputError
from fairweight.runs.cost import Cost, Unit, asking_seconds, training_cost
from fairweight.runs.executor import StageContext
from fairweight.runs.runner import News, run
from fairweight.runs.stage import STAGES, Stage, key_of, stage_kind
from fairweight.runs.store import Store
from fairweight.specs.toml import read_spec
from fairweight.tables.spec import TableSpec, sources_of

MODEL, ONNX = "model", "model.onnx"
PREDICTIONS, VARIANT, TRAINING = "predictions.parquet", "variant.json", "train.parquet"
SIMILARITY = "similarity.json"
MODELS = ("train", "compress")  # kinds that write a model

# Measured on the 3,338 stages of prune-responsibly (LeNet and a narrow VGG-11, two workers on two
# busy cores), which took 1.9 h. With 1 s to begin any stage the estimate was 2.2 h, and 2 to 6
# times too long for predictions (LeNet, 10,000 examples: 1.5 s for 0.6 s). With these it is 1.8 h,
# and within 30 % for each of its seven experiments.
START = 0.8  # seconds for a training's data and inputs, and for writing the model
ASK = 0.1  # the same for predictions
SPECTRA = 3.0  # eigenvalues of representations
ROW_BYTES = 12  # of predictions, compressed; with scores 4 more per class
PARAMETER_BYTES = 4.5  # of a model on disk


def _train_cost(spec: Mapping[str, Any], unit: Unit) -> Cost:
    taught = spec.get("distill") is not None
    begun = Cost(START, PARAMETER_BYTES * unit.n_params)
    return begun + training_cost(spec["training"], unit, taught=taught)


@stage_kind("train", reads=MODELS, cost=_train_cost)
def train(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: StageContext
) -> None:
    """A model from its first weights, dense or pruned while it trains; the input teaches it."""
    from fairweight import lab
    from fairweight.lab.models.registry import check_named
    from fairweight.lab.partition import prepare_once
    from fairweight.lab.prediction import training_table, write_table
    from fairweight.lab.weights import pretrained_file
    from fairweight.specs.data import Data
    from fairweight.specs.training import Model

    check_named(spec["model"]["architecture"], "The study")
    data = read_spec(Data, spec["data"], "The data")
    model = read_spec(Model, spec["model"], "The network")
    prepared = prepare_once(data, context.data)
    pretrained = model.init != "random"
    lab.train(
        data,
        model,
        spec["training"],
        room / MODEL,
        pruning=spec["pruning"],
        distillation=spec.get("distill"),
        teacher=next((path / MODEL for path in inputs.values()), None),
        weights=pretrained_file(model, context.weights).path if pretrained else None,
        root=context.data,
        prepared=prepared,
        checkpoint=context.work / "training",
        progress=_told(context),
    )
    write_table(training_table(prepared.train), room / TRAINING)


def _compress_cost(spec: Mapping[str, Any], unit: Unit) -> Cost:
    from fairweight.lab.compression.registry import base_method

    method, finetune = base_method(spec["method"]["method"]), spec["finetune"]
    size = PARAMETER_BYTES * unit.n_params * method.weight_bits / 32
    begun = Cost(START + method.seconds, size)
    taught = spec.get("distill") is not None
    return begun if finetune is None else begun + training_cost(finetune, unit, taught=taught)


@stage_kind("compress", reads=MODELS, cost=_compress_cost)
def compress(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: StageContext
) -> None:
    """A compressed copy of the first input's model; the last one teaches it."""
    from fairweight import lab
    from fairweight.lab.artifacts import read_card
    from fairweight.lab.compression.registry import base_method
    from fairweight.lab.partition import prepare_once
    from fairweight.lab.prediction import training_table, write_table
    from fairweight.specs.data import Data

    parent, *others = inputs.values()
    data = read_spec(Data, spec.get("data") or read_card(parent / MODEL).data, "The data")
    prepared = prepare_once(data, context.data)
    lab.compress(
        parent / MODEL,
        spec["method"],
        data,
        out=room / (ONNX if base_method(spec["method"]["method"]).output == "onnx" else MODEL),
        training=spec["finetune"],
        rewind=spec["rewind"],
        remove_channels=spec["remove_channels"],
        distillation=spec.get("distill"),
        teacher=(others[-1] if others else parent) / MODEL,
        root=context.data,
        prepared=prepared,
        checkpoint=context.work / "training",
        progress=_told(context),
    )
    if "data" in spec:  # the copy's own, which no dense model was trained on
        write_table(training_table(prepared.train), room / TRAINING)


def _predict_cost(spec: Mapping[str, Any], unit: Unit) -> Cost:
    row = ROW_BYTES + (4 * unit.classes if spec["scores"] else 0)
    seconds = ASK + unit.n_test * unit.predict_s
    return Cost(seconds, row * unit.n_test, asking_seconds(unit.n_test, unit.flops))


@stage_kind("predict", reads=MODELS, cost=_predict_cost)
def predict(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: StageContext
) -> None:
    """What the one input's model answers, and of held-out ones its row of the variants table."""
    from fairweight import lab
    from fairweight.lab.partition import prepare_once
    from fairweight.lab.prediction import asked, data_of, variants_table

    (made,) = inputs.values()
    path = made / MODEL if (made / MODEL).is_dir() else made / ONNX
    members = asked([f"{spec['variant']}={path}"])
    prepared = prepare_once(data_of(members), context.data)
    part = prepared.part(spec["part"])
    lab.predict(
        members,
        part,
        out=room / PREDICTIONS,
        scores=spec["scores"],
        progress=lambda done: context.progress(done, len(part)),
    )
    if spec["part"] != "test":
        return
    (row,) = variants_table(members, prepared).to_pylist()
    (room / VARIANT).write_text(json.dumps(row), encoding="utf-8")


def _similarity_cost(spec: Mapping[str, Any], unit: Unit) -> Cost:
    asked = 2 * min(spec["examples"] or unit.n_test, unit.n_test)
    seconds = START + SPECTRA + asked * unit.predict_s
    return Cost(seconds, 1e3, asking_seconds(asked, unit.flops))


@stage_kind("similarity", reads=MODELS, cost=_similarity_cost)
def similarity(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: StageContext
) -> None:
    """How far the first input's representations are from those of the second."""
    from fairweight import lab
    from fairweight.lab.artifacts import read_card
    from fairweight.lab.partition import prepare_once
    from fairweight.lab.representations import similarity_row
    from fairweight.specs.data import Data

    one, other = (path / MODEL for path in inputs.values())
    part = prepare_once(read_spec(Data, read_card(one).data, "The data"), context.data).test
    found = lab.similarity(one, other, part, spec=spec, progress=context.progress, refuse=False)
    (room / SIMILARITY).write_text(
        json.dumps(similarity_row(found, spec["measure"])), encoding="utf-8"
    )


def _told(context: StageContext) -> Any:
    def told(numbers: Mapping[str, float], done: int, total: int) -> None:
        words = [f"loss {numbers['loss']:.3f}"] if "loss" in numbers else []
        words += [
            f"{name} {100 * numbers[name]:.1f} %"
            for name in ("accuracy", "sparsity")
            if numbers.get(name)
        ]
        context.progress(done, total, " · ".join(words))

    return told


# One part of a prediction data set as a cube: the examples whose ids fall into it.

CUBE = "cube.parquet"


@stage_kind("count", cost=lambda spec, unit: Cost(0.0, 0.0))
def count(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: StageContext
) -> None:
    """Count the examples of one part; every file is read, and only these rows are kept."""
    import duckdb

    from fairweight.auditing.counts.cube_file import write_cube
    from fairweight.auditing.counts.group_by import count
    from fairweight.tables.align import align
    from fairweight.tables.canonical import canonical_sql
    from fairweight.tables.connection import literal, quote

    files = ", ".join(literal(name) for name in spec["files"])
    table = f"read_parquet([{files}], union_by_name=true)"
    tables = TableSpec.from_json(spec["tables"])
    id_column = tables.id
    with duckdb.connect() as connection:
        described = connection.execute(f"DESCRIBE FROM {table}").fetchall()
        kind = next((str(row[1]) for row in described if row[0] == id_column), "VARCHAR")
        # By canonical text, so that an id is in one part however it is written.
        rows = connection.sql(
            f"SELECT * FROM {table} WHERE hash({canonical_sql(quote(id_column), kind)}) "
            f"% {int(spec['parts'])} = {int(spec['part'])}"
        )
        if not rows.limit(1).fetchall():
            raise InputError(
                f"Part {spec['part'] + 1} of {spec['parts']} has no example; count in fewer parts "
                "(--parts)."
            )
        with align(replace(tables, sources=sources_of(rows))) as aligned:
            write_cube(
                count(aligned),
                room / CUBE,
                groupings=aligned.groupings,
                baseline=aligned.baseline,
                key=spec["unit_key"],
            )


# Count a large prediction data set in parts, in processes or on a cluster; cubes add.


def count_in_parts(
    tables: TableSpec,
    *,
    parts: int,
    store: Path,
    unit_key: str = "",
    workers: int | None = None,
    ray: str | None = None,
    progress: Any = None,
) -> list[Path]:
    """Cubes of all parts; together they are the cube of the whole.

    Examples are dealt out by a hash of their ids, so the rows of one example (of all models and
    tasks) are in one part, however the files are divided.

    Parameters
    ----------
    tables
        Its sources are Parquet files or globs of a long table. `groups` must be named, because
        what looks like a group could differ between parts.
    store
        A folder for the parts (on a cluster, a shared one); what is there is not counted again.
    workers, ray
        As for `fairweight.runs.runner.run`.
    """
    if tables.groups is None:
        raise InputError(
            "Counting in parts needs --groups, so that all parts have the same; name the group "
            "columns: --groups sex,age"
        )
    named = [ref.word() for ref in tables.sources]
    files = [str(Path(path).resolve()) for name in named for path in _files(name)]
    for name in files:
        if tables.id not in _columns(name):
            raise InputError(
                f"'{name}' has no column '{tables.id}', and parts are made by the examples' "
                "ids; name their column with --id, or leave --parts out."
            )
    held = [[name, Path(name).stat().st_size, Path(name).stat().st_mtime_ns] for name in files]
    shared = {"files": files, "tables": tables.to_json(), "parts": parts, "unit_key": unit_key}
    stages = []
    for part in range(parts):
        spec = {**shared, "part": part}
        key = key_of("count", {**spec, "held": held})
        stages.append(
            Stage(key, "count", STAGES["count"].address, spec, (), f"part {part + 1} of {parts}")
        )
    room = Store(store)
    room.forget_failures([stage.key for stage in stages])

    def told(news: News) -> None:
        if progress is not None:
            progress("counting", news.finished, news.stages)

    outcome = run(stages, room, workers=workers, ray=ray, progress=told)
    if outcome.stopped:
        raise KeyboardInterrupt
    for key in outcome.failed:
        last = str(room.failed()[key]["traceback"]).strip().splitlines()[-1]
        raise InputError(last.partition(": ")[2] or last)
    return [room.read(stage.key) / CUBE for stage in stages]


def _columns(name: str) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names: list[str] = pq.read_schema(name).names
    except (OSError, pa.ArrowException):
        raise InputError(
            f"'{name}' is not a complete Parquet file (cut off, or still being written); write or "
            "copy it again."
        ) from None
    return names


def _files(name: str) -> list[str]:
    found = [name] if Path(name).is_file() else sorted(glob(name, recursive=True))
    if not found:
        raise InputError(f"There is no file '{name}'; check the path.")
    others = [path for path in found if Path(path).suffix != ".parquet"]
    if others:
        raise InputError(
            f"'{others[0]}' is no Parquet file; counting in parts reads Parquet only: leave "
            "--parts out, or convert it."
        )
    return found
