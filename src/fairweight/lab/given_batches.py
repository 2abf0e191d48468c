"""Batches as they are given: inputs, labels, ids and groups, checked and made alike."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.errors import InputError
from fairweight.lab.loaders.inputs import as_array

if TYPE_CHECKING:
    from fairweight.data.dataset import Images

INPUTS = ("image", "images", "inputs", "pixel_values")
LABELS = ("label", "labels")
ID = "example_id"
# Columns that have a meaning of their own in a prediction table.
TAKEN = frozenset(
    ("example_id", "task", "variant", "seed", "label", "prediction", "score", "scores")
) | {"label_rank", "weight"}


@dataclass(frozen=True)
class Batch:
    """Some examples: inputs as given, labels (N,) or (N, tasks), ids, and columns of groups."""

    inputs: Any
    labels: NDArray[Any]
    ids: NDArray[Any]
    groups: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.labels)

    def digest(self) -> str:
        """By which an interrupted run recognises the batch."""
        total = hashlib.sha256()
        held = {"inputs": self.inputs, "labels": self.labels, "ids": self.ids, **self.groups}
        for name, values in held.items():
            array = as_array(values)
            total.update(f"{name}{array.dtype}{array.shape}".encode())
            if array.dtype.hasobject:
                total.update(repr(array.tolist()).encode())
            else:
                total.update(np.ascontiguousarray(array).tobytes())
        return total.hexdigest()


def batches_of(data: Images, size: int = 256) -> Iterator[dict[str, Any]]:
    """The images of a data set in batches for `predict`: bytes, labels, ids and groups.

    Missing values of groups become None.
    """
    for start in range(0, len(data), size):
        part = slice(start, start + size)
        groups = {
            name: np.array([value or None for value in values[part].tolist()], dtype=object)
            for name, values in data.groups.items()
        }
        yield {
            "image": data.images[part],
            "label": data.labels[part],
            ID: data.example_id[part],
            **groups,
        }


def read_batches(
    batches: Iterable[Any],
    *,
    ids: Sequence[Any] | NDArray[Any] | None,
    groups: Mapping[str, Any] | None,
) -> Iterator[Batch]:
    """Every batch in its order, with its share of the ids and groups that were given for all."""
    ids = None if ids is None else as_array(ids)
    columns = {name: as_array(values) for name, values in (groups or {}).items()}
    _check_columns(columns)
    start = 0
    kept: tuple[str, ...] | None = None
    for number, given in enumerate(batches):
        batch = _batch(given, number)
        stop = start + len(batch)
        part = slice(start, stop)
        for name, values in (("ids", ids), *((f"groups['{n}']", c) for n, c in columns.items())):
            if values is not None and len(values) < stop:
                raise InputError(
                    f"{name} has {len(values):,} values, but the batches hold at least {stop:,} "
                    "examples; give one value per example."
                )
        own = batch.ids if len(batch.ids) else np.arange(start, stop)
        batch = Batch(
            batch.inputs,
            batch.labels,
            own if ids is None else ids[part],
            {**batch.groups, **{name: values[part] for name, values in columns.items()}},
        )
        kept = kept if kept is not None else tuple(batch.groups)
        if tuple(batch.groups) != kept:
            raise InputError(
                f"Batch {number} has the group columns {list(batch.groups)}, earlier ones have "
                f"{list(kept)}; give every batch the same."
            )
        yield batch
        start = stop
    for name, values in (("ids", ids), *((f"groups['{n}']", c) for n, c in columns.items())):
        if values is not None and len(values) != start:
            raise InputError(
                f"{name} has {len(values):,} values, but the batches hold {start:,} examples; "
                "give one value per example."
            )
    if not start:
        raise InputError("There are no examples to predict: the batches are empty.")


def _batch(given: Any, number: int) -> Batch:
    if isinstance(given, Batch):
        return given
    if isinstance(given, Mapping):
        return _named(given, number)
    if isinstance(given, tuple | list) and len(given) in (2, 3):
        inputs, labels = given[0], _labels(given[1], number)
        ids = as_array(given[2]) if len(given) == 3 else np.empty(0)
        return _checked(Batch(inputs, labels, ids), number)
    raise InputError(
        f"Batch {number} is {type(given).__name__}; give (inputs, labels), (inputs, labels, ids), "
        "or a dictionary with 'image', 'label', 'example_id' and group columns."
    )


def _named(given: Mapping[str, Any], number: int) -> Batch:
    inputs = next((name for name in INPUTS if name in given), None)
    label = next((name for name in LABELS if name in given), None)
    if inputs is None or label is None:
        raise InputError(
            f"Batch {number} has the keys {', '.join(repr(str(name)) for name in given)}; it "
            "needs 'image' and 'label'."
        )
    others = {
        str(name): as_array(values)
        for name, values in given.items()
        if name not in (inputs, label, ID)
    }
    _check_columns(others)
    ids = as_array(given[ID]) if ID in given else np.empty(0)
    batch = Batch(given[inputs], _labels(given[label], number), ids, others)
    return _checked(batch, number)


def _labels(given: Any, number: int) -> NDArray[Any]:
    labels = as_array(given)
    if labels.dtype.kind == "f" and bool(np.isfinite(labels).all()):
        whole = np.rint(labels)
        labels = whole.astype(np.int64) if bool((whole == labels).all()) else labels
    if labels.dtype.kind == "b":
        labels = labels.astype(np.int64)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim not in (1, 2) or labels.dtype.kind not in "iuUOS":
        raise InputError(
            f"The labels of batch {number} are {labels.dtype} of shape {labels.shape}; give "
            "classes (N,), or 0 and 1 for several tasks (N, tasks)."
        )
    return labels


def _checked(batch: Batch, number: int) -> Batch:
    lengths = {"inputs": len(batch.inputs), "label": len(batch.labels)}
    lengths |= {ID: len(batch.ids)} if len(batch.ids) else {}
    lengths |= {name: len(values) for name, values in batch.groups.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"Batch {number} has parts of different lengths: {shown}.")
    return batch


def _check_columns(columns: Mapping[str, NDArray[Any]]) -> None:
    for name, values in columns.items():
        if name in TAKEN:
            raise InputError(
                f"A group column cannot be called '{name}', which has a meaning of its own in a "
                "prediction table; rename it."
            )
        if values.ndim != 1:
            raise InputError(
                f"The group column '{name}' has the shape {values.shape}; give one value per "
                "example."
            )
