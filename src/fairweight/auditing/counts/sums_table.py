"""The cube of a table of sums: what an engine or a warehouse gives of outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fairweight.auditing.counts.cube import (
    Cube,
    CubeMember,
    GroupColumn,
    OutcomeCells,
    compact,
)
from fairweight.auditing.counts.group_by import encode, numbers, units_of
from fairweight.auditing.counts.outcome_sums import EXPONENTS, PER_MODEL, Exponents, OutcomeSums
from fairweight.base.types import Floats
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical
from fairweight.tables.connection import Workspace, quote, reading
from fairweight.tables.names import split_grouping
from fairweight.tables.sources import Source, summed_source
from fairweight.tables.spec import Better, OutcomeRole, TableSpec
from fairweight.tables.sums import CENTRE, Sums


@dataclass(frozen=True)
class SummedTable:
    """A cube, whose changes are counted from `baseline`, and the table that it was read from."""

    cube: Cube
    baseline: str
    groupings: tuple[str, ...]
    source: Source


def read_sums(tables: TableSpec) -> SummedTable | None:
    """The cube of a table of sums; None where the request is about anything else."""
    if tables.count is None or tables.outcome is None:
        return None
    workspace = Workspace()
    try:
        found = summed_source(workspace, tables)
        return None if found is None else _cube_of(tables, workspace, *found)
    finally:
        workspace.close()


def _cube_of(
    tables: TableSpec, workspace: Workspace, source: Source, compressed: Sequence[str]
) -> SummedTable:
    first = canonical(tables.baseline)
    prefix, known = f"{tables.outcome}_", (*compressed,)
    ends = ["", *(f"_{name}" for name in PER_MODEL)]
    ends += [f"_sum_{''.join(map(str, exponents))}" for exponents in EXPONENTS]
    taken = {f"{prefix}{variant}{end}" for variant in known for end in ends}
    rest = [name.removeprefix(prefix) for name in source.columns if name.startswith(prefix)
            and name not in taken]  # fmt: skip
    if first is None and len(rest) == 1:
        first = rest[0]
    if first not in rest:
        raise UnknownNameError("The baseline of these sums", str(first), rest)
    groupings = tuple(tables.groups or ())
    groups = list(dict.fromkeys(c for name in groupings for c in split_grouping(name)))
    held = Sums.of(tables, (str(first), *known))
    models = range(1, len(held.variants))
    terms = tuple(e for e in EXPONENTS if held.own(1, e) in source.columns)
    needed = [*groups, *tables.clusters, str(tables.count), CENTRE]
    needed += [name for name in (held.denominator, tables.weight) if name is not None]
    needed += [held.own(m) for m in range(len(held.variants))]
    needed += [held.own(m, exponents) for m in models for exponents in terms]
    needed += [held.own(m, name) for m in models for name in PER_MODEL]
    for name in needed:
        if name not in source.columns:
            raise UnknownNameError(f"In {source.shown}, the column", name, list(source.columns))
    texts = {*groups, *tables.clusters}
    selected = [quote(n) if n in texts else f"TRY_CAST({quote(n)} AS DOUBLE) AS {quote(n)}"
                for n in needed]  # fmt: skip
    with reading(source.shown):
        table = workspace.connection.sql(
            f"SELECT {', '.join(selected)} FROM {quote(source.view)}"
        ).to_arrow_table()
    keys = np.stack([numbers(table, held.own(m)) for m in range(len(held.variants))], axis=1)
    binary, numeric = bool(np.isin(keys, (0, 1)).all()), bool(np.isnan(keys).all())
    count = numbers(table, str(tables.count))
    others = [n for n in needed if n not in texts and n not in map(held.own, range(len(keys[0])))]
    finite = all(np.isfinite(numbers(table, name)).all() for name in others)
    if not (finite and binary != numeric and (count >= 1).all() and (count == count.round()).all()):
        raise InputError(
            f"{source.shown[:1].upper()}{source.shown[1:]} looks like sums of an outcome, but some "
            "of them are missing or no numbers; run the checks of fairweight count --sql, and its "
            "last statement again."
        )
    sums = None if binary else _sums(table, held, terms, count)
    grown = [e for e in terms if e[3]]
    shared = sums is None or not any(sums.product(e).any() for e in grown)
    role = OutcomeRole(held.outcome, held.better, binary, held.denominator, shared, tables.range)
    better = int(held.better == Better.HIGHER)
    worse = binary & (keys != better)
    units = [units_of(table, name) for name in tables.clusters]
    cube = Cube(
        members=tuple(CubeMember(name) for name in held.variants),
        label_classes=(str(better),),
        other_classes=(str(1 - better),) if worse.any() else (),
        columns=tuple(GroupColumn.of(name, *encode(table, name)) for name in groups),
        tasks=(),
        label=np.zeros(len(count), dtype=np.int32),
        prediction=worse.astype(np.int32),
        count=count.astype(np.int64),
        n_examples=int(count.sum()),
        weight=None if tables.weight is None else numbers(table, tables.weight) / count,
        unit=units[0][0] if units else None,
        unit_names=units[0][1] if units else (),
        unit_is_cluster=bool(units),
        second_unit=units[1][0] if len(units) > 1 else None,
        second_unit_names=units[1][1] if len(units) > 1 else (),
        outcome=OutcomeCells(role, sums=sums),
    )
    return SummedTable(compact(cube), str(first), groupings, source)


def _sums(table: pa.Table, held: Sums, terms: tuple[Exponents, ...], count: Floats) -> OutcomeSums:
    shape = (len(count), len(held.variants))
    products = np.zeros((*shape, len(terms)))
    made: dict[str, Any] = {name: np.zeros(shape) for name in PER_MODEL}
    for m in range(1, len(held.variants)):
        for t, exponents in enumerate(terms):
            products[:, m, t] = numbers(table, held.own(m, exponents))
        for name in PER_MODEL:
            made[name][:, m] = numbers(table, held.own(m, name))
    for t, exponents in enumerate(terms):  # the same in every model, where nothing changes
        if not exponents[1] and not exponents[3]:
            products[:, 0, t] = products[:, 1, t]
    den = count if held.denominator is None else numbers(table, held.denominator)
    return OutcomeSums(
        held.variants[0], terms, numbers(table, CENTRE), count, den, products, **made
    )
