"""Run models on examples and write a prediction table, which is what the audit reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, overload

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from fairweight.base.files import atomic_file
from fairweight.data.dataset import Images
from fairweight.errors import FairweightError, InputError
from fairweight.lab.artifacts import CARD, Card, Outputs, load, read_card
from fairweight.lab.batches import Scaling, batches_of, read_batches
from fairweight.lab.loaders import Model, open_model
from fairweight.lab.measurement import measure
from fairweight.lab.onnx_models import card_of, read_onnx
from fairweight.lab.partition import Prepared, as_examples, prepare
from fairweight.lab.prediction_file import PredictionFile, stacked
from fairweight.lab.prediction_rows import OpenModel, PredictionRows
from fairweight.lab.training import plain_row, timed_example
from fairweight.specs.data import Data
from fairweight.specs.toml import read_spec

# One model, one model per seed (0, 1, ...), or seeds with their models.
Members: TypeAlias = Model | Sequence[Model] | Mapping[int, Model]
Progress: TypeAlias = Callable[[int], None]  # examples done so far
BATCH = 256  # examples at a time


@overload
def predict(
    models: Mapping[str, Members] | Sequence[str | Path | ModelFile],
    batches: Iterable[Any] | Images | None = None,
    *,
    out: None = None,
    groups: Mapping[str, Any] | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    scores: bool = False,
    ranks: bool = False,
    seed: int = 0,
    classes: Sequence[str] | None = None,
    outputs: Outputs | None = None,
    scaling: Scaling | None = None,
    part: str = "test",
    root: str | Path | None = None,
    batch_size: int = BATCH,
    device: str = "cpu",
    resume: bool = True,
    progress: Progress | None = None,
) -> pa.Table: ...


@overload
def predict(
    models: Mapping[str, Members] | Sequence[str | Path | ModelFile],
    batches: Iterable[Any] | Images | None = None,
    *,
    out: str | Path,
    groups: Mapping[str, Any] | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    scores: bool = False,
    ranks: bool = False,
    seed: int = 0,
    classes: Sequence[str] | None = None,
    outputs: Outputs | None = None,
    scaling: Scaling | None = None,
    part: str = "test",
    root: str | Path | None = None,
    batch_size: int = BATCH,
    device: str = "cpu",
    resume: bool = True,
    progress: Progress | None = None,
) -> Path: ...


def predict(
    models: Mapping[str, Members] | Sequence[str | Path | ModelFile],
    batches: Iterable[Any] | Images | None = None,
    *,
    out: str | Path | None = None,
    groups: Mapping[str, Any] | None = None,
    ids: Sequence[Any] | NDArray[Any] | None = None,
    scores: bool = False,
    ranks: bool = False,
    seed: int = 0,
    classes: Sequence[str] | None = None,
    outputs: Outputs | None = None,
    scaling: Scaling | None = None,
    part: str = "test",
    root: str | Path | None = None,
    batch_size: int = BATCH,
    device: str = "cpu",
    resume: bool = True,
    progress: Progress | None = None,
) -> pa.Table | Path:
    """Predictions of several models on the same examples, as a prediction table.

    Parameters
    ----------
    models
        Variant to model, to a list of models (seeds 0, 1, ...), or to a dictionary from seed to
        model. A model is a torch module (also quantised by torch or torchao, or compiled), a
        function of a batch's inputs, a fitted scikit-learn classifier, a folder that `train` or
        `compress` wrote, or a path to .safetensors, .onnx, .pt2, .tflite or a Hugging Face folder.
        Or a list of paths, `models/dense-0` or `int8=model.onnx`: variants and seeds are those of
        the models' cards, and a name that is given replaces the variant.
    batches
        Any iterable of (inputs, labels), (inputs, labels, ids), or dictionaries with `image`,
        `label`, and if wanted `example_id` and group columns. Inputs are floats as the models
        take them, or bytes (N, H, W, C), which are scaled as each model says; of an estimator the
        rows that it takes: `[(X_test, y_test)]`. Labels are places of classes or their names (of
        an estimator the values it was fitted on), or (N, tasks) with 0 and 1. Or the images of a
        data set
        (`fairweight.data.load`). By default the data that the cards of a list of models name.
    out
        A Parquet file, written as the predictions are made. An interrupted run goes on when it is
        called again with the same models and batches.
    groups, ids
        Columns of groups and the identities of all examples, in the order of the batches.
    scores, ranks
        Also write the probabilities of all classes, and the rank of the true label.
    seed
        Of variants with one model.
    classes
        Names of the classes in the order of the outputs (of the tasks, where labels have two
        axes); by default as the models say. Without names, classes are numbers.
    outputs
        What models give that do not say it; by default rows that sum to 1 are probabilities.
    scaling
        How bytes are scaled for models that do not say it.
    part, root
        Where the cards name the data: which part (train, validation, test), and the folder with
        data sets.
    batch_size
        Of the images of a data set.
    device
        Of torch models: `cpu`, `cuda` or `mps`.
    resume
        Whether to go on with an interrupted run.
    progress
        Called with the number of examples done.

    Returns
    -------
    A pyarrow table, or the path of the file if `out` is given; `fairweight.audit_table` takes both.
    `score` is the probability of the predicted class, and of two classes that of the positive one:
    the one called 1, true or yes, else the second.
    """
    if not isinstance(models, Mapping):
        listed = model_files(models)
        if batches is None:
            batches = prepare(data_of(listed), root).part(part)
        if isinstance(batches, Images) and not any((one.card or Card()).classes for one in listed):
            classes = classes or batches.classes
        models = {
            variant: {one.seed: one.path for one in listed if one.variant == variant}
            for variant in dict.fromkeys(one.variant for one in listed)
        }
    if batches is None:
        raise InputError("batches is missing, and models by variant name no data; give batches.")
    if isinstance(batches, Images):
        batches = batches_of(batches, batch_size)
    members = _open(models, seed=seed, outputs=outputs, scaling=scaling, device=device)
    names = _class_names(members, classes)
    rows = PredictionRows(members, names, scores=scores, ranks=ranks)
    given = read_batches(batches, ids=ids, groups=groups)
    if out is None:
        tables, done = [], 0
        for batch in given:
            tables.append(rows.of(batch))
            done += len(batch)
            if progress is not None:
                progress(done)
        return stacked(tables)
    # What decides the rows; None if some model cannot be recognised.
    run: dict[str, Any] | None = None
    if all(member.model.identity is not None for member in members):
        held = [[m.variant, m.seed, m.model.identity, m.outputs] for m in members]
        run = {"models": held, "classes": names, "scores": scores, "ranks": ranks}
    file, done = PredictionFile(out, run, resume=resume), 0
    try:
        for batch in given:
            digest = batch.digest()
            if not file.has(digest):
                file.add(digest, rows.of(batch))
            done += len(batch)
            if progress is not None:
                progress(done)
        return file.finish()
    except BaseException:
        with suppress(FairweightError):  # an interrupted run goes on with what it has
            file.flush()
        raise


def _open(
    models: Mapping[str, Members],
    *,
    seed: int,
    outputs: Outputs | None,
    scaling: Scaling | None,
    device: str,
) -> list[OpenModel]:
    if outputs not in (None, "logits", "probabilities"):
        raise InputError(f"outputs must be 'logits' or 'probabilities'; given was {outputs!r}.")
    members = []
    for variant, given in models.items():
        if isinstance(given, Mapping):
            population = dict(given)
        elif isinstance(given, Sequence) and not isinstance(given, str):
            population = dict(enumerate(given))
        else:
            population = {seed: given}
        for number, model in population.items():
            opened = open_model(model, str(variant), scaling=scaling, device=device)
            members.append(OpenModel(str(variant), number, opened, opened.outputs or outputs))
    if not members:
        raise InputError("There are no models to ask; give a dictionary from variant to model.")
    return members


def _class_names(
    members: Sequence[OpenModel], classes: Sequence[str] | None
) -> tuple[str, ...] | None:
    """The classes as they were given or as the first model that knows them says."""
    names = None if classes is None else tuple(str(name) for name in classes)
    if names is None:
        names = next((m.model.classes for m in members if m.model.classes is not None), None)
    if names is not None and len(set(names)) < len(names):
        raise InputError("The classes have a name twice; give every class its own.")
    for member in members:
        own = member.model.classes
        if own is not None and names is not None and set(own) != set(names):
            apart = sorted(set(own) ^ set(names))
            raise InputError(
                f"{member.shown} has other classes than the rest, such as '{apart[0]}'; give "
                "models of the same task."
            )
    return names


# Models on disk, and the tables beside their predictions: variants and training.


@dataclass(frozen=True)
class ModelFile:
    """A model on disk, and which member of which population it is."""

    variant: str
    seed: int
    path: Path
    card: Card | None  # None where the file carries none


def model_files(given: Sequence[str | Path | ModelFile] | str | Path) -> list[ModelFile]:
    """Models from `PATH` or `NAME=PATH`; those that were read before stay as they are.

    Variant and seed are those of a model's card; a name that is given replaces the variant. The
    models of a name without cards are its seeds 0, 1, … in their order.
    """
    found: list[ModelFile] = []
    for word in [given] if isinstance(given, str | Path) else given:
        if isinstance(word, ModelFile):
            found.append(word)
            continue
        # A path that exists may hold an equals sign.
        name, path = None, Path(word)
        if not path.exists():
            before, equals, after = str(word).partition("=")
            if equals and not (before and after):
                raise InputError(f"'{word}' is not of the form NAME=PATH.")
            name, path = (before, Path(after)) if equals else (None, path)
            if not path.exists():
                file = path.with_name(f"{path.name}.onnx")
                near = f"did you mean '{file}'?" if file.is_file() else "check the path."
                raise InputError(f"There is no model '{path}'; {near}")
        card = None
        if path.is_dir():
            card = read_card(path) if (path / CARD).is_file() else None
        elif path.suffix == ".onnx":
            card = card_of(read_onnx(path), f"'{path}'")
        elif path.suffix == ".safetensors" and (path.parent / CARD).is_file():
            card = read_card(path.parent)
        if name is None and card is None:
            raise InputError(
                f"'{path}' has no variant name; write NAME={path}, such as int8={path}."
            )
        variant = name if name is not None else (card or Card()).variant
        same = [one.seed for one in found if one.variant == variant]
        seed = card.seed if card is not None else max(same, default=-1) + 1
        if seed in same:
            raise InputError(
                f"'{path}' is a second model '{variant}' of seed {seed}; give it another name "
                f"(NAME={path}), or give one of the two."
            )
        found.append(ModelFile(variant, seed, path, card))
    return found


def data_of(models: Iterable[ModelFile]) -> Data:
    """The data that the models' cards name; an error where they differ or say nothing."""
    named = [
        (one, read_spec(Data, one.card.data, f"The data in the card of '{one.path}'"))
        for one in models
        if one.card is not None and one.card.data
    ]
    if not named:
        raise InputError(
            "No model says what data it was trained on; name the data set (--dataset NAME)."
        )
    first, data = named[0]
    for other, own in named[1:]:
        if own != data:
            raise InputError(
                f"'{first.path}' and '{other.path}' were trained on different data or parts of it; "
                "name the data to predict (--dataset NAME)."
            )
    return data


