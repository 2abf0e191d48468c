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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fairweight import lab
from fairweight.base.files import atomic_file
from fairweight.data.dataset import Images
from fairweight.errors import InputError
from fairweight.lab.loaders import Loaded
from fairweight.lab.partition import prepare_once
from fairweight.lab.prediction_rows import CLASSES_KEY
from fairweight.runs.plan import PlannedModel, StudyPlan
from fairweight.runs.stage import PREDICTIONS, SIMILARITY, VARIANT, Stage
from fairweight.runs.store import Store
from fairweight.specs.data import Data

MODELS = b"fairweight_models"
THOUSAND = 1000
LARGEST = 950_000  # bytes of one file; what is more goes into a second one
FORMAT = 1


@dataclass(frozen=True)
class Packed:
    """Packed predictions of one model on one part of the data.

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
    row
        The model's row of the variants table; None of validation examples.
    """

    key: str
    variant: str
    seed: int
    ids: tuple[str, ...]
    tasks: tuple[str, ...]
    classes: tuple[str, ...]
    predictions: NDArray[np.uint16]
    thousandths: NDArray[np.uint16] | None
    row: Mapping[str, Any] | None


# Packing: what a store holds of a member, into files.


def pack(plan: StudyPlan, store: Store, folder: Path) -> list[Path]:
    """Write the members that are complete in the store and in no file of the folder yet.

    Returns the files that were written, `STUDY-EXPERIMENT-SEED.parquet`.
    """
    done, held = store.done(), set[str]()
    for about, _ in _files(folder, arrays=False):
        held |= {one["key"] for one in about["models"]} | about["distances"].keys()
    written: list[Path] = []
    for name, experiment in plan.experiments.items():
        models = plan.of(name)
        for seed in dict.fromkeys(model.seed for model in models):
            own = [model for model in models if model.seed == seed]
            asked = [(one.asked_by, one.validated_by, one.compared_by) for one in own]
            stages = [key for keys in asked for key in keys if key is not None]
            if not all(key in done for key in stages):
                continue
            packed = [
                _packed(plan.stages[key], model, store, scores=experiment.audit)
                for model in own
                for key in (model.asked_by, model.validated_by)
                if key is not None and key not in held
            ]
            distances = {
                key: json.loads((store.read(key) / SIMILARITY).read_text(encoding="utf-8"))
                for key in (model.compared_by for model in own)
                if key is not None and key not in held
            }
            held |= {one.key for one in packed} | distances.keys()
            by_part: dict[str, list[Packed]] = {"": [], "-validation": []}
            for one in packed:
                by_part["" if one.row is not None else "-validation"].append(one)
            for part, alike in by_part.items():
                stem = f"{plan.study.name}-{name}-{seed}{part}"
                written += _write(alike, {} if part else distances, folder, stem)
    return written


def _packed(stage: Stage, model: PlannedModel, store: Store, *, scores: bool) -> Packed:
    folder = store.read(stage.key)
    table = pq.read_table(folder / PREDICTIONS)
    names = table.column_names
    tasks = tuple(dict.fromkeys(table["task"].to_pylist())) if "task" in names else ()
    ids = table["example_id"].to_pylist()[:: max(1, len(tasks))]
    said = table["prediction"].to_pylist()
    classes: tuple[str, ...] = ("0", "1")
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
    row = None
    if (folder / VARIANT).is_file():
        row = json.loads((folder / VARIANT).read_text(encoding="utf-8"))
    return Packed(
        stage.key,
        model.variant,
        model.seed,
        tuple(map(str, ids)),
        tasks,
        classes,
        codes,
        thousandths,
        row,
    )


