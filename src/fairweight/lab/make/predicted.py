"""Ask models on disk about a part of a data set: predictions, variants and training table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.errors import InputError
from fairweight.lab.artifacts import CARD, load, read_card
from fairweight.lab.batches import Scaling
from fairweight.lab.card import Card
from fairweight.lab.given_batches import batches_of
from fairweight.lab.make.fitted import timed_example
from fairweight.lab.make.folder import plain_row
from fairweight.lab.measure import measure
from fairweight.lab.onnx_card import card_of
from fairweight.lab.onnx_file import read_onnx
from fairweight.lab.predict import Progress, predict
from fairweight.lab.prepared_data import Prepared, as_examples
from fairweight.specs.data import Data
from fairweight.specs.read_spec import read_spec
from fairweight.tables.write import atomic_file

if TYPE_CHECKING:
    import pyarrow as pa

    from fairweight.data.dataset import Images

BATCH = 256


@dataclass(frozen=True)
class Asked:
    """A model on disk, and which member of which population it is."""

    variant: str
    seed: int
    path: Path
    card: Card | None  # None where the file carries none


def asked(given: Sequence[str]) -> list[Asked]:
    """Models from `PATH` or `NAME=PATH`.

    Variant and seed are those of a model's card; a name that is given replaces the variant. The
    models of a name without cards are its seeds 0, 1, … in their order.
    """
    found: list[Asked] = []
    for word in given:
        name, path = _name_and_path(word)
        card = _card(path)
        if name is None and card is None:
            raise InputError(
                f"'{path}' does not say what it is called; write NAME={path}, such as int8={path}."
            )
        variant = name if name is not None else (card or Card()).variant
        same = [one.seed for one in found if one.variant == variant]
        seed = card.seed if card is not None else max(same, default=-1) + 1
        if seed in same:
            raise InputError(
                f"'{path}' is a second model '{variant}' of seed {seed}; give it another name "
                f"(NAME={path}), or give one of the two."
            )
        found.append(Asked(variant, seed, path, card))
    return found


def data_of(models: Iterable[Asked]) -> Data:
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
                "name what they are to be asked about (--dataset NAME)."
            )
    return data


def predict_models(
    models: Sequence[Asked],
    part: Images,
    out: str | Path,
    *,
    scores: bool = False,
    ranks: bool = False,
    scaling: Scaling | None = None,
    resume: bool = True,
    batch_size: int = BATCH,
    progress: Progress | None = None,
) -> Path:
    """Write what every model answers about the examples of a part.

    Parameters
    ----------
    scaling
        How pixels are scaled for models that do not say it.
    """
    members: dict[str, dict[int, Path]] = {}
    for one in models:
        members.setdefault(one.variant, {})[one.seed] = one.path
    return predict(
        members,
        batches_of(part, batch_size),
        out=out,
        scores=scores,
        ranks=ranks,
        scaling=scaling,
        classes=None if any((one.card or Card()).classes for one in models) else part.classes,
        resume=resume,
        progress=progress,
    )


def variants_table(models: Sequence[Asked], prepared: Prepared, *, again: bool = False) -> pa.Table:
    """One measured row per model: that of its card, or measured now.

    Parameters
    ----------
    again
        Measure all of them now, one after another, so that their times can be compared.
    """
    import pyarrow as pa

    rows = []
    for one in models:
        row = dict(one.card.measured) if one.card is not None and not again else {}
        rows.append((row or _measured(one, prepared)) | {"variant": one.variant, "seed": one.seed})
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def training_table(train: Images) -> pa.Table:
    """Labels (by task, where there are several) and groups of the training examples."""
    import numpy as np
    import pyarrow as pa

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
    import pyarrow.parquet as pq

    with atomic_file(path, "wb") as file:
        pq.write_table(table, file)
    return str(path)


def _measured(one: Asked, prepared: Prepared) -> dict[str, Any]:
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


def _name_and_path(word: str) -> tuple[str | None, Path]:
    """`NAME=PATH` apart; a path that exists may hold an equals sign."""
    if Path(word).exists():
        return None, Path(word)
    name, equals, path = word.partition("=")
    if not equals:
        raise InputError(f"There is no model '{word}'; check the path.")
    if not name or not path:
        raise InputError(f"'{word}' is not of the form NAME=PATH.")
    if not Path(path).exists():
        raise InputError(f"There is no model '{path}'; check the path.")
    return name, Path(path)


def _card(path: Path) -> Card | None:
    if path.is_dir():
        return read_card(path) if (path / CARD).is_file() else None
    if path.suffix == ".onnx":
        return card_of(read_onnx(path), f"'{path}'")
    if path.suffix == ".safetensors" and (path.parent / CARD).is_file():
        return read_card(path.parent)
    return None
