"""A study's predictions as a few small files, from which a lost store is filled again.

A file holds what the models of one member of one experiment predicted: classes, and where the
experiment is audited probabilities in thousandths, by `example_id`, without labels, groups or
images. Models are too large to be kept with a project; what they predicted is not.
"""

from __future__ import annotations

import base64
import io
import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fairweight.base.files import atomic_file
from fairweight.data.dataset import Images
from fairweight.errors import InputError
from fairweight.lab.prediction_rows import CLASSES_KEY
from fairweight.runs.plan import Plan, PlannedModel
from fairweight.runs.stage import Stage
from fairweight.runs.stages import PREDICTIONS, SIMILARITY, VARIANT
from fairweight.runs.store import Store
from fairweight.specs.data import Data

MODELS = b"fairweight_models"
THOUSAND = 1000
LARGEST = 950_000  # bytes of one file; what is more goes into a second one
FORMAT = 1


@dataclass(frozen=True)
class Packed:
    """What one model predicted about one part of the data, as it is packed.

    Parameters
    ----------
    key
        Of the stage that asked it.
    ids
        Of the examples, in order; with tasks, every example has a row per task.
    predictions
        Places in `classes`, or 0 and 1 of each task.
    thousandths
        Probabilities, (rows, 1) of the prediction (of two values: of the positive one) or
        (rows, classes); None where nobody needs them.
    beside
        Further outputs of stages: the model's row of the variants table, its distances.
    """

    key: str
    variant: str
    seed: int
    ids: tuple[str, ...]
    tasks: tuple[str, ...]
    classes: tuple[str, ...]
    predictions: NDArray[np.uint16]
    thousandths: NDArray[np.uint16] | None
    beside: Mapping[str, Any] = field(default_factory=dict)


# Packing: what a store holds of a member, into files.


def pack(plan: Plan, store: Store, folder: Path) -> list[Path]:
    """Write the members that are complete in the store and in no file of the folder yet.

    Returns the files that were written, `STUDY-EXPERIMENT-SEED.parquet`.
    """
    done, held = store.done(), {one.key for one in _read_all(folder, arrays=False)}
    written: list[Path] = []
    for name, experiment in plan.experiments.items():
        models = plan.of(name)
        for seed in dict.fromkeys(model.seed for model in models):
            own = [model for model in models if model.seed == seed]
            stages = [key for model in own for key in _stages_of(model)]
            if not all(key in done for key in stages):
                continue
            packed = [
                _packed(plan.stages[key], model, store, scores=experiment.audit)
                for model in own
                for key in (model.asked_by, model.validated_by)
                if key is not None and key not in held
            ]
            held |= {one.key for one in packed}
            by_rows: dict[tuple[Any, ...], list[Packed]] = {}
            for one in packed:
                by_rows.setdefault((one.ids, one.tasks, one.classes), []).append(one)
            for number, alike in enumerate(by_rows.values()):
                stem = f"{plan.study.name}-{name}-{seed}" + ("-validation" if number else "")
                written += _write(alike, folder, stem)
    return written


def _stages_of(model: PlannedModel) -> list[str]:
    """The stages that are packed of a model."""
    found = (model.asked_by, model.validated_by, model.compared_by)
    return [key for key in found if key is not None]


def _packed(stage: Stage, model: PlannedModel, store: Store, *, scores: bool) -> Packed:
    folder = store.read(stage.key)
    table = pq.read_table(folder / PREDICTIONS)
    names = table.column_names
    tasks = tuple(dict.fromkeys(table["task"].to_pylist())) if "task" in names else ()
    ids = table["example_id"].to_pylist()[:: max(1, len(tasks))]
    said, classes = table["prediction"].to_pylist(), ("0", "1")
    lists = "scores" in names and not tasks
    if lists:  # in the order of the file, which its metadata say
        classes = tuple(json.loads(table.schema.metadata[CLASSES_KEY]))
    elif not tasks:
        classes = tuple(sorted({*map(str, said), *map(str, table["label"].to_pylist())}))
    places = {name: place for place, name in enumerate(classes)}
    codes = np.array([places[str(one)] for one in said], dtype=np.uint16)
    thousandths = None
    if scores:
        column = table["scores"].combine_chunks().flatten() if lists else table["score"]
        values = np.asarray(column.to_numpy(), dtype=np.float64).reshape(len(table), -1)
        thousandths = np.rint(values * THOUSAND).astype(np.uint16)
    beside: dict[str, Any] = {}
    if (folder / VARIANT).is_file():
        beside[VARIANT] = json.loads((folder / VARIANT).read_text(encoding="utf-8"))
    if model.compared_by is not None and stage.spec["part"] == "test":
        text = (store.read(model.compared_by) / SIMILARITY).read_text(encoding="utf-8")
        beside[SIMILARITY] = [model.compared_by, json.loads(text)]
    return Packed(
        stage.key,
        model.variant,
        model.seed,
        tuple(map(str, ids)),
        tasks,
        classes,
        codes,
        thousandths,
        beside,
    )


