"""Repaired defects that can be put back: a fuzzer that finds none of them is worth nothing.

A defect is a change of the source text, applied to the functions in memory. The text that it
changes must be there exactly once, so that a defect that no longer fits the source is noticed.

Where cases are drawn differently than before, other cases show a defect: `python -m tests.fuzz
--defects` looks for the first one of each.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any


@dataclass(frozen=True)
class Change:
    """Text of a module's source, and what stood there before it was repaired."""

    module: str
    repaired: str
    broken: str


@dataclass(frozen=True)
class Defect:
    """What was wrong, a case that shows it, and the changes that make it so again."""

    name: str
    case: int | None  # None: to be searched for since cases are drawn differently
    changes: tuple[Change, ...]


@contextlib.contextmanager
def put_back(defect: Defect) -> Iterator[None]:
    """The package with the defect, inside the block."""
    held: list[tuple[FunctionType, CodeType]] = []
    try:
        for change in defect.changes:
            held += _replaced(change)
        yield
    finally:
        for function, code in held:
            function.__code__ = code


def _replaced(change: Change) -> list[tuple[FunctionType, CodeType]]:
    """Give every function that the change touches its old code; returns what it had."""
    module = importlib.import_module(change.module)
    source = inspect.getsource(module)
    times = source.count(change.repaired)
    if times != 1:
        raise ValueError(f"{change.module} has the text {times} times, not once: {change.repaired}")
    text = source.replace(change.repaired, change.broken)
    old, new = (
        dict(_functions(compile(t, str(module.__file__), "exec", dont_inherit=True)))
        for t in (source, text)
    )
    held = []
    for name in new:
        function = _function(module, name) if old.get(name) != new[name] else None
        if function is not None:
            held.append((function, function.__code__))
            function.__code__ = new[name]
    if not held:
        raise ValueError(f"the change of {change.module} is in no function: {change.repaired}")
    return held


