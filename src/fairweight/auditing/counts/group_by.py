"""Count an aligned view into a cube: one SQL GROUP BY, then canonical text on the few cells."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.types as kinds
from numpy.typing import NDArray

from fairweight.auditing.counts.counts import sums
from fairweight.auditing.counts.cube import (
    Codes,
    Cube,
    CubeMember,
    GroupColumn,
    OutcomeCells,
    Scores,
    compact,
    side_by_side,
    unit_order,
    with_own_classes,
)
from fairweight.auditing.counts.outcome_sums import (
    NORMAL_FROM,
    PER_MODEL,
    Exponents,
    OutcomeSums,
    terms_of,
)
from fairweight.base.types import Floats
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, class_order
from fairweight.tables.connection import one_row, quote
from fairweight.tables.spec import Better

if TYPE_CHECKING:
    from fairweight.tables.align import Aligned


# Columns of an Arrow table as arrays: codes of canonical text, numbers, score vectors.


def encode(
    table: pa.Table, name: str, *, truth_as_number: bool = False
) -> tuple[list[str | None], Codes]:
    """Canonical text of the distinct values of a column, and a code per row."""
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = compute.dictionary_encode(column, null_encoding="encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    held = encoded.dictionary
    raw: list[Any] = held.to_pylist()
    if pa.types.is_float32(held.type) or pa.types.is_float16(held.type):
        # As a Python float 0.1 in single precision would be 0.10000000149011612.
        raw = [None if v is None else held.type.to_pandas_dtype()(v) for v in raw]
    values = [canonical(v, truth_as_number=truth_as_number) for v in raw]
    return values, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)


def encode_answers(
    table: pa.Table, names: Sequence[str]
) -> dict[str, tuple[list[str | None], Codes]]:
    """Labels and predictions, encoded alike: truth values beside 0 and 1 are 1 and 0 too."""
    coded = {name: encode(table, name) for name in names}
    truths = [name for name in names if kinds.is_boolean(table.schema.field(name).type)]
    others = {value for name in names if name not in truths for value in coded[name][0]}
    if truths and others & {"0", "1"}:
        return {name: encode(table, name, truth_as_number=True) for name in names}
    return coded


def numbers(table: pa.Table, name: str) -> Floats:
    # Whole numbers beyond 2^53 are rounded to the nearest double.
    column = table.column(name).cast(pa.float64(), safe=False)
    numbers: Floats = column.to_numpy(zero_copy_only=False).astype(np.float64)
    return numbers


def vector_classes(vector: Floats, aligned: Aligned, labels: tuple[str, ...]) -> tuple[str, ...]:
    """The class of each entry of a score vector: as named, or the labels in their order."""
    length = vector.shape[2]
    named = aligned.score_classes
    if not aligned.has_label:  # nothing needs to be found by its name
        return named or tuple(map(str, range(length)))
    if named is None:
        if length != len(labels):
            raise InputError(
                f"The score vectors have {length} entries, but {len(labels)} classes occur as "
                "labels; say which class each entry is of with score_classes=."
            )
        return labels
    absent = [name for name in labels if name not in named]
    if absent:
        raise InputError(
            f"The score vectors have no entry for the label '{absent[0]}'; score_classes= must "
            "name every class that occurs as a label."
        )
    return named


def vectors(table: pa.Table, names: list[str | None]) -> Floats | None:
    """(rows, members, classes) of the list columns; every list has the same length."""
    if not all(names):
        return None
    stacked: list[NDArray[np.float64]] = []
    for name in names:
        column = table.column(str(name)).combine_chunks()
        flat = column.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        lengths = set(compute.unique(compute.list_value_length(column)).to_pylist())
        if len(lengths) != 1 or None in lengths:
            raise InputError(
                f"The score vectors of '{name}' have different lengths or gaps; give every row "
                "one probability per class."
            )
        stacked.append(flat.reshape(table.num_rows, -1))
    if len({part.shape[1] for part in stacked}) > 1:
        raise InputError(
            "The members' score vectors have different lengths; give every member one probability "
            "per class, in the same order."
        )
    return np.stack(stacked, axis=1)


EXACT_SCORES = 1_000_000  # distinct score values up to which they are kept as they are
SCORE_BINS = 2**16


def count(aligned: Aligned, *, scores: bool = False) -> Cube:
    """The cube of an aligned view; with `scores`, cells also tell scores and ranks apart.

    Of many numbers cells of more than 1,000 examples are summed where they are; the others hold
    single examples.
    """
    if aligned.n_rows >= SUMMED_FROM and not scores:
        made = _summed_there(aligned)
        if made is not None:
            return made
    keys = [f"g{i}" for i in range(len(aligned.group_columns))]
    keys += ["label", *(member.prediction for member in aligned.members)]
    if aligned.has_task:
        keys.append("task")
    if aligned.has_weight:
        keys.append("weight")
    unit = "cluster" if aligned.has_cluster else "example_id" if aligned.has_task else None
    if unit:
        keys.append(unit)
    if aligned.has_second_cluster:
        keys.append("second_cluster")
    keys += [m.denominator for m in aligned.members if m.denominator]
    selected = [f'"{key}"' for key in keys]
    bins: int | None = None
    if scores:
        singles = [m.score for m in aligned.members if m.score]
        if singles and aligned.n_rows > EXACT_SCORES:  # too many distinct values are binned
            asked = ", ".join(f"approx_count_distinct({quote(name)})" for name in singles)
            distinct = one_row(aligned.connection, f"SELECT {asked} FROM {quote(aligned.view)}")
            bins = SCORE_BINS if max(distinct) > EXACT_SCORES else None
        for member in aligned.members:
            if member.score:
                quoted = f'"{member.score}"'
                selected.append(
                    f"(least(floor({quoted} * {bins}), {bins} - 1) + 0.5) / {bins} AS {quoted}"
                    if bins
                    else f"{quoted}::DOUBLE AS {quoted}"
                )
            selected += [f'"{name}"' for name in (member.scores, member.label_rank) if name]
    number = 'CAST(sum("count") AS BIGINT)' if aligned.has_count else "count(*)"
    table = aligned.connection.sql(
        f"SELECT {', '.join(selected)}, {number} AS n FROM {quote(aligned.view)} GROUP BY ALL"
    ).to_arrow_table()
    if table.num_rows == 0:
        raise InputError("The table has no rows, so there is nothing to audit.")
    return _from_arrow(table, aligned, unit=unit, bins=bins, scores=scores)


SUMMED_FROM = 200_000  # rows of numbers from which they are summed by SQL
MOST_SINGLE = 1_000_000  # examples in smaller cells; of more their numbers are counted


def _summed_there(aligned: Aligned) -> Cube | None:
    """Sums by SQL, and the examples of small cells as cells of their own.

    The last digit of a sum depends on how DuckDB shares out rows. None where there are no numbers,
    several members of a variant, or so many small cells that they are nearly all examples.
    """
    role, members = aligned.outcome, aligned.members
    variants = {member.variant for member in members}
    if role is None or role.binary or len(variants) < len(members):
        return None
    copies = 'CAST("count" AS DOUBLE)' if aligned.has_count else "1.0::DOUBLE"
    view = quote(aligned.view)
    connection = aligned.connection
    total = float(one_row(connection, f"SELECT sum({copies}) FROM {view}")[0])
    unit = "cluster" if aligned.has_cluster else None
    if aligned.has_task and unit is None and aligned.n_examples < total:
        unit = "example_id"  # with all its tasks
    keys = [f"g{i}" for i in range(len(aligned.group_columns))] + ["label"]
    keys += ["task"] if aligned.has_task else []
    keys += [unit] if unit else []
    keys += ["second_cluster"] if aligned.has_second_cluster else []
    listed = ", ".join(quote(key) for key in keys)
    sized = all(member.denominator for member in members)
    weight = "weight" if aligned.has_weight else "1.0::DOUBLE"

    def denominator(place: int) -> str:
        return quote(str(members[place].denominator)) if sized else "1.0::DOUBLE"

    # The baseline's ratio of every task: what its numerators are taken about.
    first, task = quote(members[0].prediction), "task" if aligned.has_task else "NULL"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE fw_centre AS SELECT {task} AS of_task, "
        f"coalesce(sum({first} * {weight} * {copies}) / "
        f"nullif(sum({denominator(0)} * {weight} * {copies}), 0), 0.0) AS centre "
        f"FROM {view} GROUP BY ALL"
    )
    higher = role.better == Better.HIGHER
    compressed = range(1, len(members))
    terms = terms_of(
        4 if sized and not role.shared else 3 if sized or aligned.has_weight else 2,
        1 if unit else 3,
    )
    values = [
        f"({first} - centre * {denominator(0)}) * {weight} AS num",
        f"{denominator(0)} * {weight} AS den",
        f"{copies} AS k", f"{weight} AS w", f"{denominator(0)} AS den_b", "centre",
    ]  # fmt: skip
    asked = {
        "n": "CAST(sum(k) AS BIGINT)", "w_all": "sum(w * k)", "den_b": "sum(den_b * k)",
        "centre": "any_value(centre)",
    }  # fmt: skip
    for m in compressed:
        own, of_own = quote(members[m].prediction), denominator(m)
        gain = f"({own} - {first})" if higher else f"({first} - {own})"
        ratio = f"{own} * {denominator(0)} - {first} * {of_own}"
        ratio = ratio if higher else f"-({ratio})"
        values += [
            f"({own} - {first}) * {weight} AS num_change_{m}",
            f"({of_own} - {denominator(0)}) * {weight} AS den_change_{m}",
            f"{gain} AS gain_{m}",
            f"CASE WHEN {of_own} = {denominator(0)} THEN {gain} ELSE {ratio} END AS improved_{m}",
            f"({own} <> {first} OR {of_own} <> {denominator(0)}) AS moved_{m}",
        ]
        names = ("num", f"num_change_{m}", "den", f"den_change_{m}")
        for t, exponents in enumerate(terms):
            factors = [n for n, times in zip(names, exponents, strict=True) for _ in range(times)]
            asked[f"t{t}_{m}"] = f"sum({' * '.join(factors)} * k)"
        for name, sql in (
            ("better", f"sum(CASE WHEN improved_{m} > 0 THEN k ELSE 0 END)"),
            ("worse", f"sum(CASE WHEN improved_{m} < 0 THEN k ELSE 0 END)"),
            ("changed", f"sum(CASE WHEN moved_{m} THEN k ELSE 0 END)"),
            ("changed_weight", f"sum(CASE WHEN moved_{m} THEN k * w ELSE 0 END)"),
            ("gains", f"sum(greatest(gain_{m}, 0) * k)"),
            ("losses", f"sum(greatest(-gain_{m}, 0) * k)"),
            ("largest_loss", f"max(greatest(-gain_{m}, 0))"),
        ):
            asked[f"{name}_{m}"] = sql
    source = f"{view} JOIN fw_centre ON {task} IS NOT DISTINCT FROM of_task"
    chosen = ", ".join(f"{sql} AS {name}" for name, sql in asked.items())
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE fw_cells AS SELECT {listed}, {chosen} FROM "
        f"(SELECT {listed}, {', '.join(values)} FROM {source}) GROUP BY {listed}"
    )
    least = 0 if unit else NORMAL_FROM
    cells, single = one_row(
        connection, f"SELECT count(*), coalesce(sum(n) FILTER (n <= {least}), 0) FROM fw_cells"
    )
    if single > MOST_SINGLE or not cells:
        return None
    parts = []
    if single:
        on = " AND ".join(f"rows.{quote(k)} IS NOT DISTINCT FROM few.{quote(k)}" for k in keys)
        taken = [*keys, *(m.prediction for m in members)]
        taken += [str(m.denominator) for m in members if sized]
        taken += ["weight"] if aligned.has_weight else []
        taken_from = ", ".join(f"rows.{quote(name)}" for name in taken)
        number = 'CAST(sum(rows."count") AS BIGINT)' if aligned.has_count else "count(*)"
        table = connection.sql(
            f"SELECT {taken_from}, {number} AS n FROM {view} AS rows "
            f"JOIN (FROM fw_cells WHERE n <= {least}) AS few ON {on} GROUP BY ALL"
        ).to_arrow_table()
        centres = dict(connection.execute("FROM fw_centre").fetchall())
        counted = _from_arrow(table, aligned, unit=None, bins=None, scores=False)
        parts.append(_alike(counted, centres, terms))
    large = connection.sql(f"FROM fw_cells WHERE n > {least}").to_arrow_table()
    if large.num_rows:
        shape = (large.num_rows, len(members))
        products = np.zeros((*shape, len(terms)))
        made: dict[str, Any] = {name: np.zeros(shape) for name in PER_MODEL}
        for m in compressed:
            for t in range(len(terms)):
                products[:, m, t] = numbers(large, f"t{t}_{m}")
            for name in PER_MODEL:
                made[name][:, m] = numbers(large, f"{name}_{m}")
        for t, exponents in enumerate(terms):
            if not exponents[1] and not exponents[3]:
                products[:, 0, t] = products[:, 1, t]
        held = OutcomeSums(
            aligned.baseline, terms, numbers(large, "centre"), numbers(large, "n"),
            numbers(large, "den_b"), products, **made,
        )  # fmt: skip
        if aligned.has_weight:
            each = compute.divide(large.column("w_all"), large.column("n").cast(pa.float64()))
            large = large.append_column("weight", each)
        parts.append(_from_arrow(large, aligned, unit=unit, bins=None, scores=False, sums=held))
    whole = side_by_side(parts) if len(parts) > 1 else parts[0]
    return replace(whole, n_examples=aligned.n_examples, left_out=parts[0].left_out)


def _alike(cube: Cube, centres: dict[Any, float], terms: tuple[Exponents, ...]) -> Cube:
    """Numbers as sums, every cell for itself: its examples are alike."""
    assert cube.outcome is not None
    assert cube.outcome.numerator is not None
    sizes, n_cells = cube.outcome.denominator, cube.n_cells
    centre = np.full(n_cells, next(iter(centres.values())))
    if cube.task is not None:
        named = {canonical(task): value for task, value in centres.items()}
        centre = np.array([named[task] for task in cube.tasks])[cube.task]
    held = OutcomeSums.of_values(
        cube.members[0].variant,
        [
            (cube.outcome.numerator[:, m], np.ones(n_cells) if sizes is None else sizes[:, m])
            for m in range(len(cube.members))
        ],
        first=0,
        higher=cube.outcome.role.better == Better.HIGHER,
        terms=terms,
        centre=centre,
        count=cube.count.astype(np.float64),
        weight=cube.weight,
        place=np.arange(n_cells),
        size=n_cells,
    )
    sums = replace(held, alike=np.ones(n_cells, dtype=bool))
    return replace(cube, outcome=OutcomeCells(cube.outcome.role, sums=sums))


def has_scores(aligned: Aligned) -> bool:
    """Whether any member brings scores, score vectors or label ranks."""
    return any(m.score or m.scores or m.label_rank for m in aligned.members)


def _from_arrow(
    table: pa.Table,
    aligned: Aligned,
    *,
    unit: str | None,
    bins: int | None,
    scores: bool,
    sums: OutcomeSums | None = None,
) -> Cube:
    answers = ["label", *(member.prediction for member in aligned.members)]
    numeric = aligned.outcome is not None and not aligned.outcome.binary
    if numeric:  # everybody is right: numbers stand for it
        right = table.column("label")
        coded = {name: encode(pa.table({name: right}), name) for name in answers}
    else:
        coded = encode_answers(table, answers)
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
    columns = [
        GroupColumn.of(name, *encode(table, f"g{i}"))
        for i, name in enumerate(aligned.group_columns)
    ]
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
    unit_code, unit_names = (None, ()) if unit is None else units_of(table, unit)
    second_code, second_names = (
        units_of(table, "second_cluster") if aligned.has_second_cluster else (None, ())
    )
    labels = class_order(v for v in label_values if v is not None)
    held: Scores | None = None
    if scores:
        nothing = np.full(table.num_rows, np.nan)
        score, rank = (
            np.stack([numbers(table, n) if n else nothing for n in names], axis=1)
            if any(names)
            else None
            for names in (
                [m.score for m in aligned.members],
                [m.label_rank for m in aligned.members],
            )
        )
        vector = vectors(table, [m.scores for m in aligned.members])
        of_entries = () if vector is None else vector_classes(vector, aligned, labels)
        held = Scores(score, vector, rank, of_entries, bins)
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
        second_unit=second_code,
        second_unit_names=second_names,
        scores=held,
        outcome=None if aligned.outcome is None else _outcomes(table, aligned, numeric, sums),
        labelled=aligned.has_label or aligned.outcome is not None,
        left_out=tuple(
            replace(part, label=canonical(part.label, truth_as_number={*labels} <= {"0", "1"}))
            for part in aligned.left_out
        ),
    )
    return compact(with_own_classes(cube))


def units_of(table: pa.Table, name: str) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """The unit of every row, and the units' names in their order."""
    values, code = encode(table, name)
    if any(v is None for v in values):
        raise InputError(
            f"Some rows have no value in the cluster column '{name}'. Fill them in, or give "
            "every lone example a cluster of its own."
        )
    names = unit_order(v for v in values if v is not None)
    at = {value: i for i, value in enumerate(names)}
    return np.array([at[str(v)] for v in values], dtype=np.int64)[code], names