def _write(models: Sequence[Packed], folder: Path, stem: str) -> list[Path]:
    """One file, or two of half the models each where it would be too large."""
    if not models:
        return []
    first = models[0]
    columns: dict[str, Any] = {
        "example_id": np.repeat(np.array(first.ids, dtype=object), max(1, len(first.tasks)))
    }
    for number, one in enumerate(models):
        # Models of a member mostly agree: the difference from the first compresses well.
        apart = one.predictions if number == 0 else one.predictions ^ first.predictions
        columns[f"{number}.prediction"] = apart
        for place in range(0 if one.thousandths is None else one.thousandths.shape[1]):
            columns[f"{number}.{place}"] = one.thousandths[:, place]  # type: ignore[index]
    about = {
        "format": FORMAT,
        "tasks": first.tasks,
        "classes": first.classes,
        "models": [
            {"key": one.key, "variant": one.variant, "seed": one.seed, **one.beside}
            for one in models
        ],
    }
    # Parquet does not compress metadata, and a sweep has hundreds of models.
    text = base64.b64encode(zlib.compress(json.dumps(about).encode(), 9))
    table = pa.table(columns).replace_schema_metadata({MODELS: text})
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="zstd", compression_level=19)
    if len(stream.getbuffer()) > LARGEST and len(models) > 1:
        half = len(models) // 2
        return _write(models[:half], folder, stem) + _write(models[half:], folder, f"{stem}b")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem}.parquet"
    with atomic_file(path, "wb") as file:
        file.write(stream.getvalue())
    return [path]


# Restoring: stages of a store from files.