def _functions(code: CodeType, prefix: str = "") -> Iterator[tuple[str, CodeType]]:
    """Functions of a module and methods of its classes, by their qualified name."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            name = prefix + part.co_name
            if part.co_flags & inspect.CO_NEWLOCALS:
                yield name, part
            else:  # the body of a class
                yield from _functions(part, f"{name}.")


def _function(module: ModuleType, name: str) -> FunctionType | None:
    found: Any = module
    for part in name.split("."):
        found = vars(found).get(part)
        if found is None:
            return None
    found = inspect.unwrap(getattr(found, "fget", None) or getattr(found, "__func__", found))
    return found if isinstance(found, FunctionType) else None


def _defect(name: str, case: int | None, module: str, repaired: str, broken: str) -> Defect:
    return Defect(name, case, (Change(f"fairweight.{module}", repaired, broken),))


DEFECTS: tuple[Defect, ...] = (
    Defect(
        "types are guessed for columns of CSV, so 007 and 7, 1e2 and 100 are one class",
        38,
        (
            Change(
                "fairweight.tables.formats",
                "{name} IS NULL OR {PLAIN_WHOLE.format(name)} THEN",
                "{name} IS NULL OR {number} IS NOT NULL THEN",
            ),
            Change(
                "fairweight.tables.formats",
                "read(_columns_where(workspace, head, columns, PLAIN_WHOLE), columns)",
                "read(_columns_where(workspace, head, columns, "
                "'TRY_CAST({0} AS BIGINT) IS NOT NULL'), columns)",
            ),
        ),
    ),
    _defect(
        "long codes are compared as numbers",
        1,
        "tables.canonical",
        "return _WHOLE_TEXT.fullmatch(text) is not None",
        "return text.lstrip('-').partition('.')[0].isdigit()",
    ),
    _defect(
        "TRUE and true are two classes",
        38,
        "tables.canonical",
        "truth = value.lower() if len(value) <= 5 else value",
        "truth = value",
    ),
    _defect(
        "weights are ignored",
        3,
        "auditing.counts.group_by",
        'weight=numbers(table, "weight") if aligned.has_weight else None,',
        "weight=None,",
    ),
    _defect(
        "tables are joined on the order of their rows",
        6,
        "tables.joins",
        "if rows[0] == rows[1] and not self._count(",
        "if rows[0] == rows[1] and 0 <= self._count(",
    ),
    _defect(
        "the place of a row in the examples table is taken for its identity",
        169,
        "tables.joins",
        """matched = " AND ".join(f"b.{key} = m.{key}" for key in keys)""",
        """matched = "b.rowid = m.rowid" if keys == ["example_id"] else " AND ".join("""
        """f"b.{key} = m.{key}" for key in keys)""",
    ),
    _defect(
        "examples that some variant lacks are dropped in silence",
        543,
        "tables.joins",
        "elif self.drop_missing:",
        "elif True:",
    ),
    _defect(
        "an abstention is a prediction of the first class",
        None,
        "auditing.counts.group_by",
        "place[None] = -1",
        "place[None] = 0",
    ),
    _defect(
        "the same example twice is accepted",
        382,
        "tables.identity",
        "if not has_duplicates(connection, view, kind, has_task, rows):",
        "if True:",
    ),
    _defect(
        "the byte-order mark is part of the first column's name",
        57,
        "tables.formats",
        "selected = [_as_whole(c) if c in whole else quote(c) for c in columns]",
        "selected = [_as_whole(c) if c in whole else quote(c) for c in columns]\n"
        "        if _head(files[0]).startswith('\\xef\\xbb\\xbf'):\n"
        "            selected[0] = f'{quote(columns[0])} AS ' + quote('\\ufeff' + columns[0])",
    ),
    _defect(
        "the last of several parts is not read",
        1,
        "tables.layout",
        'f"SELECT {selected(t)} FROM {quote(t.view)}" for t in tables',
        'f"SELECT {selected(t)} FROM {quote(t.view)}" for t in tables[:-1]',
    ),
    _defect(
        "codes of groups are shifted by one where some value is missing",
        5,
        "auditing.counts.cube",
        "at = {value: i for i, value in enumerate(levels)}",
        "at = {v: (i + (None in levels)) % len(levels) for i, v in enumerate(levels)}",
    ),
    _defect(
        "members are mixed up",
        1,
        "tables.align",
        """prediction=held["p"],""",
        """prediction=f"p{len(parts) - 1 - number}",""",
    ),
    _defect(
        "each row of a counted table is one example",
        1,
        "auditing.counts.group_by",
        """number = 'CAST(sum("count") AS BIGINT)' if aligned.has_count else "count(*)\"""",
        """number = "count(*)\"""",
    ),
    _defect(
        "a table of counts is audited without --count",
        None,
        "tables.frequencies",
        "if not all(_all_different(workspace.connection, part, without=column) for part in parts):",
        "if True:",
    ),
    _defect(
        "a prediction column of lists ends with an error of ours",
        None,
        "tables.checks",
        "if not is_nested(kind):",
        "if True:",
    ),
    _defect(
        "a constant label ends with an error of ours",
        None,
        "auditing.compare.rows",
        'if family is not None and (kind != "group*class" or family.n.any()):',
        "if family is not None and len(family.n):",
    ),
    _defect(
        "a suggested option names a class without quotes",
        2200,
        "auditing.pipeline",
        "{shlex.quote(part.label_classes[-1])}",
        "{part.label_classes[-1]}",
    ),
    _defect(
        "the page suggests commands without quotes",
        None,
        "report.sections",
        'return shlex.join(["fairweight", "explain", *_tables(result)])',
        'return " ".join(["fairweight", "explain", *_tables(result)])',
    ),
    _defect(
        "measurements are classes",
        56,
        "auditing.vocabulary",
        "if len(fractions) <= MOST_FRACTIONS:",
        "if True:",
    ),
    _defect(
        "a column that says whether the model was right is taken for predictions",
        1045,
        "auditing.vocabulary",
        "two_valued = any(set(classes) <= pair for pair in RIGHT_OR_WRONG)",
        "two_valued = False",
    ),
    _defect(
        "our own number of a row is a group where a table has several Parquet files",
        316,
        "tables.layout",
        'f"SELECT {selected(t)} FROM {quote(t.view)}"',
        'f"SELECT * FROM {quote(t.view)}"',
    ),
    _defect(
        "of two columns whose names differ in case alone, one is renamed in silence",
        None,
        "tables.frames",
        "if other is not None:",
        "if False:",
    ),
    _defect(
        "no attribute has a bias amplification, and that is an error of ours",
        801,
        "auditing.explain.attributes",
        'column = by["group"].astype(str).map(grouping_of)',
        'column = by["group"].astype(str).str.partition("=")[0]',
    ),
)
