"""What an audit must say, computed from the files a second time by the written rule alone.

Nothing of fairweight is imported here. Files are read with no type guessed (`files.read`), values
become canonical text, tables are joined on the example's identity, and accuracy is the weighted
share of right predictions, by pandas, averaged over the members of a variant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
from tests.fuzz.files import Table, is_number, read

WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.0*)?")
MISSING = "(missing)"
GROUP = "group:"  # before the names of group columns in the frame
COUNT_NAMES = ("n", "count", "freq")
BASELINE_NAMES = ("dense", "baseline")
RIGHT_OR_WRONG = ({"0", "1"}, {"true", "false"})


class RefusedError(Exception):
    """By the written rule this input cannot be audited; the sentence says why."""


def canonical(value: Any) -> str | None:
    """The text under which a value is compared and shown; None where it is missing.

    >>> [canonical(v) for v in ("1", "1.0", "1.", 1, 1.0, "007", "1e2", 100.0, "TRUE", True, 0.5)]
    ['1', '1', '1', '1', '1', '007', '1e2', '100', 'true', 'true', '0.5']
    >>> canonical("12345678901234567890"), canonical(float("nan")), canonical(Decimal("1.50"))
    ('12345678901234567890', None, '1.5')
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        if WHOLE.fullmatch(value):
            return str(int(value.partition(".")[0]))
        return value.lower() if value.lower() in ("true", "false") else value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal):
        number = float(value)
        if math.isnan(number):
            return None
        return str(int(number)) if abs(number) < 1e15 and number == int(number) else repr(number)
    if isinstance(value, date):
        return value.isoformat()
    raise RefusedError(f"a value of the kind {type(value).__name__} is no class, group or identity")


def quoted(name: str, marks: str = "*=") -> str:
    """A name as groups and options write it: in quotes where a mark in it would be misread.

    >>> print(quoted("sex"), quoted("a*b"), quoted("age, years"), quoted("age, years", ",*="))
    sex "a*b" age, years "age, years"
    """
    plain = name and name == name.strip() and name[0] != '"' and " & " not in name
    if plain and not any(mark in name for mark in marks):
        return name
    return '"' + name.replace('"', '""') + '"'


def level_name(column: str, value: str | None) -> str:
    """A group of one column as results show it.

    >>> print(level_name("sex", "f"), level_name("a=b", None), level_name("sex", "(missing)"))
    sex=f "a=b"=(missing) sex="(missing)"
    """
    if value is None:
        return f"{quoted(column)}={MISSING}"
    misread = value == MISSING or value[:1] == '"' or value.endswith(" &")
    if misread or (" & " in value and "=" in value):
        value = '"' + value.replace('"', '""') + '"'
    return f"{quoted(column)}={value}"


@dataclass
class Member:
    """One model: where its predictions are."""

    variant: str
    seed: str
    table: Table
    prediction: str


@dataclass
class Meaning:
    """What the tables and options of a command mean, as the documentation says."""

    layout: str  # long, wide, files
    tables: list[Table]
    members: list[Member] = field(default_factory=list)  # of wide tables and files without seeds
    names: dict[int, str] = field(default_factory=dict)  # files: the variant of each table
    baseline: str | None = None
    id: str | None = "example_id"  # None: every row is an example
    label: str = "label"
    variant: str = "variant"
    seed: str = "seed"
    prediction: str = "prediction"
    task: str | None = None
    weight: str | None = None
    cluster: str | None = None
    count: str | None = None
    groups: list[tuple[str, ...]] | None = None
    examples: Table | None = None
    drop: bool = False
    alone: bool = False  # one model will do (preflight)
    force: bool = False
    weighted: bool = True  # exemplars and preflight count examples, whatever their weight

    @property
    def roles(self) -> set[str]:
        """Columns that are spoken for, so that they are no groups by default."""
        held = {self.label, self.id, self.task, self.weight, self.cluster, self.count}
        held |= {member.prediction for member in self.members}
        if self.layout != "wide":
            held |= {self.variant, self.seed, self.prediction}
        return {name for name in held if name is not None}


