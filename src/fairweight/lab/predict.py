"""Ask models for predictions, and write them as a prediction table: what the audit reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from numpy.typing import NDArray

from fairweight.errors import InputError
from fairweight.lab.batches import Scaling
from fairweight.lab.card import Outputs
from fairweight.lab.given_batches import Batch, read_batches
from fairweight.lab.loaders.open_model import Model, open_model
from fairweight.lab.prediction_file import PredictionFile
from fairweight.lab.prediction_rows import Member, PredictionRows
from fairweight.lab.stacked_tables import stacked

if TYPE_CHECKING:
    import pyarrow as pa

# One model, one model per seed (0, 1, ...), or seeds with their models.
Members: TypeAlias = Model | Sequence[Model] | Mapping[int, Model]
Progress: TypeAlias = Callable[[int], None]  # examples done so far


@overload
def predict(
    models: Mapping[str, Members],
    batches: Iterable[Any],
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
    device: str = "cpu",
    resume: bool = True,
    progress: Progress | None = None,
) -> pa.Table: ...


@overload
def predict(
    models: Mapping[str, Members],
    batches: Iterable[Any],
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
    device: str = "cpu",
    resume: bool = True,
    progress: Progress | None = None,
) -> Path: ...


def predict(
    models: Mapping[str, Members],
    batches: Iterable[Any],
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
    device: str = "cpu",
    resume: bool = True,
    progress: Progress | None = None,
) -> pa.Table | Path:
    """Predictions of several models on the same examples, as a prediction table.

    Parameters
    ----------
    models
        Variant to model, to a list of models (seeds 0, 1, ...), or to a dictionary from seed to
        model. A model is a torch module, a function of a batch's inputs, a folder that `train` or
        `compress` wrote, or a path to .safetensors, .onnx, .pt2, .tflite or a Hugging Face folder.
    batches
        Any iterable of (inputs, labels), (inputs, labels, ids), or dictionaries with `image`,
        `label`, and if wanted `example_id` and group columns. Inputs are floats as the models
        take them, or bytes (N, H, W, C), which are scaled as each model says. Labels are places
        of classes or their names, or (N, tasks) with 0 and 1.
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
    resume
        Whether to go on with an interrupted run.

    Returns
    -------
    A pyarrow table, or the path of the file if `out` is given; `fairweight.audit_table` takes both.
    `score` is the probability of the predicted class, and of two classes that of the positive one:
    the one called 1, true or yes, else the second.
    """
    members = _open(models, seed=seed, outputs=outputs, scaling=scaling, device=device)
    names = _class_names(members, classes)
    rows = PredictionRows(members, names, scores=scores, ranks=ranks)
    given = read_batches(batches, ids=ids, groups=groups)
    if out is None:
        return _in_memory(rows, given, progress)
    run = _run_key(members, names, scores=scores, ranks=ranks)
    return _to_file(rows, given, PredictionFile(out, run, resume=resume), progress)


def _in_memory(
    rows: PredictionRows, batches: Iterable[Batch], progress: Progress | None
) -> pa.Table:
    tables = []
    done = 0
    for batch in batches:
        tables.append(rows.of(batch))
        done += len(batch)
        if progress is not None:
            progress(done)
    return stacked(tables)


def _to_file(
    rows: PredictionRows, batches: Iterable[Batch], file: PredictionFile, progress: Progress | None
) -> Path:
    done = 0
    try:
        for batch in batches:
            digest = batch.digest()
            if not file.has(digest):
                file.add(digest, rows.of(batch))
            done += len(batch)
            if progress is not None:
                progress(done)
        return file.finish()
    except BaseException:
        file.abandon()
        raise


def _open(
    models: Mapping[str, Members],
    *,
    seed: int,
    outputs: Outputs | None,
    scaling: Scaling | None,
    device: str,
) -> list[Member]:
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
            members.append(Member(str(variant), number, opened, opened.outputs or outputs))
    if not members:
        raise InputError("There are no models to ask; give a dictionary from variant to model.")
    return members


def _class_names(
    members: Sequence[Member], classes: Sequence[str] | None
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


def _run_key(
    members: Sequence[Member], names: tuple[str, ...] | None, **options: bool
) -> dict[str, Any] | None:
    """What decides the rows; None if some model cannot be recognised."""
    if any(member.model.identity is None for member in members):
        return None
    held = [[m.variant, m.seed, m.model.identity, m.outputs] for m in members]
    return {"models": held, "classes": names, **options}