def _write(
    models: Sequence[Packed], distances: Mapping[str, Any], folder: Path, stem: str
) -> list[Path]:
    """One file, or two of half the models each where it would be too large."""
    if not models and not distances:
        return []
    ids, tasks, classes = (
        (models[0].ids, models[0].tasks, models[0].classes) if models else ([],) * 3
    )
    columns: dict[str, Any] = {
        "example_id": np.repeat(np.array(ids, dtype=object), max(1, len(tasks)))
    }
    for number, one in enumerate(models):
        # Models of a member mostly agree: the difference from the first compresses well.
        apart = one.predictions if number == 0 else one.predictions ^ models[0].predictions
        columns[f"{number}.prediction"] = apart
        for place in range(0 if one.thousandths is None else one.thousandths.shape[1]):
            columns[f"{number}.{place}"] = one.thousandths[:, place]  # type: ignore[index]
    about = {
        "format": FORMAT,
        "tasks": tasks,
        "classes": classes,
        "models": [
            {"key": one.key, "variant": one.variant, "seed": one.seed, "row": one.row}
            for one in models
        ],
        "distances": distances,
    }
    # Parquet does not compress metadata, and a sweep has hundreds of models.
    text = base64.b64encode(zlib.compress(json.dumps(about).encode(), 9))
    table = pa.table(columns).replace_schema_metadata({MODELS: text})
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="zstd", compression_level=19)
    if len(stream.getbuffer()) > LARGEST and len(models) > 1:
        half = len(models) // 2
        first = _write(models[:half], distances, folder, stem)
        return first + _write(models[half:], {}, folder, stem)
    folder.mkdir(parents=True, exist_ok=True)
    path, number = folder / f"{stem}.parquet", 1
    while path.exists():  # what was packed before stays
        number += 1
        path = folder / f"{stem}-{number}.parquet"
    with atomic_file(path, "wb") as file:
        file.write(stream.getvalue())
    return [path]


# Restoring: stages of a store from files.