Rows = dict[tuple[str | None, str | None], dict[str, Any]]  # by example and task
Held = dict[int, tuple[list[str], list[dict[str, Any]]]]  # names and rows of every table
Key = tuple[str | None, str | None, str, str | None]  # variant, task, by, class or group
Value = tuple[float, float, int]  # accuracy of the baseline and of the variant, examples


@dataclass
class Expected:
    """Every row of accuracy that the results may hold, and those that they must hold."""

    baseline: str
    variants: list[str]
    rows: dict[Key, list[Value]]  # a name may be that of two groups
    required: set[Key]
    columns: dict[Key, list[Value]]  # by every single column, asked for or not
    n_examples: int
    frame: pd.DataFrame  # a row per example (and task): identity, label, weight, predictions
    members: list[tuple[str, str]]
    exact_n: bool = True
    doubt: str | None = None  # what a stricter reading of the rules would refuse


def expected(meaning: Meaning, folder: Path) -> Expected:
    """Read, align and compute; raises RefusedError for what the rules refuse."""
    held = {id(table): read(table, folder) for table in _all_tables(meaning)}
    for table in meaning.tables:
        _require(held[id(table)][0], meaning.count)  # a count is true of the rows beside it
    counted, empty_part = 0, None
    for key, (names, rows) in held.items():
        if len({name.lower() for name in names}) < len(names):
            raise RefusedError("two columns have one name, or names that differ in case alone")
        if meaning.count is not None and meaning.count in names:
            counted += sum(_counts([canonical(row.get(meaning.count)) for row in rows]))
            rows = [row for row in rows if canonical(row.get(meaning.count)) != "0"]
            held[key] = names, rows
            if not rows and len(held) > 1 and meaning.layout != "files":
                empty_part = "the counts of a part are all 0: refused of a file, not of a pattern"
                continue
        if not rows:
            raise RefusedError("a table has no rows")
    if meaning.count is not None and not counted:
        raise RefusedError("all counts are zero")
    may_count = _refuse_counts(meaning, held)
    parts = _parts(meaning, held)
    variants = list(dict.fromkeys(variant for variant, _ in parts))
    baseline = meaning.baseline
    if baseline is None:
        likely = [name for name in variants if name.lower() in BASELINE_NAMES]
        baseline = likely[0] if likely and meaning.layout != "files" else variants[0]
    if baseline not in variants:
        raise RefusedError(f"there is no variant {baseline!r}")
    if len(variants) < 2 and not meaning.alone:
        raise RefusedError("there is one variant only")
    ordered = sorted(parts, key=lambda member: member[0] != baseline)
    frame = _aligned(meaning, held, {member: parts[member] for member in ordered})
    _check(meaning, frame, baseline, ordered)
    found = _computed(meaning, frame, baseline, variants, ordered)
    weights = frame.groupby("id")["weight"].max()
    doubt = may_count or empty_part
    if meaning.weighted and (weights == 0).mean() ** len(weights) > 0.01:
        doubt = "whole draws may weigh nothing"
    for column in {name for grouping in meaning.groups or () for name in grouping}:
        parts_of = [[canonical(r.get(column)) for r in rows] for _, rows in held.values()]
        numbers = [all(v is None or is_number(v) for v in values) for values in parts_of]
        if any(n and None in v for n, v in zip(numbers, parts_of, strict=True)) and not all(
            numbers
        ):
            doubt = f"'nan' of {column!r} in a part of numbers, beside parts of texts"
    if meaning.groups is None and not meaning.force:
        for column in frame.columns:
            if column.startswith(GROUP) and any(_is_nan(value) for value in frame[column]):
                doubt = doubt or f"the text 'nan' in {column!r}, if it is a group"
    return replace(found, doubt=doubt) if doubt is not None else found


def _all_tables(meaning: Meaning) -> list[Table]:
    return [*meaning.tables, *([meaning.examples] if meaning.examples is not None else [])]


