"""Every member's answer on every single example: what exemplars and explanations look at.

The count cube forgets which example is which; here they are rows again, as small codes, in the
order of their identity, so that a seeded draw does not depend on the order of a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.types as kinds
from numpy.typing import ArrayLike, NDArray

from fairweight.auditing.counts.cube import Cube, CubeMember, GroupColumn
from fairweight.auditing.counts.group_by import (
    encode,
    encode_answers,
    numbers,
    training_table,
    vector_classes,
    vectors,
)
from fairweight.auditing.counts.groupings import resolve_positive
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical, class_order
from fairweight.tables.checks import refuse_two_clusters, refuse_without_classes
from fairweight.tables.connection import literal, quote
from fairweight.tables.spec import OutcomeRole

if TYPE_CHECKING:
    from fairweight.tables.align import Aligned

Answer = NDArray[np.unsignedinteger[Any]]
MOST_PROBABILITIES = 10**8  # entries of score vectors up to which they are kept


@dataclass(frozen=True)
class Answers:
    """Labels, predictions and what is known of every example, of one task."""

    label: Answer  # (n,) into classes
    prediction: Answer  # (members, n) into classes; the code len(classes) is an abstention
    members: tuple[CubeMember, ...]  # of the baseline first
    classes: tuple[str, ...]  # those of labels first, then those that are only predicted
    n_label_classes: int
    baseline: str
    variants: tuple[str, ...]  # the compressed ones
    example_id: NDArray[Any] | None = None  # None: made from counts
    has_id: bool = True  # else `example_id` is the number of a row
    columns: tuple[GroupColumn, ...] = ()
    groupings: tuple[str, ...] = ()  # "sex", "age", "sex*age"
    numbers: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)  # NaN: missing
    texts: Mapping[str, NDArray[Any]] = field(default_factory=dict)  # paths and the like
    cluster: NDArray[np.int64] | None = None
    cluster_names: tuple[str, ...] = ()
    weight: NDArray[np.float64] | None = None
    score: NDArray[np.float32] | None = None  # (members, n), NaN where there is none
    scores: NDArray[np.float32] | None = None  # (members, n, len(score_classes))
    score_classes: tuple[str, ...] = ()
    positive: int | None = None  # of two classes, the one that scores are of
    outcome: OutcomeRole | None = None  # numbers in the place of predictions, which are all alike
    numerator: NDArray[np.float64] | None = None  # (members, n), of outcomes
    denominator: NDArray[np.float64] | None = None  # (members, n); None: 1
    task: str | None = None
    train: pd.DataFrame | None = None  # label, group columns, n
    variants_table: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    @property
    def n_examples(self) -> int:
        return len(self.label)

    @cached_property
    def spans(self) -> dict[str, slice]:
        """Which rows of `prediction` are a variant's; members of one variant stand together."""
        names = [member.variant for member in self.members]
        return {
            name: slice(names.index(name), names.index(name) + names.count(name))
            for name in dict.fromkeys(names)
        }

    def rows(self, variant: str) -> slice:
        """The rows of `prediction` that are a variant's members."""
        if variant not in self.spans:
            raise UnknownNameError("The variant", variant, list(self.spans))
        return self.spans[variant]

    def of(self, variant: str) -> Answer:
        """The predictions of a variant's members, (members, n)."""
        return self.prediction[self.rows(variant)]

    def correct(self, variant: str) -> NDArray[np.bool_]:
        """Which answers of a variant's members are right, (members, n)."""
        right: NDArray[np.bool_] = self.of(variant) == self.label
        return right

    def outcomes(self, variant: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Numerators and denominators of a variant on every example: means over its members."""
        assert self.numerator is not None
        own = self.rows(variant)
        value = self.numerator[own].mean(axis=0)
        if self.denominator is None:
            return value, np.ones_like(value)
        return value, self.denominator[own].mean(axis=0)


def from_aligned(
    aligned: Aligned,
    task: str | None = None,
    *,
    positive: object = None,
    scores: bool = True,
    numeric: bool = False,
) -> Answers:
    """The answers of an aligned view (`align(..., further=True)` brings measurements too).

    Parameters
    ----------
    task
        Which one, where there are several.
    positive
        The class that scores of two classes are of; 1, true and yes need not be named.
    scores
        Whether to read scores where there are some.
    numeric
        Whether outcomes that are numbers will do; else they are refused.
    """
    role = None if aligned.outcome is None or aligned.outcome.binary else aligned.outcome
    if role is None or not numeric:
        refuse_without_classes(aligned.outcome, labelled=aligned.has_label)
    refuse_two_clusters(crossed=aligned.has_second_cluster)
    if aligned.has_count:
        raise InputError(
            "A counted table (--count) has no single examples to look at; give a table with one "
            "row per example."
        )
    where = _of_task(aligned, task)
    names = ["example_id", "label"]
    names += ["weight"] if aligned.has_weight else []
    names += ["cluster"] if aligned.has_cluster else []
    names += [f"g{i}" for i in range(len(aligned.group_columns))]
    names += [f"x{i}" for i in range(len(aligned.further_columns))]
    names += [member.prediction for member in aligned.members]
    names += [m.denominator for m in aligned.members if m.denominator]
    if scores:
        names += [m.score for m in aligned.members if m.score]
        names += [m.scores for m in aligned.members if m.scores]
    table = aligned.connection.sql(
        f"SELECT {', '.join(map(quote, names))} FROM {quote(aligned.view)}{where}"
    ).to_arrow_table()
    ids = table.column("example_id").to_numpy()
    if ids.dtype == object:
        ids = np.array([str(value) for value in ids])
    order = np.argsort(ids, kind="stable")
    table = table.take(order)
    notes = list(aligned.notes)
    every = ["label", *(member.prediction for member in aligned.members)]
    if role is None:
        coded = encode_answers(table, every)
    else:  # everybody is right: numbers stand for it
        right = pa.table({"label": table.column("label")})
        coded = {name: encode(right, "label") for name in every}
    labels = class_order(v for v in coded["label"][0] if v is not None)
    seen = {v for values, _ in coded.values() for v in values if v is not None}
    classes = labels + class_order(seen - set(labels))
    place: dict[str | None, int] = {name: i for i, name in enumerate(classes)}
    place[None] = len(classes)
    answers = np.empty((len(aligned.members) + 1, table.num_rows), dtype=_code_type(len(classes)))
    for row, name in enumerate(list(coded)):  # of the label first
        values, codes = coded.pop(name)
        answers[row] = np.array([place[v] for v in values], dtype=answers.dtype)[codes]
    measured: dict[str, NDArray[np.float64]] = {}
    texts: dict[str, NDArray[Any]] = {}
    for i, name in enumerate(aligned.further_columns):
        kind = table.schema.field(f"x{i}").type
        if kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind):
            measured[name] = numbers(table, f"x{i}")
        else:
            values, code = encode(table, f"x{i}")
            texts[name] = np.array(values, dtype=object)[code]
    clusters = GroupColumn.of("cluster", *encode(table, "cluster")) if aligned.has_cluster else None
    if clusters is not None and None in clusters.values:
        raise InputError(
            "Some rows have no value in the cluster column. Fill them in, or give every lone "
            "example a cluster of its own."
        )
    score, probabilities, score_classes = (
        _read_scores(table, aligned, labels, notes) if scores else (None, None, ())
    )
    train = training_table(aligned, labels)
    if train is not None and task is not None and "task" in train:
        train = train[train["task"] == task].drop(columns="task").reset_index(drop=True)
    return Answers(
        label=answers[0],
        prediction=answers[1:],
        members=tuple(CubeMember(m.variant, str(m.seed)) for m in aligned.members),
        classes=classes,
        n_label_classes=len(labels),
        baseline=aligned.baseline,
        variants=aligned.variants,
        example_id=ids[order],
        has_id=aligned.has_id,
        columns=tuple(
            GroupColumn.of(name, *encode(table, f"g{i}"))
            for i, name in enumerate(aligned.group_columns)
        ),
        groupings=aligned.groupings,
        numbers=measured,
        texts=texts,
        cluster=None if clusters is None else clusters.code.astype(np.int64),
        cluster_names=() if clusters is None else tuple(map(str, clusters.values)),
        weight=numbers(table, "weight") if aligned.has_weight else None,
        score=score,
        scores=probabilities,
        score_classes=score_classes,
        positive=resolve_positive(labels, positive)
        if len(labels) == 2 or positive is not None
        else None,
        outcome=role,
        numerator=None
        if role is None
        else np.stack([numbers(table, m.prediction) for m in aligned.members]),
        denominator=np.stack([numbers(table, str(m.denominator)) for m in aligned.members])
        if role is not None and aligned.members[0].denominator
        else None,
        task=task,
        train=train,
        variants_table=aligned.variants_table,
        notes=tuple(notes),
    )


def from_cube(cube: Cube, baseline: str, task: str | None = None) -> Answers:
    """The answers that were counted: every cell as often as it occurs, without identities."""
    role = None if cube.outcome is None else cube.outcome.role
    if role is not None and not role.binary:
        raise InputError(
            "The cube holds sums of an outcome over many examples, so nothing can be said about "
            "single ones; explain the table that it was counted from (one row per example)."
        )
    refuse_without_classes(role, labelled=cube.labelled)
    refuse_two_clusters(crossed=cube.second_unit is not None)
    part = cube.of_task(task)
    code = _code_type(len(part.classes))
    repeated = np.repeat(np.arange(part.n_cells), part.count)
    prediction = np.where(part.prediction < 0, len(part.classes), part.prediction).astype(code)
    names = tuple(column.name for column in part.columns)
    return Answers(
        label=part.label.astype(code)[repeated],
        prediction=np.ascontiguousarray(prediction.T[:, repeated]),
        members=part.members,
        classes=part.classes,
        n_label_classes=len(part.label_classes),
        baseline=baseline,
        variants=tuple(
            name for name in dict.fromkeys(m.variant for m in part.members) if name != baseline
        ),
        columns=tuple(GroupColumn(c.name, c.values, c.code[repeated]) for c in part.columns),
        groupings=names,
        cluster=part.unit[repeated] if part.unit is not None and part.unit_is_cluster else None,
        weight=None if part.weight is None else part.weight[repeated],
        task=task,
    )


def from_arrays(
    y_true: ArrayLike,
    y_pred: Mapping[str, ArrayLike],
    *,
    baseline: str | None = None,
    groups: Mapping[str, Sequence[Any]] | None = None,
    numbers: Mapping[str, ArrayLike] | None = None,
    cluster: ArrayLike | None = None,
    score: Mapping[str, ArrayLike] | None = None,
    ids: Sequence[Any] | None = None,
) -> Answers:
    """Plain arrays, (n,) or (n, seeds) per variant; the first variant is the baseline."""
    first = baseline if baseline is not None else next(iter(y_pred))
    order = [first, *(name for name in y_pred if name != first)]
    members = [
        (CubeMember(name, str(seed)), column)
        for name in order
        for seed, column in enumerate(np.atleast_2d(np.asarray(y_pred[name]).T))
    ]
    truth = np.asarray(y_true)
    labels = class_order(canonical(v) or "" for v in np.unique(truth))
    seen = {canonical(v) or "" for _, column in members for v in np.unique(column)}
    classes = labels + class_order(seen - set(labels))
    code = _code_type(len(classes))

    def coded(values: NDArray[Any]) -> Answer:
        raw, inverse = np.unique(values, return_inverse=True)
        place = np.array([classes.index(canonical(v) or "") for v in raw], dtype=code)
        found: Answer = place[inverse.reshape(values.shape)]
        return found

    columns = [
        GroupColumn.of(name, [canonical(v) for v in values], np.arange(len(values)))
        for name, values in (groups or {}).items()
    ]
    held = None if cluster is None else np.unique(np.asarray(cluster), return_inverse=True)
    return Answers(
        label=coded(truth),
        prediction=np.stack([coded(column) for _, column in members]),
        members=tuple(member for member, _ in members),
        classes=classes,
        n_label_classes=len(labels),
        baseline=first,
        variants=tuple(order[1:]),
        example_id=np.asarray(ids) if ids is not None else np.arange(len(truth)),
        has_id=ids is not None,
        columns=tuple(columns),
        groupings=tuple(column.name for column in columns),
        numbers={k: np.asarray(v, dtype=np.float64) for k, v in (numbers or {}).items()},
        cluster=None if held is None else held[1].astype(np.int64),
        cluster_names=() if held is None else tuple(canonical(v) or "" for v in held[0]),
        score=None
        if score is None
        else np.concatenate(
            [np.atleast_2d(np.asarray(score[n], dtype=np.float32).T) for n in order]
        ),
        positive=resolve_positive(labels, None) if len(labels) == 2 else None,
    )


def tasks_of(aligned: Aligned) -> tuple[str | None, ...]:
    """The tasks of an aligned view, (None,) where there is a single one."""
    if not aligned.has_task:
        return (None,)
    return class_order(text for text in _raw_tasks(aligned).values() if text is not None)


def answers_of(
    aligned: Aligned, positive: object = None, *, numeric: bool = False
) -> list[Answers]:
    """The answers of every task; of several, each looks up its own positive class."""
    named = None if aligned.has_task else positive
    return [
        from_aligned(aligned, task, positive=named, numeric=numeric) for task in tasks_of(aligned)
    ]


def _raw_tasks(aligned: Aligned) -> dict[str, str | None]:
    """The tasks as DuckDB writes them, with their canonical text."""
    found = aligned.connection.execute(
        f"SELECT DISTINCT CAST(task AS VARCHAR), task FROM {quote(aligned.view)}"
    ).fetchall()
    return {written: canonical(value) for written, value in found}


def _of_task(aligned: Aligned, task: str | None) -> str:
    """SQL that keeps the rows of one task."""
    if not aligned.has_task:
        return ""
    raw = _raw_tasks(aligned)
    known = class_order(text for text in raw.values() if text is not None)
    if task is None and len(known) > 1:
        raise InputError(
            f"There are {len(known)} tasks ({', '.join(known[:5])}); exemplars and explanations "
            "look at one: name it."
        )
    chosen = task if task is not None else known[0]
    if chosen not in known:
        raise UnknownNameError("The task", chosen, known)
    spelled = ", ".join(literal(written) for written, text in raw.items() if text == chosen)
    return f" WHERE CAST(task AS VARCHAR) IN ({spelled})"


def _code_type(n_classes: int) -> Any:
    return np.uint8 if n_classes < 2**8 - 1 else np.uint16 if n_classes < 2**16 - 1 else np.uint32


def _read_scores(
    table: pa.Table, aligned: Aligned, labels: tuple[str, ...], notes: list[str]
) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None, tuple[str, ...]]:
    score = None
    if any(member.score for member in aligned.members):
        score = np.full((len(aligned.members), table.num_rows), np.nan, dtype=np.float32)
        for row, member in enumerate(aligned.members):
            if member.score:
                score[row] = numbers(table, member.score)
    listed = [member.scores for member in aligned.members]
    if not all(listed):
        return score, None, ()
    entries = len(listed) * table.num_rows * max(len(aligned.score_classes or labels), 1)
    if entries > MOST_PROBABILITIES:
        notes.append(
            f"The score vectors ({entries:,} numbers) were not read; divergences need fewer "
            "members or examples."
        )
        return score, None, ()
    vector = vectors(table, listed)
    assert vector is not None
    names = vector_classes(vector, aligned, labels)
    return score, np.ascontiguousarray(vector.transpose(1, 0, 2), dtype=np.float32), names
