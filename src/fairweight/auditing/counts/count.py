"""Count an aligned view into a cube: one SQL GROUP BY, then canonical text on the few cells."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import (
    Codes,
    Cube,
    CubeMember,
    GroupColumn,
    Scores,
    compact,
    with_own_classes,
)
from fairweight.auditing.counts.encoded import (
    encode,
    encode_answers,
    numbers,
    vector_classes,
    vectors,
)
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.units import unit_order
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, class_order
from fairweight.tables.sql import one_row, quote

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from fairweight.tables.align import Aligned

EXACT_SCORES = 1_000_000  # distinct score values up to which they are kept as they are
SCORE_BINS = 2**16


def count(aligned: Aligned, *, scores: bool = False) -> Cube:
    """The cube of an aligned view; with `scores`, cells also tell scores and ranks apart."""
    keys = [f"g{i}" for i in range(len(aligned.group_columns))]
    keys += ["label", *(member.prediction for member in aligned.members)]
    if aligned.has_task:
        keys.append("task")
    if aligned.has_weight:
        keys.append("weight")
    unit = "cluster" if aligned.has_cluster else "example_id" if aligned.has_task else None
    if unit:
        keys.append(unit)
    selected = [f'"{key}"' for key in keys]
    bins: int | None = None
    if scores:
        columns, bins = _score_columns(aligned)
        selected += columns
    number = 'CAST(sum("count") AS BIGINT)' if aligned.has_count else "count(*)"
    table = aligned.connection.sql(
        f"SELECT {', '.join(selected)}, {number} AS n FROM {quote(aligned.view)} GROUP BY ALL"
    ).to_arrow_table()
    if table.num_rows == 0:
        raise InputError("The table has no rows, so there is nothing to audit.")
    return _from_arrow(table, aligned, unit=unit, bins=bins, scores=scores)


def has_scores(aligned: Aligned) -> bool:
    """Whether any member brings scores, score vectors or label ranks."""
    return any(m.score or m.scores or m.label_rank for m in aligned.members)


def _score_columns(aligned: Aligned) -> tuple[list[str], int | None]:
    """SQL of the score columns, binned where there are too many distinct values."""
    singles = [m.score for m in aligned.members if m.score]
    bins = None
    if singles and aligned.n_rows > EXACT_SCORES:
        asked = ", ".join(f"approx_count_distinct({quote(name)})" for name in singles)
        distinct = one_row(aligned.connection, f"SELECT {asked} FROM {quote(aligned.view)}")
        if max(distinct) > EXACT_SCORES:
            bins = SCORE_BINS
    columns = []
    for member in aligned.members:
        if member.score:
            quoted = f'"{member.score}"'
            columns.append(
                f"(least(floor({quoted} * {bins}), {bins} - 1) + 0.5) / {bins} AS {quoted}"
                if bins
                else f"{quoted}::DOUBLE AS {quoted}"
            )
        columns += [f'"{name}"' for name in (member.scores, member.label_rank) if name]
    return columns, bins


def _from_arrow(
    table: pa.Table, aligned: Aligned, *, unit: str | None, bins: int | None, scores: bool
) -> Cube:
    coded = encode_answers(table, ["label", *(member.prediction for member in aligned.members)])
    label_values, label_code = coded["label"]
    if any(v is None for v in label_values):
        raise InputError(
            "Some labels are missing. Give every example a label, or drop those without one."
        )
    classes = class_order(v for values, _ in coded.values() for v in values if v is not None)
    place: dict[str | None, int] = {name: i for i, name in enumerate(classes)}
    place[None] = -1

    def as_classes(values: list[str | None], code: Codes) -> Codes:
        return np.array([place[v] for v in values], dtype=np.int32)[code]

    prediction = np.stack(
        [as_classes(*coded[member.prediction]) for member in aligned.members], axis=1
    )
    columns = []
    for i, name in enumerate(aligned.group_columns):
        values, code = encode(table, f"g{i}")
        levels: tuple[str | None, ...] = class_order(v for v in values if v is not None)
        if any(v is None for v in values):
            levels += (None,)
        at = {value: k for k, value in enumerate(levels)}
        columns.append(
            GroupColumn(name, levels, np.array([at[v] for v in values], dtype=np.int32)[code])
        )
    task: Codes | None = None
    tasks: tuple[str, ...] = ()
    if aligned.has_task:
        values, code = encode(table, "task")
        if any(v is None for v in values):
            raise InputError(
                "Some rows have no task. Name a task in every row, or leave the column out."
            )
        tasks = class_order(v for v in values if v is not None)
        task = np.array([tasks.index(str(v)) for v in values], dtype=np.int32)[code]
    unit_code: NDArray[np.int64] | None = None
    unit_names: tuple[str, ...] = ()
    if unit:
        values, code = encode(table, unit)
        if any(v is None for v in values):
            raise InputError(
                f"Some rows have no value in the cluster column '{unit}'. Fill them in, or give "
                "every lone example a cluster of its own."
            )
        unit_names = unit_order(v for v in values if v is not None)
        at_unit = {name: i for i, name in enumerate(unit_names)}
        unit_code = np.array([at_unit[str(v)] for v in values], dtype=np.int64)[code]
    labels = class_order(v for v in label_values if v is not None)
    cube = Cube(
        members=tuple(CubeMember(m.variant, str(m.seed)) for m in aligned.members),
        label_classes=classes,
        other_classes=(),
        columns=tuple(columns),
        tasks=tasks,
        label=as_classes(label_values, label_code),
        prediction=prediction,
        count=numbers(table, "n").astype(np.int64),
        n_examples=aligned.n_examples,
        task=task,
        weight=numbers(table, "weight") if aligned.has_weight else None,
        unit=unit_code,
        unit_names=unit_names,
        unit_is_cluster=aligned.has_cluster,
        scores=_scores(table, aligned, bins, labels) if scores else None,
        left_out=tuple(
            replace(part, label=canonical(part.label, truth_as_number={*labels} <= {"0", "1"}))
            for part in aligned.left_out
        ),
    )
    return compact(with_own_classes(cube))


def _scores(table: pa.Table, aligned: Aligned, bins: int | None, labels: tuple[str, ...]) -> Scores:
    def stack(names: list[str | None]) -> Floats | None:
        if not any(names):
            return None
        nothing = np.full(table.num_rows, np.nan)
        return np.stack([numbers(table, n) if n else nothing for n in names], axis=1)

    vector = vectors(table, [m.scores for m in aligned.members])
    return Scores(
        score=stack([m.score for m in aligned.members]),
        vector=vector,
        rank=stack([m.label_rank for m in aligned.members]),
        vector_classes=() if vector is None else vector_classes(vector, aligned, labels),
        bins=bins,
    )


def training_table(aligned: Aligned, labels: Collection[str]) -> pd.DataFrame | None:
    """The training counts with canonical text and the user's column names; None without any.

    `labels` are the classes of the audit: where they are 0 and 1, truth values are read as such.
    """
    if aligned.train is None:
        return None
    train = aligned.train
    table = aligned.connection.sql(f"SELECT * FROM {quote(train.view)}").to_arrow_table()
    shown = {"label": "label", **({"task": "task"} if train.has_task else {})}
    shown |= {column: name for name, column in train.group_columns}
    columns: dict[str, Any] = {}
    for column, name in shown.items():
        values, code = encode(table, column)
        if column == "label" and not {*values} & {*labels}:
            values, code = encode(table, column, truth_as_number=True)
        columns[name] = np.array(values, dtype=object)[code]
    import pandas as pd

    counted = pd.DataFrame({**columns, "n": numbers(table, "n")}, dtype=object).astype({"n": float})
    # Rows that differed only in how they were written are one; pandas turns None into NaN.
    merged = counted.groupby([*columns], sort=False, dropna=False)["n"].sum().reset_index()
    return merged.astype(dict.fromkeys(columns, object)).where(merged.notna(), None)
