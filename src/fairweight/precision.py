"""Which units of a network do the harm, audited; `fairweight sensitivity` and Python.

The lab makes predictions of one unit compressed alone and of all but one compressed; the audit of
the full compression gets a table of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fairweight import lab
from fairweight.api import audit_table
from fairweight.auditing.sensitivity import UnitAnswers, UnitCost, with_sensitivity
from fairweight.audits import Audit
from fairweight.base.types import Progress
from fairweight.specs.audit import AuditOptions
from fairweight.tables.canonical import canonical
from fairweight.tables.spec import SourceRef, TableSpec

if TYPE_CHECKING:
    from torch import nn

    from fairweight.data.dataset import Images
    from fairweight.lab.batches import Scaling
    from fairweight.lab.training import Method
    from fairweight.lab.unit_predictions import JudgedExamples, UnitPredictions
    from fairweight.lab.units import Level


def sensitivity(
    model: nn.Module | str | Path,
    spec: Method,
    batches: Iterable[Any] | Images | None = None,
    *,
    groups: Sequence[str] | None = None,
    columns: Mapping[str, Any] | None = None,
    ids: Any = None,
    calibration: Iterable[Any] | Images | None = None,
    unit: Level = "layer",
    cluster: str | None = None,
    task: str | None = None,
    classes: Sequence[str] | None = None,
    scaling: Scaling | None = None,
    part: str = "test",
    root: str | Path | None = None,
    store: str | Path | None = None,
    budget: float | None = None,
    latency: bool = True,
    options: AuditOptions | None = None,
    command: str | None = None,
    announce: Callable[[str], None] | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Audit a compression, and show which of its units hurts whom.

    Every unit is compressed alone, and left out of the full compression. The result is an ordinary
    audit of the full compression with one more table, `explanations["sensitivity"]`.

    Parameters
    ----------
    model, spec, batches, ids, calibration, unit, task, classes, scaling, part, root, store, budget,
    latency, announce
        As for `fairweight.lab.sensitivity`, which makes the predictions.
    groups
        Group columns and intersections (`["race", "race*gender"]`); by default every column.
        Without any, classes take their place.
    columns
        Group columns of all examples, beside those of the batches.
    cluster
        The column whose examples belong together.
    options
        The statistics of the audit.
    """
    made = lab.sensitivity(
        model,
        spec,
        batches,
        groups=columns,
        ids=ids,
        calibration=calibration,
        unit=unit,
        task=task,
        classes=classes,
        scaling=scaling,
        part=part,
        root=root,
        store=store,
        budget=budget,
        latency=latency,
        announce=announce,
        progress=progress,
    )
    return audited_units(
        made, groups=groups, cluster=cluster, options=options, command=command, progress=progress
    )


def audited_units(
    made: UnitPredictions,
    *,
    groups: Sequence[str] | None = None,
    cluster: str | None = None,
    options: AuditOptions | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """The audit of predictions that `fairweight.lab.sensitivity` made."""
    predictions = {made.variant: made.baseline, made.compressed: made.full}
    audit = audit_of(
        made.examples,
        predictions,
        groups=groups,
        cluster=cluster,
        options=options,
        command=command,
        progress=progress,
    )
    labels = made.examples.labels
    right = {one: made.without[one] == labels for one in made.without}
    alone = [made.alone.get(one, made.baseline) == labels for one in right]
    answers = UnitAnswers(
        tuple(right),
        made.baseline == labels,
        made.full == labels,
        np.array(alone).reshape(len(right), len(labels)),
        np.array(list(right.values())).reshape(len(right), len(labels)),
        np.array([one in made.alone for one in right], dtype=bool),
    )
    texts = group_texts(made.examples)
    result = with_sensitivity(
        audit.result,
        answers,
        texts,
        class_texts(made.examples)[labels],
        {
            name: UnitCost(saved, made.latency_ms.get(name))
            for name, saved in made.saved_bytes.items()
        },
        not_reached=made.not_reached,
        cluster=None if cluster is None else np.asarray(texts[cluster], dtype=str),
        notes=made.notes,
    )
    return Audit(result)


def audit_of(
    examples: JudgedExamples,
    predictions: Mapping[str, NDArray[np.int64]],
    *,
    groups: Sequence[str] | None,
    cluster: str | None = None,
    options: AuditOptions | None = None,
    command: str | None = None,
    progress: Progress | None = None,
) -> Audit:
    """The audit of several models' predictions; the first is the baseline."""
    names = class_texts(examples)
    texts = group_texts(examples)
    wanted = None if groups is None else tuple(groups)
    if wanted is None and not texts:
        wanted = ()
    columns: dict[str, Any] = {
        "example_id": pa.array(examples.ids),
        "label": pa.array(names[examples.labels].tolist(), pa.string()),
    }
    columns |= {name: pa.array(values.tolist(), pa.string()) for name, values in texts.items()}
    places = {name: f"prediction {number}" for number, name in enumerate(predictions)}
    for name, column in places.items():
        columns[column] = pa.array(names[predictions[name]].tolist(), pa.string())
    spec = TableSpec(
        (SourceRef.of(pa.table(columns)),),
        predictions=places,
        baseline=next(iter(places)),
        groups=wanted,
        cluster=cluster,
    )
    return audit_table(spec, options or AuditOptions(), command=command, progress=progress)


def class_texts(examples: JudgedExamples) -> NDArray[Any]:
    """Names of classes by their places; numbers where no names are known."""
    names = examples.classes
    if names is None:
        names = tuple(str(place) for place in range(int(examples.labels.max(initial=0)) + 1000))
    return np.array([canonical(name) for name in names], dtype=object)


def group_texts(examples: JudgedExamples) -> dict[str, NDArray[Any]]:
    """Group columns as the audit reads them: canonical text, None where it is missing."""
    return {
        name: np.array([canonical(value) for value in values.tolist()], dtype=object)
        for name, values in examples.groups.items()
    }