def _outcomes(
    table: pa.Table, aligned: Aligned, numeric: bool, sums: OutcomeSums | None
) -> OutcomeCells:
    assert aligned.outcome is not None
    if not numeric or sums is not None:
        return OutcomeCells(aligned.outcome, sums=sums)
    sizes = [m.denominator for m in aligned.members]
    return OutcomeCells(
        aligned.outcome,
        np.stack([numbers(table, m.prediction) for m in aligned.members], axis=1),
        np.stack([numbers(table, str(name)) for name in sizes], axis=1) if all(sizes) else None,
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

    counted = pd.DataFrame({**columns, "n": numbers(table, "n")}, dtype=object).astype({"n": float})
    # Rows that differed only in how they were written are one; pandas turns None into NaN.
    merged = counted.groupby([*columns], sort=False, dropna=False)["n"].sum().reset_index()
    return merged.astype(dict.fromkeys(columns, object)).where(merged.notna(), None)


# Which test set an audit is about, whatever the models said: a digest that ignores row order.


def of_rows(aligned: Aligned) -> str | None:
    """The digest of ids and labels (and tasks) of all examples of the baseline; None without ids.

    Examples that other models lack are in it, and group columns are not: neither a model that
    leaves rows out nor another choice of groups makes a test set a new one.
    """
    if aligned.identified is None:
        return None
    kind, of_label = aligned.connection.execute(
        f"SELECT typeof(example_id), {'typeof(label)' if aligned.has_label else 'NULL'} "
        f"FROM {aligned.identified} LIMIT 1"
    ).fetchone() or ("", "")
    text = "CAST(example_id AS VARCHAR)"
    if kind in ("DOUBLE", "FLOAT"):  # 7.0 in one file is 7 in another
        whole = "CAST(CAST(example_id AS DECIMAL(38, 0)) AS VARCHAR)"
        text = f"CASE WHEN example_id = trunc(example_id) THEN {whole} ELSE {text} END"
    task = "task" if aligned.has_task else "NULL"
    # DuckDB gives moments with a zone to Python only where a package of time zones is installed.
    label = "CAST(label AS VARCHAR)" if of_label == "TIMESTAMP WITH TIME ZONE" else "label"
    label = label if aligned.has_label else "NULL"
    rows = aligned.connection.execute(
        f"SELECT {task} AS task, {label} AS label, count(*), "
        f"sum(md5_number_lower({text})::HUGEINT) "
        f"FROM {aligned.identified} GROUP BY ALL"
    ).fetchall()
    totals: dict[tuple[str | None, str | None], tuple[int, int]] = {}
    for of_task, of_label, n, digest in rows:  # 1, 1.0 and "1" are one label
        key = (canonical(of_task), canonical(of_label, truth_as_number=True))
        n_before, before = totals.get(key, (0, 0))
        totals[key] = n_before + n, before + int(digest)
    lines = sorted(json.dumps([*key, n, str(digest)]) for key, (n, digest) in totals.items())
    return "ids:" + hashlib.sha256("\n".join(lines).encode()).hexdigest()


def of_cells(cube: Cube) -> str:
    """The digest of how many examples share task, groups and label, where there are no ids."""
    columns = sorted(cube.columns, key=lambda column: column.name)
    codes = [] if cube.task is None else [(cube.task, len(cube.tasks))]
    codes += [(column.code, len(column.values)) for column in columns]
    codes += [(cube.label, len(cube.label_classes))]
    place = np.zeros(cube.n_cells, dtype=np.int64)
    for code, size in codes:  # made dense at every step, so that it cannot overflow
        place = np.unique(place * size + code, return_inverse=True)[1].reshape(-1)
    first = np.unique(place, return_index=True)[1]
    names = [cube.tasks, [[c.name, c.values] for c in columns], cube.label_classes]
    found = hashlib.sha256(json.dumps(names).encode())
    for code, _ in codes:
        found.update(code[first].astype("<i8").tobytes())
    found.update(sums(place, cube.count, len(first)).astype("<i8").tobytes())
    return "cells:" + found.hexdigest()
