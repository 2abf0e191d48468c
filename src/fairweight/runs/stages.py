"""What stages do: the only place of `runs` that calls the lab."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.errors import InputError
from fairweight.runs.executor import Context
from fairweight.runs.runner import News, run
from fairweight.runs.stage import Stage, key_of
from fairweight.runs.store import Store
from fairweight.specs.toml import read_spec

if TYPE_CHECKING:
    from fairweight.specs.training import Distillation

MODEL, ONNX = "model", "model.onnx"
PREDICTIONS, VARIANT, TRAINING = "predictions.parquet", "variant.json", "train.parquet"
SIMILARITY = "similarity.json"


def train(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context
) -> None:
    """A model from its first weights, dense or pruned while it trains; the input teaches it."""
    from fairweight.lab.compression.registry import spec_from
    from fairweight.lab.models.registry import check_named
    from fairweight.lab.partition import prepare_once
    from fairweight.lab.prediction import training_table, write_table
    from fairweight.lab.training import train_model
    from fairweight.specs.data import Data
    from fairweight.specs.training import Model, Training

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
    from fairweight.lab.compression.registry import spec_from
    from fairweight.lab.partition import prepare_once
    from fairweight.lab.prediction import training_table, write_table
    from fairweight.lab.variants import compress_model
    from fairweight.specs.compression import Int8Dynamic, Int8Static
    from fairweight.specs.data import Data
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
    from fairweight.lab.partition import prepare_once
    from fairweight.lab.prediction import asked, data_of, predict_models, variants_table

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
    from fairweight.lab.partition import prepare_once
    from fairweight.lab.representations import compare_saved, similarity_row
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
    from fairweight.specs.training import Distillation

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


# One part of a prediction data set as a cube: the examples whose ids fall into it.

CUBE = "cube.parquet"


def count(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], room: Path, context: Context
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
    id_column = spec["options"]["id"]
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
        with align(rows, **spec["options"]) as aligned:
            write_cube(
                count(aligned),
                room / CUBE,
                groupings=aligned.groupings,
                baseline=aligned.baseline,
                key=spec["unit_key"],
            )


# Count a large prediction data set in parts, in processes or on a cluster; cubes add.

FUNCTION = "fairweight.runs.stages:count"


def count_in_parts(
    sources: Sequence[str],
    options: Mapping[str, Any],
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
    sources
        Parquet files or globs of a long table.
    options
        Keyword arguments of `fairweight.tables.align.align`; `groups` must be named, because what
        looks like a group could differ between parts.
    store
        A folder for the parts (on a cluster, a shared one); what is there is not counted again.
    workers, ray
        As for `fairweight.runs.runner.run`.
    """
    if options.get("groups") is None:
        raise InputError(
            "Counting in parts needs --groups, so that all parts have the same; name the group "
            "columns: --groups sex,age"
        )
    files = [str(Path(path).resolve()) for name in sources for path in _files(name)]
    for name in files:
        if options["id"] not in _columns(name):
            raise InputError(
                f"'{name}' has no column '{options['id']}', and parts are made by the examples' "
                "ids; name their column with --id, or leave --parts out."
            )
    held = [[name, Path(name).stat().st_size, Path(name).stat().st_mtime_ns] for name in files]
    shared = {"files": files, "options": dict(options), "parts": parts, "unit_key": unit_key}
    stages = []
    for part in range(parts):
        spec = {**shared, "part": part}
        key = key_of("count", {**spec, "held": held})
        stages.append(Stage(key, "count", FUNCTION, spec, (), f"part {part + 1} of {parts}"))
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