def restore(
    plan: StudyPlan,
    store: Store,
    folder: Path,
    root: Path | None,
    *,
    only: Mapping[str, Stage] | None = None,
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> int:
    """Fill a store with the predictions of a folder's files, as far as the plan asks for them.

    Labels and groups are read from the data again. Returns how many stages were restored.

    Parameters
    ----------
    root
        The folder with data sets.
    only
        The stages that will run, by default all of the plan.
    progress
        Called with what is done, how many models are done, and of how many.
    """
    done = store.done()
    stages = plan.stages if only is None else only
    planned = {key: one for key, one in _asked(plan) if key in stages and key not in done}
    if not planned or not folder.is_dir():
        return 0
    files = list(_files(folder, only=stages.keys() - done))
    held = {one["key"] for about, _ in files for one in about["models"]} & planned.keys()
    held |= {key for about, _ in files for key in about["distances"]} & (stages.keys() - done)
    # A distance between two dense models describes how far such models lie apart, whichever they
    # are; if one had to be trained again for it, all members would be, one after the other.
    apart = held & {one.compared_by for one in plan.models if one.parent is None}
    wanted = apart | of_these_models(stages, done | apart, held - apart)
    total = sum(len(about["models"]) for about, _ in files)
    restored = passed = 0
    for about, table in files:
        for key, row in about["distances"].items():
            if key in wanted:
                store.write(plan.stages[key], partial(_put, SIMILARITY, json.dumps(row)))
        for one in _unpacked(about, table):
            passed += 1
            if one.key in wanted:
                data = plan.experiments[planned[one.key].experiment].data
                _restore(plan.stages[one.key], one, data, store, root)
                restored += 1
            progress("reading packed predictions", passed, total)
    return restored


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


def of_these_models(stages: Mapping[str, Stage], done: set[str], held: set[str]) -> set[str]:
    """Those of the packed stages `held` that are about models which are not made again.

    A model that is trained again, for a copy that is new, need not be the one that predicted
    before: on another machine it differs in the last bits at first, and then in some predictions.
    So whatever is of it or was made from it is predicted again too.
    """
    wanted = set(held)
    while True:
        made = done | {stage.key for stage in needed(stages.values(), done | wanted)}
        again = {key for key in wanted if not made.isdisjoint(_made_from(stages, key))}
        if not again:
            return wanted
        wanted -= again


def check_same_models(plan: StudyPlan, store: Store, stages: Mapping[str, Stage]) -> None:
    """Refuse to make copies of a model that is trained again, if its old predictions are there."""
    done = store.done()
    left = [stage.key for stage in needed(stages.values(), done)]
    for key, model in _asked(plan):
        if key in done and model.made_by in left:
            new = next(one for one in left if model.made_by in _made_from(stages, one))
            raise InputError(
                f"The store has the predictions of '{stages[model.made_by].label}', but not "
                "the model: they were read from packed files. "
                f"'{stages[new].label}' would be made from a new training of it, which need "
                "not predict the same. Give this study a store of its own (--store)."
            )


def _asked(plan: StudyPlan) -> Iterator[tuple[str, PlannedModel]]:
    """Every stage that predicts, with its model."""
    for model in plan.models:
        for key in (model.asked_by, model.validated_by):
            if key is not None:
                yield key, model


def _made_from(stages: Mapping[str, Stage], key: str) -> set[str]:
    """What a stage was made from: its inputs, their inputs, and so on."""
    found: set[str] = set()
    ahead = list(stages[key].inputs)
    while ahead:
        key = ahead.pop()
        if key not in found:
            found.add(key)
            ahead.extend(stages[key].inputs)
    return found


def _restore(stage: Stage, one: Packed, data: Data, store: Store, root: Path | None) -> None:
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
        if one.row is not None:
            _put(VARIANT, json.dumps(one.row), room)

    store.write(stage, write)


def _outputs(one: Packed, part: Images) -> NDArray[Any]:
    """The model's predictions of the part's examples, in their order."""
    places = {id: place for place, id in enumerate(one.ids)}
    wanted = [str(id) for id in part.example_id.tolist()]
    known = one.tasks or one.classes
    if set(wanted) != places.keys() or not set(known) <= set(part.classes):
        raise InputError(
            f"The packed predictions of '{one.variant}' are about other examples than the data "
            "here; give the same data set and the same study, or leave --packed out."
        )
    rows = np.array([places[id] for id in wanted])
    said: NDArray[Any] = one.predictions.reshape(len(one.ids), -1)[rows]
    shares: NDArray[Any] | None = None
    if one.thousandths is not None:
        shares = one.thousandths.reshape(len(one.ids), -1)[rows] / THOUSAND
    if one.tasks:
        if shares is None:
            return said.astype(np.int64)
        # Rounding must not take a prediction to the other side.
        sides: NDArray[Any] = np.where(
            said == 1, np.maximum(shares, 0.5 + 1e-6), np.minimum(shares, 0.5)
        )
        return sides
    own = np.array([part.classes.index(name) for name in one.classes])
    chosen: NDArray[Any] = own[said[:, 0]]
    if shares is None:
        return chosen.astype(np.int64)
    everyone, classes = np.arange(len(rows)), len(part.classes)
    if shares.shape[1] > 1:
        full = np.zeros((len(rows), classes))
        full[:, own] = shares
        first = full.max(axis=1)
    else:
        # Of two classes the score may be that of the other one, which is the smaller.
        score = np.maximum(shares, 1 - shares) if classes == 2 else shares
        full = np.repeat((1 - score) / max(classes - 1, 1), classes, axis=1)
        first = np.maximum(score[:, 0], full[:, 0])
    full[everyone, chosen] = first + 1e-6  # the prediction itself stays first
    full /= full.sum(axis=1, keepdims=True)
    return full


def _put(name: str, text: str, room: Path) -> None:
    (room / name).write_text(text, encoding="utf-8")


def _files(
    folder: Path, *, arrays: bool = True, only: Collection[str] | None = None
) -> Iterator[tuple[dict[str, Any], pa.Table]]:
    """Header and table of every packed file in a folder."""
    for path in sorted(folder.glob("*.parquet")):
        try:
            text = (pq.read_schema(path).metadata or {})[MODELS]
            about = json.loads(zlib.decompress(base64.b64decode(text)))
            keys = {one["key"] for one in about["models"]} | about["distances"].keys()
            if only is None or not keys.isdisjoint(only):
                yield about, pq.read_table(path) if arrays else None
        except (OSError, pa.ArrowException, KeyError, ValueError, zlib.error) as error:
            raise InputError(
                f"'{path}' is no file of packed predictions ({error}); remove it, or copy it again."
            ) from error


def _unpacked(about: Mapping[str, Any], table: pa.Table) -> Iterator[Packed]:
    """The models of a file."""
    tasks, classes = tuple(about["tasks"]), tuple(about["classes"])
    ids = tuple(table["example_id"].to_pylist()[:: max(1, len(tasks))])
    first: NDArray[np.uint16] | int = 0
    for number, one in enumerate(about["models"]):
        codes = table[f"{number}.prediction"].to_numpy().astype(np.uint16) ^ first
        first = codes if number == 0 else first
        width = sum(name.startswith(f"{number}.") for name in table.column_names) - 1
        columns = [table[f"{number}.{place}"].to_numpy() for place in range(width)]
        yield Packed(
            key=one["key"],
            variant=one["variant"],
            seed=one["seed"],
            ids=ids,
            tasks=tasks,
            classes=classes,
            predictions=codes,
            thousandths=np.stack(columns, axis=1).astype(np.uint16) if columns else None,
            row=one["row"],
        )