def _refuse_counts(meaning: Meaning, held: Held) -> str | None:
    """Rows without identities that all differ, beside a column of numbers called like counts.

    Returns a doubt where rows are alike, but perhaps only in parts that were counted apart.
    """
    doubt = None
    if meaning.id is not None or meaning.count is not None or meaning.layout != "wide":
        return None
    asked = {column for grouping in meaning.groups or () for column in grouping}
    names, rows = _union(meaning, held)
    for column in names:
        if column in meaning.roles | asked or column.lower() not in COUNT_NAMES:
            continue
        values = [canonical(row.get(column)) for row in rows]
        if not all(v is None or re.fullmatch("[0-9]{1,15}", v) for v in values):
            continue
        others = [tuple(repr(row.get(n)) for n in names if n != column) for row in rows]
        if not any(int(v or 0) > 1 for v in values):
            continue
        if len(set(others)) == len(rows):
            raise RefusedError(f"the column {column!r} may be the number of examples")
        doubt = f"the column {column!r} may be the number of examples in every part"
    return doubt


def _keyed(meaning: Meaning, rows: Iterable[dict[str, Any]], *, task: bool = True) -> Rows:
    """Rows by their identity; refused where one is missing or occurs twice."""
    found: Rows = {}
    for number, row in enumerate(rows):
        name = str(number) if meaning.id is None else canonical(row.get(meaning.id))
        of_task = canonical(row.get(meaning.task)) if meaning.task and task else None
        if name is None or (meaning.task and task and of_task is None):
            raise RefusedError("a row has no identity")
        if (name, of_task) in found:
            raise RefusedError(f"the example {name!r} occurs twice")
        found[name, of_task] = row
    return found


def _require(names: Sequence[str], *columns: str | None) -> None:
    for column in columns:
        if column is not None and column not in names:
            raise RefusedError(f"there is no column {column!r}")


def _parts(meaning: Meaning, held: Held) -> dict[tuple[str, str], tuple[Rows, list[str], str]]:
    """Rows of every member, with the columns of its table and its prediction's column."""
    found: dict[tuple[str, str], tuple[Rows, list[str], str]] = {}
    if meaning.layout == "wide":
        names, rows = _union(meaning, held)
        _require(names, meaning.id, meaning.task, *(m.prediction for m in meaning.members))
        keyed = _keyed(meaning, rows)
        for member in meaning.members:
            found[member.variant, member.seed] = keyed, names, member.prediction
        return found
    if meaning.layout == "long":
        names, rows = _union(meaning, held)
        _require(names, meaning.id, meaning.variant, meaning.prediction, meaning.task)
        by_member = _by_member(meaning, names, rows, None)
        return {m: (_keyed(meaning, r), names, meaning.prediction) for m, r in by_member.items()}
    for number, table in enumerate(meaning.tables):
        names, rows = held[id(table)]
        _require(names, meaning.id, meaning.prediction, meaning.task)
        variant = meaning.names[number]
        if meaning.seed in names:
            of_file = _by_member(meaning, names, rows, variant)
        else:
            seed = sum(name == variant for name, _ in found)
            of_file = {(variant, str(seed)): rows}
        for member, own in of_file.items():
            if member in found:
                raise RefusedError(f"the member {member} is given twice")
            found[member] = _keyed(meaning, own), names, meaning.prediction
    return found


def _union(meaning: Meaning, held: Held) -> tuple[list[str], list[dict[str, Any]]]:
    names = list(dict.fromkeys(n for table in meaning.tables for n in held[id(table)][0]))
    return names, [row for table in meaning.tables for row in held[id(table)][1]]


