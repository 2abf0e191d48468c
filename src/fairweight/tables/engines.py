"""Frames that an engine holds (Spark, ibis, polars, DuckDB): counted where they are.

narwhals writes the same joins and the same GROUP BY for each of them; only the counts come here,
as a wide table with a column of counts. Identities are checked there too, as for files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import util
from typing import TYPE_CHECKING, Any

from fairweight.base.fields import options_of
from fairweight.base.wording import shown
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.names import split_grouping
from fairweight.tables.spec import SourceRef, TableSpec

if TYPE_CHECKING:
    import narwhals as nw

COUNT = "n"
# What needs rows, or other tables beside them.
UNUSED = ("examples", "task", "scores", "count", "query", "score_classes", "outcome", "repeat",
          "unlabelled")  # fmt: skip


def counted_there(tables: TableSpec) -> TableSpec:
    """The request about the counts of what it was about: the engine counts, rows stay with it."""
    if util.find_spec("narwhals") is None:
        raise InputError(
            f"A {tables.sources[0].frame} needs narwhals, which is not installed: "
            "pip install 'fairweight[frames]'"
        )
    if tables.groups is None:
        raise InputError(
            f"groups= is missing; name the group columns of a {tables.sources[0].frame} "
            "(groups=[] for none): its rows are counted where they are, and nothing is guessed."
        )
    for name in UNUSED:
        if getattr(tables, name) != options_of(tables)[name][0].default:
            raise InputError(
                f"{name}= cannot be used with a {tables.sources[0].frame}, whose rows are counted "
                "where they are; join and filter the frame itself, or bring its rows here."
            )
    frame, columns = _one_row_each(tables)
    kept = [*_facts(tables), *columns.values()]
    counted = frame.group_by(*kept).agg(_narwhals().len().alias(COUNT)).collect(backend="pyarrow")
    source = SourceRef(None, None, "pyarrow Table", None, counted.to_native())
    return replace(
        tables,
        sources=(source,),
        predictions=_members(columns),
        baseline=tables.baseline or (next(iter(columns))[0] if tables.sources[0].variant else None),
        count=COUNT,
    )


def _narwhals() -> Any:
    import narwhals

    return narwhals


def _members(columns: dict[tuple[str, str], str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for (variant, _), column in columns.items():
        found[variant] = (*found.get(variant, ()), column)
    return found


def _facts(tables: TableSpec) -> list[str]:
    """Columns of examples that are counted by: groups, label, clusters and weight."""
    groups = [column for name in tables.groups or () for column in split_grouping(name)]
    weight = [tables.weight] if tables.weight is not None else []
    return list(dict.fromkeys([*groups, tables.label, *tables.clusters, *weight]))


def _one_row_each(tables: TableSpec) -> tuple[nw.LazyFrame[Any], dict[tuple[str, str], str]]:
    """A frame with one row per example, and the prediction column of each variant and member."""
    of = _narwhals()
    frames = [(ref.variant, _opened(ref)) for ref in tables.sources]
    if tables.predictions is not None:
        if len(frames) != 1:
            raise InputError("predictions= names columns of one wide frame; give one frame.")
        columns = {
            (variant, str(place)): column
            for variant, held in tables.predictions.items()
            for place, column in enumerate(held)
        }
        frame = frames[0][1]
        there = _require(frame, [*_facts(tables), *columns.values()])
        if tables.id in there:
            _check_unique(frame, tables.id, "the frame")
        return frame, columns
    parts: list[tuple[str, str, nw.LazyFrame[Any]]] = []
    for name, frame in frames:
        there = _require(frame, [tables.id, tables.prediction, *_facts(tables)])
        keys = [c for c in (tables.variant, tables.seed) if c in there]
        if name is not None or not keys or tables.variant not in keys:
            if name is None:
                raise InputError(
                    f"The frame has no column '{tables.variant}'; name the frames: "
                    "{'dense': frame, 'int8': frame}."
                )
            keys = [c for c in keys if c != tables.variant]
        found = frame.select(*keys).unique().collect(backend="pyarrow").rows() if keys else [()]
        for values in sorted(found, key=str):
            own = frame
            for key, value in zip(keys, values, strict=True):
                own = own.filter(of.col(key) == value)
            said = dict(zip(keys, map(str, values), strict=True))
            variant = name if name is not None else said[tables.variant]
            parts.append((str(variant), said.get(tables.seed, "0"), own))
    first_name = f"'{tables.baseline}'" if tables.baseline else "the first"
    parts.sort(key=lambda part: part[0] != tables.baseline)
    if len({variant for variant, _, _ in parts}) < 2:
        raise InputError("There is no compressed variant; an audit compares at least two.")
    joined, columns = None, {}
    label = tables.label
    for place, (variant, seed, own) in enumerate(parts):
        column = f"fw_prediction_{place}"
        columns[variant, seed] = column
        _check_unique(own, tables.id, f"'{variant}'")
        taken = own.select(
            tables.id,
            of.col(tables.prediction).alias(column),
            *(_facts(tables) if joined is None else [of.col(label).alias(f"fw_label_{place}")]),
        )
        if joined is None:
            joined, rows = taken, _rows(taken)
            continue
        both = joined.join(taken, on=tables.id, how="inner")
        if not (_rows(both) == rows == _rows(taken)):
            raise InputError(
                f"{first_name.capitalize()} and '{variant}' do not have the same examples "
                f"({rows:,} and {_rows(taken):,}, {_rows(both):,} in both); join and filter the "
                "frames, so that every example is in both."
            )
        other = of.col(f"fw_label_{place}")
        differ = both.filter(of.col(label) != other).select(tables.id, label, other).head(1)
        for example, mine, theirs in differ.collect(backend="pyarrow").rows():
            raise InputError(
                f"The label of the example {shown(example, 60)} differs: {shown(mine, 40)} and, "
                f"in '{variant}', {shown(theirs, 40)}; correct the frames."
            )
        joined = both.drop(f"fw_label_{place}")
    assert joined is not None
    return joined, columns


def _opened(ref: SourceRef) -> nw.LazyFrame[Any]:
    try:
        frame: nw.LazyFrame[Any] = _narwhals().from_native(ref.given).lazy()
    except TypeError as error:
        raise InputError(f"narwhals cannot read this {ref.frame}: {shown(error, 120)}") from None
    return frame


def _require(frame: nw.LazyFrame[Any], names: Sequence[str]) -> list[str]:
    """The columns of a frame; an error if one that is needed is not there."""
    there = list(frame.collect_schema().names())
    for name in names:
        if name not in there:
            raise UnknownNameError("In the frame, the column", name, there)
    return there


def _rows(frame: nw.LazyFrame[Any]) -> int:
    counted = frame.select(_narwhals().len()).collect(backend="pyarrow")
    return int(counted.rows()[0][0])


def _check_unique(frame: nw.LazyFrame[Any], id: str, where: str) -> None:
    nw = _narwhals()
    twice = frame.group_by(id).agg(nw.len().alias(COUNT)).filter(nw.col(COUNT) > 1).head(1)
    for example, times in twice.collect(backend="pyarrow").rows():
        raise InputError(
            f"In {where}, the id {shown(example, 60)} occurs {times} times; every example must "
            f"occur once (the column '{id}')."
        )
