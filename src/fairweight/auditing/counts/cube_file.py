"""Cubes on disk: plain Parquet that anyone can read, with what it means in the file's metadata."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import (
    HEX,
    Codes,
    Cube,
    CubeMember,
    GroupColumn,
    OutcomeCells,
    add,
    compact,
    digest,
    summed,
    unit_order,
    with_own_classes,
)
from fairweight.auditing.counts.outcome_sums import EXPONENTS, PER_MODEL, OutcomeSums, term_name
from fairweight.auditing.document import Fields, outcome_of
from fairweight.base.files import atomic_file
from fairweight.base.types import Floats
from fairweight.errors import InputError
from fairweight.tables.canonical import class_order
from fairweight.tables.checks import LEAST_WEIGHT, MOST_WEIGHT, refuse_too_many
from fairweight.tables.joins import LeftOutExamples
from fairweight.tables.names import grouping_name, split_grouping
from fairweight.tables.spec import OutcomeRole

KEY = b"fairweight_cube"
SCHEMA = 1
Units: TypeAlias = Literal["names", "digests", "numbers"]


def write_cube(
    cube: Cube,
    path: str | Path,
    *,
    groupings: Sequence[str],
    baseline: str,
    suppress: int = 0,
    key: str = "",
    units: Units = "names",
) -> int:
    """Write a cube; cells with fewer than `suppress` examples are left out. Returns how many were.

    Names of clusters (and of examples, where tasks bind them) are written as digests: equal names
    stay equal, so parts still add up, and nobody is named. Give all parts one secret `key` where
    names could be guessed. `units` says what a cube has in their place: "names", "digests" already
    (as in cubes that were read), or "numbers" to write: these say nothing, and the cube stands
    alone, but units keep their order, so an audit of it draws the same ones.

    Columns: `task`, `group:<name>`, `label`, `prediction:<i>` (in the order of the members in the
    metadata), `weight`, `unit`, `second_unit`, `count`. Of outcomes that are numbers also sums over
    a cell's examples (`auditing/counts/outcome_sums.py`): `centre`, `den` and, of every compressed
    model, `sum:<i>:num`, `sum:<i>:num*num_change`, ..., `better:<i>`, `worse:<i>`, `changed:<i>`,
    `gains:<i>`, `losses:<i>`, `largest_loss:<i>`; of populations, which need every number,
    `outcome:<i>` and `denominator:<i>`.
    """
    cube = compact(summed(cube, baseline))
    keep = cube.count >= suppress

    def texts(names: Sequence[str | None], codes: NDArray[np.integer]) -> Any:
        # Taken by Arrow from the few names; a code of -1 is an abstention.
        known = pa.array(names, type=pa.string())
        return known.take(pa.array(codes, mask=codes < 0))

    columns: dict[str, Any] = {}
    if cube.task is not None:
        columns["task"] = texts(cube.tasks, cube.task)
    for column in cube.columns:
        columns[f"group:{column.name}"] = texts(column.values, column.code)
    columns["label"] = texts(cube.classes, cube.label)
    for m in range(len(cube.members)):
        columns[f"prediction:{m}"] = texts(cube.classes, cube.prediction[:, m])
    if cube.weight is not None:
        columns["weight"] = cube.weight
    for column_name, unit, names in (
        ("unit", cube.unit, cube.unit_names),
        ("second_unit", cube.second_unit, cube.second_unit_names),
    ):
        if unit is None:
            continue
        written: Sequence[str] = names
        if units == "names":
            written = [digest(n, key) for n in names]
        elif units == "numbers":  # in the form of digests: `unit_order` leaves them as they are
            first = "f" if column_name == "second_unit" else "0"  # no name stands in both columns
            written = [f"{first}{i:0{HEX - 1}x}" for i in range(len(names))]
        columns[column_name] = texts(written, unit)
    if cube.outcome is not None:
        for name, values in (
            ("outcome", cube.outcome.numerator), ("denominator", cube.outcome.denominator)
        ):  # fmt: skip
            if values is not None:
                columns |= {f"{name}:{m}": values[:, m] for m in range(len(cube.members))}
        if (sums := cube.outcome.sums) is not None:
            # Of every compressed model; what follows from other columns is left out.
            columns |= {"centre": sums.centre, "den": sums.den}
            for m, member in enumerate(cube.members):
                if member.variant == sums.baseline:
                    continue
                for t, exponents in enumerate(sums.terms):
                    columns[f"sum:{m}:{term_name(exponents)}"] = sums.products[:, m, t]
                columns |= {f"{name}:{m}": getattr(sums, name)[:, m] for name in PER_MODEL
                            if name != "changed_weight" or cube.weight is not None}  # fmt: skip
    columns["count"] = cube.count
    table = pa.table(columns)
    if not keep.all():
        table = table.filter(pa.array(keep))
    notes, left_out, away = [*cube.notes], [*cube.left_out], int((~keep).sum())
    if away:
        notes.append(
            f"{away:,} cells with fewer than {suppress} examples were left out of a cube on "
            "request; rates are of the examples that remain."
        )
        # Examples of which nothing is known; no more of them than this.
        most = away * (suppress - 1)
        if most:
            left_out.append(LeftOutExamples(None, None, {}, (), most, float(most)))
    meta = {
        "schema": SCHEMA,
        "members": [[member.variant, member.seed] for member in cube.members],
        "baseline": baseline,
        "groupings": list(groupings),
        "n_examples": cube.n_examples if cube.tasks else int(cube.count[keep].sum()),
        "unit_is_cluster": cube.unit_is_cluster,
        "alone": units == "numbers" and cube.unit is not None,
        "notes": notes,
        "outcome": None if cube.outcome is None else cube.outcome.role.to_json(),
        "labelled": cube.labelled,
        "left_out": [asdict(part) for part in left_out],
    }
    with atomic_file(Path(path), "wb") as file:
        parquet.write_table(table.replace_schema_metadata({KEY: json.dumps(meta)}), file)
    return away


def read_cubes(paths: Sequence[str | Path]) -> tuple[Cube, str, tuple[str, ...]]:
    """The sum of cubes, the baseline and the groupings that they were counted with."""
    made = [_read(Path(path)) for path in paths]
    cubes, baselines, groupings, alone = zip(*made, strict=True)
    if len(paths) > 1 and any(alone):
        raise InputError(
            f"'{paths[alone.index(True)]}' is the cube of an audit, which does not say whose its "
            "clusters (or examples) are, so it cannot be added to others; count the tables instead "
            "(fairweight count)."
        )
    for what, values, option in (
        ("baseline", baselines, "--baseline"),
        ("groups", [", ".join(names) or "none" for names in groupings], "--groups"),
    ):
        for path, value in zip(paths, values, strict=True):
            if value != values[0]:
                raise InputError(
                    f"'{paths[0]}' was counted with the {what} {values[0]}, '{path}' with {value}; "
                    f"count all parts with the same {option}."
                )
    refuse_too_many(sum(int(cube.count.sum()) for cube in cubes))
    whole = add(cubes)
    if whole.weight is not None and not whole.weight.any():
        raise InputError("All weights of the cubes are 0; nothing can be weighed.")
    return whole, baselines[0], groupings[0]


def _read(path: Path) -> tuple[Cube, str, tuple[str, ...], bool]:
    try:
        table = parquet.read_table(path)
        meta = json.loads((table.schema.metadata or {})[KEY])
        schema = meta["schema"]
        members = tuple(CubeMember(str(v), str(s)) for v, s in meta["members"])
        baseline, groupings = str(meta["baseline"]), tuple(map(str, meta["groupings"]))
        n_examples, clustered = int(meta["n_examples"]), bool(meta["unit_is_cluster"])
        notes, alone = tuple(map(str, meta["notes"])), bool(meta.get("alone", False))
        left_out = tuple(_left_out(part) for part in meta.get("left_out", ()))
        held = Fields(meta, "")
        outcome, labelled = outcome_of(held), meta.get("labelled", True) is not False
        answers = ("label", *(f"prediction:{m}" for m in range(len(members))))
        if len(set(members)) < len(members) or (clustered and "unit" not in table.column_names):
            raise ValueError("members or units are not those of the cube")
        # The types that `write_cube` gives; an error of Arrow's where a column cannot have them.
        kinds = {name: pa.float64() for name in ("count", "weight", "centre", "den")}
        numeric = ("outcome:", "denominator:", "sum:", *(f"{name}:" for name in PER_MODEL))
        kinds |= {n: pa.float64() for n in table.column_names if n.startswith(numeric)}
        columns = [table.column(n).cast(kinds.get(n, pa.string())) for n in table.column_names]
        table = pa.table(columns, names=table.column_names)
        numbers = None if outcome is None else _outcomes(table, outcome, members, baseline)
        coded = {name: _codes(table, name) for name in answers}
        counts = table.column("count").to_numpy()
    except (OSError, KeyError, TypeError, ValueError, pa.ArrowException) as error:
        raise InputError(
            f"'{path}' is not a readable cube; make one with: "
            "fairweight count FILE --out cube.parquet"
        ) from error
    if schema != SCHEMA:
        raise InputError(
            f"'{path}' is a cube of schema {schema!r}, and this version reads {SCHEMA}; count the "
            "data again with this version."
        )
    if not (np.isfinite(counts) & (counts >= 0) & (counts == np.trunc(counts))).all():
        raise InputError(
            f"The cube '{path}' has counts that are negative or not whole; count the data again."
        )
    count = counts.astype(np.int64)
    for name in ("label", "task", "unit", "second_unit", "weight"):
        if name in table.column_names and table.column(name).null_count:
            raise InputError(f"The cube '{path}' has cells without a {name}; count the data again.")
    if "weight" in table.column_names:
        weight = table.column("weight").to_numpy()
        held = weight[weight != 0]
        if not ((held >= LEAST_WEIGHT) & (held <= MOST_WEIGHT)).all():
            raise InputError(
                f"The cube '{path}' has weights that are negative, no numbers, or beyond what can "
                "be computed with; count the data again."
            )
    if table.num_rows == 0:
        raise InputError(f"The cube '{path}' has no cells, so there is nothing to audit.")
    classes = class_order(v for values, _ in coded.values() for v in values if v is not None)
    place: dict[str | None, int] = {name: i for i, name in enumerate(classes)} | {None: -1}

    def as_classes(name: str) -> Codes:
        values, code = coded[name]
        return np.array([place[v] for v in values], dtype=np.int32)[code]

    columns = [
        GroupColumn.of(name.removeprefix("group:"), *_codes(table, name))
        for name in table.column_names
        if name.startswith("group:")
    ]
    task, tasks = _optional(table, "task")
    unit, unit_names = _optional(table, "unit", unit_order)
    second, second_names = _optional(table, "second_unit", unit_order)
    cube = Cube(
        members=members,
        label_classes=classes,
        other_classes=(),
        columns=tuple(columns),
        tasks=tasks,
        label=as_classes("label"),
        prediction=np.stack([as_classes(f"prediction:{m}") for m in range(len(members))], axis=1),
        count=count,
        n_examples=n_examples,
        task=task,
        weight=table.column("weight").to_numpy() if "weight" in table.column_names else None,
        unit=None if unit is None else unit.astype(np.int64),
        unit_names=unit_names,
        unit_is_cluster=clustered,
        second_unit=None if second is None else second.astype(np.int64),
        second_unit_names=second_names,
        notes=notes,
        left_out=left_out,
        outcome=numbers,
        labelled=labelled,
    )
    known = {column.name for column in columns}
    # Version 0.1.0 did not quote a column whose own name has a star.
    named = tuple(
        grouping_name([name]) if name in known and not known >= {*split_grouping(name)} else name
        for name in groupings
    )
    return compact(with_own_classes(cube)), baseline, named, alone


def _outcomes(
    table: pa.Table, role: OutcomeRole, members: Sequence[CubeMember], baseline: str
) -> OutcomeCells:
    """Numbers or sums of every cell; an error where there are some that cannot be computed with."""
    if role.binary:
        return OutcomeCells(role)

    def numbers(name: str, least: float = -np.inf) -> Floats:
        made: Floats = table.column(name).to_numpy()
        if not np.isfinite(made).all() or (made < least).any():
            raise ValueError(f"{name} has what is no number")
        return made

    def of_members(name: str, least: float = -np.inf) -> Floats:
        return np.stack([numbers(f"{name}:{m}", least) for m in range(len(members))], axis=1)

    if "centre" not in table.column_names:
        sizes = None if role.denominator is None else of_members("denominator", 0.0)
        return OutcomeCells(role, of_members("outcome"), sizes)
    compressed = [m for m, member in enumerate(members) if member.variant != baseline]
    held = {name.split(":", 2)[2] for name in table.column_names if name.startswith("sum:")}
    terms = tuple(e for e in EXPONENTS if term_name(e) in held)
    count, plain = numbers("count"), "weight" not in table.column_names
    products = np.zeros((len(count), len(members), len(terms)))
    made: dict[str, Any] = {name: np.zeros((len(count), len(members))) for name in PER_MODEL}
    for m in compressed:
        for t, exponents in enumerate(terms):
            products[:, m, t] = numbers(f"sum:{m}:{term_name(exponents)}")
        for name in PER_MODEL:
            source = "changed" if name == "changed_weight" and plain else name
            made[name][:, m] = numbers(f"{source}:{m}", 0.0)
        if (made["changed"][:, m] > count).any() or (1, 0, 0, 0) not in terms:
            raise ValueError("sums are not those of the cells")
    of_baseline = [m for m in range(len(members)) if m not in compressed]
    for t, exponents in enumerate(terms):  # the same in every model, where nothing changes
        if not exponents[1] and not exponents[3]:
            products[:, of_baseline, t] = products[:, compressed[:1], t]
    return OutcomeCells(
        role,
        sums=OutcomeSums(
            baseline, terms, numbers("centre"), count, numbers("den", 0.0), products, **made
        ),
    )


def _left_out(held: dict[str, Any]) -> LeftOutExamples:
    def text(value: object) -> str | None:
        return None if value is None else str(value)

    return LeftOutExamples(
        task=text(held["task"]),
        label=text(held["label"]),
        groups={str(name): text(value) for name, value in dict(held["groups"]).items()},
        lacks=tuple(map(str, held["lacks"])),
        n=int(held["n"]),
        weight=float(held["weight"]),
    )


def _codes(table: pa.Table, name: str) -> tuple[list[str | None], Codes]:
    encoded = compute.dictionary_encode(table.column(name).combine_chunks(), null_encoding="encode")
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy().astype(np.int32)


def _optional(
    table: pa.Table,
    name: str,
    order: Callable[[Iterable[str]], tuple[str, ...]] = class_order,
) -> tuple[Codes | None, tuple[str, ...]]:
    if name not in table.column_names:
        return None, ()
    values, code = _codes(table, name)
    names = order(v for v in values if v is not None)
    at = {value: i for i, value in enumerate(names)}
    return np.array([at[str(v)] for v in values], dtype=np.int32)[code], names