def _by_member(
    meaning: Meaning, names: Sequence[str], rows: Iterable[dict[str, Any]], variant: str | None
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        name = canonical(row.get(meaning.variant)) if variant is None else variant
        if name is None:
            raise RefusedError("a row has no variant")
        seed = canonical(row.get(meaning.seed)) if meaning.seed in names else None
        found.setdefault((name, seed if seed is not None else "0"), []).append(row)
    return found


def _aligned(
    meaning: Meaning,
    held: Held,
    parts: dict[tuple[str, str], tuple[Rows, list[str], str]],
) -> pd.DataFrame:
    """One row per example (and task): what is true of it, and what every member predicted."""
    members = list(parts)
    every = [set(rows) for rows, _, _ in parts.values()]
    common = set.intersection(*every)
    if not meaning.drop and any(keys != common for keys in every):
        raise RefusedError("some member lacks an example")
    if not common:
        raise RefusedError("the members have no example in common")
    order = [key for key in parts[members[0]][0] if key in common]
    beside: Rows = {}
    beside_names: list[str] = []
    if meaning.examples is not None:
        beside_names, rows = held[id(meaning.examples)]
        _require(beside_names, meaning.id)
        beside = _keyed(meaning, rows, task=False)
        if any((name, None) not in beside for name, _ in order):
            raise RefusedError("an example is not in the examples table")
    in_parts = list(dict.fromkeys(n for _, names, _ in parts.values() for n in names))
    wanted = dict.fromkeys((*in_parts, *beside_names))
    asked = None if meaning.groups is None else {c for g in meaning.groups for c in g}
    for column in (meaning.label, meaning.weight, meaning.cluster, meaning.count, *(asked or ())):
        _require(list(wanted), column)
    strict = {meaning.label, meaning.weight, meaning.cluster, meaning.count, *(asked or ())}
    columns: dict[str, list[Any]] = {}
    for column in wanted:
        try:
            values, varies = _values(meaning, parts, beside, column, order)
        except RefusedError:
            if column in strict:
                raise
            continue
        if not varies:
            columns[column] = values
        elif column in strict:
            raise RefusedError(f"{column!r} differs between tables of one example")
    made: dict[str, list[Any]] = {
        "id": [name for name, _ in order],
        "task": [task for _, task in order],
        "label": columns[meaning.label],
    }
    for number, (rows_of, _, prediction) in enumerate(parts.values()):
        made[f"p{number}"] = [canonical(rows_of[key].get(prediction)) for key in order]
    if meaning.cluster is not None and None in columns[meaning.cluster]:
        raise RefusedError("a cluster is missing")
    for column, values in columns.items():
        if column in asked if asked is not None else column not in meaning.roles:
            made[GROUP + column] = values
    frame = pd.DataFrame(made, dtype=object)
    frame["weight"] = _numbers(columns[meaning.weight]) if meaning.weight else 1.0
    frame["count"] = _counts(columns[meaning.count]) if meaning.count else 1
    return frame


def _values(
    meaning: Meaning,
    parts: dict[tuple[str, str], tuple[Rows, list[str], str]],
    beside: Rows,
    column: str,
    order: Sequence[tuple[str | None, str | None]],
) -> tuple[list[str | None], bool]:
    """Canonical values of a column in the order of the examples, and whether tables disagree."""
    owners = [rows for rows, names, _ in parts.values() if column in names]
    of_examples = bool(beside) and any(column in row for row in beside.values())
    told = [canonical(beside[name, None].get(column)) for name, _ in order] if of_examples else []
    if not owners:
        return told, False
    values = [canonical(owners[0][key].get(column)) for key in order]
    varies = False
    for rows in owners[1:] if meaning.layout != "wide" else ():
        varies |= values != [canonical(rows[key].get(column)) for key in order]
    if column == meaning.label and of_examples and meaning.task is None:
        varies |= any(
            None not in pair and len({*pair}) > 1 for pair in zip(told, values, strict=True)
        )
    return values, varies


def _numbers(values: Sequence[str | None]) -> list[float]:
    try:
        numbers = [float("nan") if v is None else float(v) for v in values]
    except ValueError:
        raise RefusedError("a weight is no number") from None
    if any(not math.isfinite(w) or w < 0 for w in numbers):
        raise RefusedError("a weight is negative, infinite or missing")
    if not sum(numbers):
        raise RefusedError("all weights are zero")
    return numbers


def _counts(values: Sequence[str | None]) -> list[int]:
    if any(v is None or not re.fullmatch(r"[0-9]{1,15}", v) for v in values):
        raise RefusedError("a count is no whole number of at least 0")
    return [int(v or 0) for v in values]


def _check(
    meaning: Meaning, frame: pd.DataFrame, baseline: str, members: Sequence[tuple[str, str]]
) -> None:
    """What the values themselves forbid."""
    if frame["label"].isna().any():
        raise RefusedError("a label is missing")
    labels = set(frame["label"])
    asked = [GROUP + column for grouping in meaning.groups or () for column in grouping]
    for column in ("label", *(f"p{number}" for number in range(len(members))), *asked):
        if not meaning.force and any(_is_nan(value) for value in frame[column]):
            raise RefusedError("the text 'nan' is a missing value or a name")
    # For one task after the other would be stricter; what is refused here is refused by both.
    for number, (variant, _) in enumerate(members):
        told = {value for value in frame[f"p{number}"] if value is not None}
        _check_predictions(told, labels, judged=variant == baseline and not meaning.force)
    if meaning.force:
        return
    fractions = [v for v in labels if _is_fraction(v)]
    if len(fractions) > 20:
        raise RefusedError("labels are measurements")


def _check_predictions(told: set[str], labels: set[str], *, judged: bool) -> None:
    """What one member predicts; `judged`: also by what it looks like, as the baseline's is."""
    if told and not told & labels:
        raise RefusedError("no prediction of a member is a label")
    if not judged:
        return
    if not told:
        raise RefusedError("the baseline's predictions are all missing")
    if len(told & labels) < len(told) / 10:
        raise RefusedError("fewer than a tenth of the baseline's predictions are labels")
    if len(labels) > 2 and any(told <= pair for pair in RIGHT_OR_WRONG):
        raise RefusedError("labels have more than two values, predictions are 0 and 1")


def _is_nan(value: str | None) -> bool:
    return value is not None and value.lower() in ("nan", "-nan")


def _is_fraction(text: str) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return math.isfinite(number) and not WHOLE.fullmatch(text) and number != int(number)


def _computed(
    meaning: Meaning,
    frame: pd.DataFrame,
    baseline: str,
    variants: Sequence[str],
    members: list[tuple[str, str]],
) -> Expected:
    sides = {v: [i for i, (name, _) in enumerate(members) if name == v] for v in variants}
    right = pd.DataFrame({i: frame[f"p{i}"] == frame["label"] for i in range(len(members))})
    weight = frame["count"] * (frame["weight"] if meaning.weighted else 1.0)
    sums = right.astype(float).mul(weight, axis=0)
    sums["weight"], sums["count"] = weight, frame["count"]
    others = [v for v in variants if v != baseline] or [baseline]
    tasks: list[str | None] = list(dict.fromkeys(frame["task"])) if meaning.task else []
    divisions = [Division("overall", [None] * len(frame), lambda _: None, True)]
    divisions.append(Division("class", list(frame["label"]), str, True))
    single = [(name.removeprefix(GROUP),) for name in frame.columns if name.startswith(GROUP)]
    asked = single if meaning.groups is None else meaning.groups
    for grouping in asked:
        must = meaning.groups is not None or _evident(meaning, frame, *grouping)
        divisions.append(_by_groups(frame, grouping, must))
    beside = [_by_groups(frame, grouping, False) for grouping in single]
    rows: dict[Key, list[Value]] = {}
    columns: dict[Key, list[Value]] = {}
    required: set[Key] = set()
    for division, task, level, rates in _rates(frame, sums, sides, [*divisions, *beside], tasks):
        held = columns if division in beside else rows
        for variant in others:
            key = (variant, task, division.by, division.shown(level))
            held.setdefault(key, []).append((rates[baseline], rates[variant], rates["count"]))
            if division.must and rates["count"] > 0:
                required.add(key)
    n_examples = int(frame.drop_duplicates("id")["count"].sum())
    plain = bool((frame["weight"] > 0).all())
    return Expected(
        baseline, others, rows, required, columns, n_examples, frame, members, plain,
        _doubt(frame, members),
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Division:
    """One way to divide the examples: a value per row, and how its levels are shown."""

    by: str
    values: list[Any]
    shown: Callable[[Any], str | None]
    must: bool  # the results must have its rows


def _by_groups(frame: pd.DataFrame, grouping: tuple[str, ...], must: bool) -> Division:
    """Levels are tuples of values, because two may read alike ("a=b" with "c", "a" with "b=c")."""

    def shown(level: tuple[str | None, ...]) -> str:
        return " & ".join(level_name(*pair) for pair in zip(grouping, level, strict=True))

    values = list(zip(*(frame[GROUP + column] for column in grouping), strict=True))
    return Division("group", values, shown, must)


def _rates(
    frame: pd.DataFrame,
    sums: pd.DataFrame,
    sides: dict[str, list[int]],
    divisions: Sequence[Division],
    tasks: Sequence[str | None],
) -> Iterator[tuple[Division, str | None, Any, dict[str, Any]]]:
    """Accuracy of every side and the number of examples, by division, task and level.

    Where there are tasks, their mean follows: of a level, over the tasks that have it.
    """
    # All divisions in one pass: rows once per division, with a key of (division, task, level).
    keys = [
        (number, task, level)
        for number, division in enumerate(divisions)
        for task, level in zip(frame["task"], division.values, strict=True)
    ]
    names = {key: code for code, key in enumerate(dict.fromkeys(keys))}
    many = pd.concat([sums] * len(divisions), ignore_index=True)
    total = many.groupby(pd.Series([names[key] for key in keys]), sort=False).sum()
    weight = total["weight"].where(total["weight"] > 0)
    made = pd.DataFrame({v: total[i].mean(axis=1) / weight for v, i in sides.items()})
    made["count"] = total["count"]
    found = dict(zip(names, made.to_dict("records"), strict=True))
    for (number, task, level), rates in found.items():
        yield divisions[number], task, level, rates
    for number, division in enumerate(divisions):
        if not tasks or division.by == "class":
            continue
        for level in dict.fromkeys(division.values):
            there = [found.get((number, task, level)) for task in tasks]
            held = [rates for rates in there if rates is not None]  # the tasks that have the group
            mean = {v: sum(rates[v] for rates in held) / len(held) for v in sides}
            chosen = frame[[value == level for value in division.values]]
            n = int(chosen["count"][~chosen["id"].duplicated()].sum())
            yield division, None, level, {**mean, "count": n}


def _doubt(frame: pd.DataFrame, members: Sequence[tuple[str, str]]) -> str | None:
    """Whether the predictions of a member look unlike the labels of one task by itself."""
    for task in dict.fromkeys(frame["task"].dropna()):
        here = frame[frame["task"] == task]
        labels = set(here["label"])
        for number, member in enumerate(members):
            told = {value for value in here[f"p{number}"] if value is not None}
            if not told & labels or len(told & labels) < len(told) / 10:
                return f"the predictions of {member} are no labels"
            if len(labels) > 2 and any(told <= pair for pair in RIGHT_OR_WRONG):
                return f"the predictions of {member} are 0 and 1"
    return None


def _evident(meaning: Meaning, frame: pd.DataFrame, column: str) -> bool:
    """Whether a column is a group by default beyond doubt: text with a few values."""
    values = frame[GROUP + column]
    distinct = set(values)
    texts = [v for v in distinct if v is not None]
    kinds = {c.kind for t in _all_tables(meaning) for c in t.columns if c.name == column}
    return (
        kinds == {"text"}
        and 2 <= len(distinct) <= 12
        and len(texts) >= 2
        and len(distinct) <= len(frame) / 4
        and not any(WHOLE.fullmatch(v) or is_number(v) for v in texts)
        and column not in ("image", "image_path", "weight", "task", "score", "scores", "label_rank")
        and not re.search(r"(^|[_ :])(pred|prediction|score|scores|label_rank)([_ :]|$)", column)
    )