def variants_table(
    models: Sequence[ModelFile], prepared: Prepared, *, again: bool = False
) -> pa.Table:
    """One measured row per model: that of its card, or measured now.

    Parameters
    ----------
    again
        Measure all of them now, one after another, so that their times can be compared.
    """
    rows = []
    for one in models:
        row = dict(one.card.measured) if one.card is not None and not again else {}
        rows.append((row or _measured(one, prepared)) | {"variant": one.variant, "seed": one.seed})
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def training_table(train: Images) -> pa.Table:
    """Labels (by task, where there are several) and groups of the training examples."""
    names = np.array(train.classes, dtype=object)
    tasks = len(train.classes) if train.multi_label else 1
    columns: dict[str, Any] = {}
    if train.multi_label:
        columns["task"] = pa.array(list(train.classes) * len(train), pa.string())
        columns["label"] = pa.array(train.labels.reshape(-1))
    else:
        columns["label"] = pa.array(names[train.labels].tolist(), pa.string())
    for name, values in train.groups.items():
        held = [value or None for value in np.repeat(values, tasks).tolist()]
        columns[name] = pa.array(held, pa.string())
    return pa.table(columns)


def write_table(table: pa.Table, path: str | Path) -> str:
    """Write a table as Parquet; its path as text."""
    with atomic_file(path, "wb") as file:
        pq.write_table(table, file)
    return str(path)


def _measured(one: ModelFile, prepared: Prepared) -> dict[str, Any]:
    card = one.card or Card(variant=one.variant, seed=one.seed)
    if card.preprocessing is None:
        raise InputError(
            f"'{one.path}' does not say how pixels are scaled, so its inputs cannot be timed; "
            "leave the variants table out, or give a model that `train` or `compress` wrote."
        )
    example = timed_example(as_examples(prepared.test), card.preprocessing)
    model: Any = load(one.path)[0] if one.path.is_dir() else one.path
    row = plain_row(measure(model, example, card=replace(card, measured={})))
    # What a file computes is counted on the network that it was made of.
    counted = {n: card.measured.get(n) for n in ("flops", "flops_sparse") if row[n] is None}
    return row | counted
