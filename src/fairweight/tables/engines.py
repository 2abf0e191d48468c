"""Frames that an engine holds (Spark, ibis, polars, DuckDB): counted where they are.

narwhals writes the same joins and the same GROUP BY for each of them; only the counts come here,
as a wide table with a column of counts; of outcomes a table of sums (`sums.py`). Identities are
checked there too, as for files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import util
from typing import TYPE_CHECKING, Any

from fairweight.base.fields import options_of
from fairweight.base.wording import shown
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.names import split_grouping
from fairweight.tables.roles import BASELINE_NAMES
from fairweight.tables.spec import SourceRef, TableSpec
from fairweight.tables.sums import CENTRE, COUNT, Sums

if TYPE_CHECKING:
    import narwhals as nw

# What needs rows, or other tables beside them.
UNUSED = ("examples", "task", "scores", "count", "query", "score_classes", "repeat",
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
    if tables.outcome is not None:
        return _sums_there(tables, frame, columns)
    predicted = {member: own[0] for member, own in columns.items()}
    kept = [*_facts(tables), *predicted.values()]
    counted = frame.group_by(*kept).agg(_narwhals().len().alias(COUNT)).collect(backend="pyarrow")
    members: dict[str, tuple[str, ...]] = {}
    for (variant, _), column in predicted.items():
        members[variant] = (*members.get(variant, ()), column)
    source = SourceRef(None, None, "pyarrow Table", None, counted.to_native())
    return replace(
        tables,
        sources=(source,),
        predictions=members,
        baseline=tables.baseline or (next(iter(columns))[0] if tables.sources[0].variant else None),
        count=COUNT,
    )


def _sums_there(
    tables: TableSpec, frame: nw.LazyFrame[Any], columns: dict[tuple[str, str], tuple[str, ...]]
) -> TableSpec:
    """The request about sums of outcomes; outcomes that are all 0 or 1 are keys as they are."""
    of = _narwhals()
    names = [variant for variant, _ in columns]
    first = tables.baseline
    if first is None:
        likely = [name for name in names if name.lower() in BASELINE_NAMES]
        first = likely[0] if likely and tables.sources[0].variant is None else names[0]
    if first not in names:
        raise UnknownNameError("The baseline", first, names)
    order = sorted(columns, key=lambda member: member[0] != first)
    sums = Sums.of(tables, tuple(variant for variant, _ in order))
    sized, weight = sums.denominator is not None, tables.weight
    facts = [name for name in _facts(tables) if name != weight]
    one = of.lit(1.0)
    numbers = {"fw_w": one if weight is None else of.col(weight).cast(of.Float64())}
    for m, member in enumerate(order):
        numbers[f"fw_n{m}"] = of.col(columns[member][0]).cast(of.Float64())
        numbers[f"fw_d{m}"] = of.col(columns[member][1]).cast(of.Float64()) if sized else one
    rows = frame.select(*facts, *(value.alias(name) for name, value in numbers.items()))
    shown = {f"fw_{short}{m}": column for m, member in enumerate(order)
             for short, column in zip("nd", columns[member], strict=False)}  # fmt: skip
    centre, whole = _checked(tables, rows, shown)
    binary = whole and not sized
    missing = of.lit(None).cast(of.Float64())
    keys = {sums.own(m): of.col(f"fw_n{m}") if binary else missing for m in range(len(order))}
    values = sums.values(
        lambda name: of.lit(centre) if name == CENTRE else of.col(name),
        lambda test, then, other: of.when(test > 0).then(then).otherwise(other),
        lambda one, other, then, rest: of.when(one == other).then(then).otherwise(rest),
    )
    if binary and weight is not None:  # of examples that are counted each one's own
        keys["fw_weight"] = of.col("fw_w")
    base = rows.select(*facts, *(v.alias(k) for k, v in keys.items()),
                       *(v.alias(k) for k, v in values.items()))  # fmt: skip
    factors = {}
    for name, parts in sums.totals().items():
        product = of.col(parts[0])
        for part in parts[1:]:
            product = product * of.col(part)
        factors[name] = product
    factors |= {name: of.col(value) for name, value in sums.largest().items()}
    wide = base.select(*facts, *keys, *(v.alias(name) for name, v in factors.items()))
    counted = wide.group_by(*facts, *keys).agg(
        of.len().alias(COUNT),
        *(of.col(name).sum() for name in sums.totals()),
        *(of.col(name).max() for name in sums.largest()),
    )
    held = counted.with_columns(of.lit(centre).alias(CENTRE)).collect(backend="pyarrow")
    return replace(
        tables,
        sources=(SourceRef.of(held.to_native()),),
        outcome=sums.outcome,
        denominator=sums.denominator,
        baseline=first,
        count=COUNT,
    )


def _checked(
    tables: TableSpec, rows: nw.LazyFrame[Any], shown: Mapping[str, str]
) -> tuple[float, bool]:
    """The baseline's ratio, and whether every outcome is 0 or 1; an error where one is no number.

    Parameters
    ----------
    shown
        `fw_n0 ...` and `fw_d0 ...` to the frame's own columns, for messages.
    """
    of = _narwhals()
    low, high = tables.range or (-float("inf"), float("inf"))
    asked = {
        "above": (of.col("fw_n0") * of.col("fw_w")).sum(),
        "below": (of.col("fw_d0") * of.col("fw_w")).sum(),
    }
    for name in shown:
        value = of.col(name)
        floor = low if name.startswith("fw_n") else 0.0
        asked[f"missing_{name}"] = value.null_count()
        asked[f"least_{name}"], asked[f"most_{name}"] = value.min(), value.max()
        asked[f"other_{name}"] = (~value.is_in([0.0, 1.0])).cast(of.Int64()).sum()
        asked[f"odd_{name}"] = (
            ((value < floor) | (value > high) | ~value.is_finite()).cast(of.Int64()).sum()
        )
    found = rows.select(*(sql.alias(name) for name, sql in asked.items()))
    held = dict(zip(asked, found.collect(backend="pyarrow").rows()[0], strict=True))
    for name, column in shown.items():
        role = "outcome" if name.startswith("fw_n") else "denominator"
        if held[f"missing_{name}"]:
            raise InputError(
                f"The {role} '{column}' is missing in {held[f'missing_{name}']:,} rows; give the "
                "number that such an example deserves, or leave the example out for all models."
            )
        if held[f"odd_{name}"]:
            allowed = "finite" if tables.range is None else f"within --range {low:g},{high:g}"
            allowed = allowed if role == "outcome" else "finite and not negative"
            raise InputError(
                f"The {role} '{column}' must be {allowed}; it is from {held[f'least_{name}']:g} to "
                f"{held[f'most_{name}']:g}."
            )
    whole = not any(held[f"other_{name}"] for name in shown if name.startswith("fw_n"))
    return (held["above"] / held["below"] if held["below"] else 0.0), whole


def _narwhals() -> Any:
    import narwhals

    return narwhals


def _facts(tables: TableSpec) -> list[str]:
    """Columns of examples that are counted by: groups, label, clusters and weight."""
    groups = [column for name in tables.groups or () for column in split_grouping(name)]
    weight = [tables.weight] if tables.weight is not None else []
    label = [tables.label] if tables.outcome is None else []
    return list(dict.fromkeys([*groups, *label, *tables.clusters, *weight]))


def _one_row_each(
    tables: TableSpec,
) -> tuple[nw.LazyFrame[Any], dict[tuple[str, str], tuple[str, ...]]]:
    """A frame with one row per example, and the columns of each variant and member.

    These are the prediction, or the outcome and, where there is one, its denominator.
    """
    of = _narwhals()
    frames = [(ref.variant, _opened(ref)) for ref in tables.sources]
    several: Any = tables.predictions if tables.outcome is None else tables.outcome
    sizes: Any = tables.denominator
    if isinstance(several, Mapping):
        if len(frames) != 1:
            name = "predictions" if tables.outcome is None else "outcome"
            raise InputError(f"{name}= names columns of one wide frame; give one frame.")
        columns = {}
        for variant, held in several.items():
            if isinstance(sizes, Mapping) and len(sizes.get(variant, ())) != len(held):
                raise InputError(
                    f"denominator= has no column for every column of '{variant}' in outcome=; "
                    "name them all, or one column for all variants."
                )
            for place, column in enumerate(held):
                size = sizes[variant][place] if isinstance(sizes, Mapping) else sizes
                columns[variant, str(place)] = (column, *([size] if size is not None else []))
        frame = frames[0][1]
        there = _require(frame, [*_facts(tables), *(c for own in columns.values() for c in own)])
        if tables.id in there:
            _check_unique(frame, tables.id, "the frame")
        return frame, columns
    if isinstance(sizes, Mapping):
        raise InputError(
            "denominator= names a column for every variant, and outcome= one for all; name both in "
            "the same way."
        )
    wanted = [tables.prediction]
    if tables.outcome is not None:
        wanted = [str(several), *([str(sizes)] if sizes is not None else [])]
    parts: list[tuple[str, str, nw.LazyFrame[Any]]] = []
    for name, frame in frames:
        there = _require(frame, [tables.id, *wanted, *_facts(tables)])
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
    label = tables.label if tables.outcome is None else None
    for place, (variant, seed, own) in enumerate(parts):
        columns[variant, seed] = tuple(f"fw_value_{place}_{k}" for k in range(len(wanted)))
        _check_unique(own, tables.id, f"'{variant}'")
        facts = [] if label is None else [of.col(label).alias(f"fw_label_{place}")]
        taken = own.select(
            tables.id,
            *(
                of.col(c).alias(name)
                for c, name in zip(wanted, columns[variant, seed], strict=True)
            ),
            *(_facts(tables) if joined is None else facts),
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
        joined = both
        if label is None:
            continue
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