def restore(
    plan: Plan,
    store: Store,
    folder: Path,
    root: Path | None,
    *,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> int:
    """Fill a store with the predictions of a folder's files, as far as the plan asks for them.

    Labels and groups are read from the data again. Returns how many stages were restored.

    Parameters
    ----------
    root
        The folder with data sets.
    progress
        Called with what is done, how many models are done, and of how many.
    """
    done = store.done()
    planned = {
        key: model
        for model in plan.models
        for key in (model.asked_by, model.validated_by)
        if key is not None and key not in done
    }
    if not planned or not folder.is_dir():
        return 0
    found = [one for one in _read_all(folder, only=set(planned)) if one.key in planned]
    for number, one in enumerate(found):
        model = planned[one.key]
        experiment = plan.experiments[model.experiment]
        _restore(plan.stages[one.key], one, experiment.data, store, root)
        if SIMILARITY in one.beside and model.compared_by is not None:
            key, row = one.beside[SIMILARITY]
            if key == model.compared_by:
                text = json.dumps(row)
                store.write(plan.stages[key], partial(_put, SIMILARITY, text))
        progress("reading packed predictions", number + 1, len(found))
    return len(found)


def needed(stages: Iterable[Stage], done: set[str]) -> list[Stage]:
    """The stages that are still to be made: without models that nothing left to do reads."""
    known = {stage.key: stage for stage in stages}
    read = {key for stage in known.values() for key in stage.inputs}
    ahead = [key for key in known if key not in done and key not in read]
    wanted: set[str] = set()
    while ahead:
        key = ahead.pop()
        if key not in wanted and key not in done:
            wanted.add(key)
            ahead.extend(known[key].inputs)
    return [stage for stage in known.values() if stage.key in wanted]


def _restore(stage: Stage, one: Packed, data: Data, store: Store, root: Path | None) -> None:
    from fairweight import lab
    from fairweight.lab.loaders import Loaded
    from fairweight.lab.partition import prepare_once

    part = prepare_once(data, root).part(stage.spec["part"])
    outputs = _outputs(one, part)
    place = 0

    def run(images: Any) -> NDArray[Any]:
        nonlocal place
        place += len(images)
        return outputs[place - len(images) : place]

    def write(room: Path) -> None:
        model = Loaded(run, part.classes, bool(one.tasks), "probabilities")
        lab.predict(
            {one.variant: {one.seed: model}},
            part,
            out=room / PREDICTIONS,
            scores=stage.spec["scores"],
        )
        if VARIANT in one.beside:
            _put(VARIANT, json.dumps(one.beside[VARIANT]), room)

    store.write(stage, write)


def _outputs(one: Packed, part: Images) -> NDArray[Any]:
    """What the model would say about the part's examples, in their order."""
    places = {id: place for place, id in enumerate(one.ids)}
    wanted = [str(id) for id in part.example_id.tolist()]
    known = one.tasks or one.classes
    if set(wanted) != places.keys() or not set(known) <= set(part.classes):
        raise InputError(
            f"The packed predictions of '{one.variant}' are about other examples than the data "
            "here; give the same data set and the same study, or leave --packed out."
        )
    rows = np.array([places[id] for id in wanted])
    said = one.predictions.reshape(len(one.ids), -1)[rows]
    shares = None
    if one.thousandths is not None:
        shares = one.thousandths.reshape(len(one.ids), -1)[rows] / THOUSAND
    if one.tasks:
        if shares is None:
            return said.astype(np.int64)
        # Rounding must not take a prediction to the other side.
        return np.where(said == 1, np.maximum(shares, 0.5 + 1e-6), np.minimum(shares, 0.5))
    own = np.array([part.classes.index(name) for name in one.classes])
    chosen = own[said[:, 0]]
    if shares is None:
        return chosen.astype(np.int64)
    everyone, classes = np.arange(len(rows)), len(part.classes)
    if shares.shape[1] > 1:
        full = np.zeros((len(rows), classes))
        full[:, own] = shares
        full[everyone, chosen] = full.max(axis=1) + 1e-6  # the prediction itself stays first
        return full / full.sum(axis=1, keepdims=True)
    # Of two classes the score may be that of the other one, which is the smaller.
    score = np.maximum(shares, 1 - shares) if classes == 2 else shares
    full = np.repeat((1 - score) / max(classes - 1, 1), classes, axis=1)
    full[everyone, chosen] = np.maximum(score[:, 0], full[everyone, chosen] + 1e-6)
    return full / full.sum(axis=1, keepdims=True)


def _put(name: str, text: str, room: Path) -> None:
    (room / name).write_text(text, encoding="utf-8")


def _read_all(
    folder: Path, *, arrays: bool = True, only: set[str] | None = None
) -> Iterable[Packed]:
    """The models of every packed file of a folder."""
    for path in sorted(folder.glob("*.parquet")):
        try:
            text = (pq.read_schema(path).metadata or {})[MODELS]
            about = json.loads(zlib.decompress(base64.b64decode(text)))
            models = about["models"]
            if only is not None and not only & {one["key"] for one in models}:
                continue
            table = pq.read_table(path) if arrays else None
        except (OSError, pa.ArrowException, KeyError, ValueError, zlib.error) as error:
            raise InputError(
                f"'{path}' is no file of packed predictions ({error}); remove it, or copy it again."
            ) from error
        tasks, classes = tuple(about["tasks"]), tuple(about["classes"])
        first: NDArray[np.uint16] | None = None
        for number, one in enumerate(models):
            beside = {name: one[name] for name in (VARIANT, SIMILARITY) if name in one}
            codes: NDArray[np.uint16] = np.zeros(0, np.uint16)
            ids: tuple[str, ...] = ()
            thousandths: NDArray[np.uint16] | None = None
            if table is not None:
                codes = table[f"{number}.prediction"].to_numpy().astype(np.uint16)
                codes = codes if first is None else codes ^ first
                first = codes if first is None else first
                ids = tuple(table["example_id"].to_pylist()[:: max(1, len(tasks))])
                width = sum(name.startswith(f"{number}.") for name in table.column_names) - 1
                if width:
                    columns = [table[f"{number}.{place}"].to_numpy() for place in range(width)]
                    thousandths = np.stack(columns, axis=1).astype(np.uint16)
            yield Packed(
                one["key"],
                one["variant"],
                one["seed"],
                ids,
                tasks,
                classes,
                codes,
                thousandths,
                beside,
            )
