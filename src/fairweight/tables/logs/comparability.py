"""Logs of two or more models: the same tasks, examples and settings, then one table per model.

Whatever differs between them in what was asked, or how, is refused or noted by its name before any
number is computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fairweight.base.wording import shown
from fairweight.errors import InputError
from fairweight.tables.logs.log import (
    CORRECTNESS,
    KNOWN_BETTER,
    MOST_LEVELS,
    Log,
    Metric,
    Side,
    TaskLog,
)

Codes: TypeAlias = NDArray[np.int64]
NONE = "(none)"  # the group of examples that lack a field
GOLD = "gold"  # the position of the right answer
PROMPTS = "prompts"  # may differ if it is named, as settings may
# Columns of the tables that are made here; a field of the same name is left out.
ROLES = ("example_id", "task", "prediction", "label", "state", "repeat", "denominator")
# What a table's columns are taken for by their name; a field of an example is none of it.
RESERVED = frozenset((*ROLES, "variant", "seed", "score", "scores", "label_rank", "weight"))
MOST_SHOWN = 5  # levels of a group column in a note


@dataclass(frozen=True)
class LogAudit:
    """What an audit of logs reads: a table per variant, and what its columns are.

    Parameters
    ----------
    tables
        By variant: `example_id`, `task`, the outcome, its denominator, `prediction` (the answer),
        `label`, `state`, `repeat` and group columns.
    outcome, better, denominator
        The column of the outcome, its better side, and the column of its denominator.
    groups
        Columns that may be groups, `task` first where there are several.
    repeat
        The column of repeated generations, where there are any.
    notes
        What a reader should know, in sentences.
    """

    tables: Mapping[str, pa.Table]
    outcome: str
    better: Side
    denominator: str | None
    groups: tuple[str, ...]
    repeat: str | None
    notes: tuple[str, ...]


def audit_of(
    logs: Mapping[str, Log],
    outcome: str | None = None,
    better: str | None = None,
    allow: Sequence[str] = (),
    named: frozenset[str] = frozenset(),
) -> LogAudit:
    """Check that logs can be compared, and turn them into tables.

    Parameters
    ----------
    logs
        By variant, the baseline first.
    outcome, better
        The number to audit, by default the first choice of the tasks, and its better side, where
        the logs do not say.
    allow
        Settings that may differ between the logs; they become a note.
    named
        Fields that are wanted as columns, groups or not.
    """
    first = next(iter(logs))
    tasks = {variant: dict(log.tasks) for variant, log in logs.items()}
    names = list(tasks[first])
    notes = [note for log in logs.values() for note in log.notes]
    for variant, log in logs.items():  # two tools do not make scores alike, whatever their names
        if log.tool.split()[0] != logs[first].tool.split()[0]:
            raise InputError(
                f"'{first}' is a log of {logs[first].tool} and '{variant}' one of {log.tool}; "
                "evaluate both with the same tool."
            )
    for variant, own in tasks.items():
        if missing := sorted(set(names) ^ set(own)):
            raise InputError(
                f"'{first}' and '{variant}' were not run on the same tasks: "
                f"'{shown(missing[0], 60)}' is only in one of them; evaluate it in both, or name "
                "the tasks to compare (--log-tasks)."
            )
        for name in names:
            notes += _differences(tasks[first][name], own[name], first, variant, allow)
            notes += _check_asked(tasks[first][name], own[name], first, variant, allow)
    chosen_outcome, by_task = _outcome(tasks[first], outcome)
    side = _better(by_task, better, chosen_outcome)
    if any(task.positions for task in tasks[first].values()):
        notes.append(
            "Labels are positions of answers, not classes: correctness is audited, and the "
            "position of the right answer is a group column (gold)."
        )
    ratio = any(metric.has_denominator for metric in by_task.values())
    tables = {
        variant: _table(own, by_task, chosen_outcome, ratio) for variant, own in tasks.items()
    }
    groups, same = group_columns(tables[first], ROLES, several=len(names) > 1)
    notes += same
    for variant, table in tables.items():
        notes += _states(variant, table, groups)
    kept = {*ROLES, chosen_outcome, *groups, *named}
    if len(names) == 1:
        kept.remove("task")
    repeated = any(pc.max(table["repeat"]).as_py() > 1 for table in tables.values())
    return LogAudit(
        tables={v: t.select([c for c in t.schema.names if c in kept]) for v, t in tables.items()},
        outcome=chosen_outcome,
        better=side,
        denominator="denominator" if ratio else None,
        groups=groups,
        repeat="repeat" if repeated else None,
        notes=tuple(dict.fromkeys(notes)),
    )


def _differences(
    base: TaskLog, other: TaskLog, first: str, variant: str, allow: Sequence[str]
) -> Iterator[str]:
    """Notes on settings that differ and may; an error where they may not."""
    for kind in ("settings", "incidental"):
        held, theirs = getattr(base, kind), getattr(other, kind)
        for name in sorted(set(held) | set(theirs)):
            one, two = held.get(name), theirs.get(name)
            if one == two:
                continue
            words = ["not set" if value is None else shown(value, 60) for value in (one, two)]
            said = f"{name} is {words[0]} for '{first}' and {words[1]} for '{variant}'"
            if kind == "settings" and name not in allow:
                raise InputError(
                    f"The task '{shown(base.name, 60)}' was run differently: {said}. Evaluate "
                    f"both alike, or allow it by name (--allow-different {name})."
                )
            yield f"The runs differ: {said}."


def _check_asked(
    base: TaskLog, other: TaskLog, first: str, variant: str, allow: Sequence[str]
) -> Iterator[str]:
    order = [("example", "ascending"), ("repeat", "ascending")]
    mine, theirs = base.samples.sort_by(order), other.samples.sort_by(order)
    task = shown(base.name, 60)
    if not mine.select(["example", "repeat"]).equals(theirs.select(["example", "repeat"])):
        keys = [set(zip(*t.select(["example", "repeat"]).to_pydict().values(), strict=True))
                for t in (mine, theirs)]  # fmt: skip
        missing = sorted(keys[0] ^ keys[1])
        holder, lacking = (first, variant) if missing[0] in keys[0] else (variant, first)
        raise InputError(
            f"The task '{task}' has {len(missing):,} examples in only one of the "
            f"two logs, such as '{shown(missing[0][0], 60)}' in '{holder}' and not in '{lacking}'; "
            "evaluate both on the same examples (the same --limit), without failures."
        )
    for column, what in (("asked", "questions or targets"), ("prompt", PROMPTS)):
        differ = pc.not_equal(mine[column], theirs[column])
        count = pc.sum(differ).as_py() or 0
        if not count:
            continue
        example = shown(mine.filter(differ)["example"][0].as_py(), 60)
        said = (
            f"The {what} of {count:,} of {len(mine):,} examples of '{task}' differ between "
            f"'{first}' and '{variant}', such as example '{example}'"
        )
        if column == "asked":
            raise InputError(f"{said}; evaluate both on the same version of the data.")
        if PROMPTS not in allow:
            raise InputError(
                f"{said}; evaluate both with the same few-shot examples and chat template, or "
                f"allow it by name (--allow-different {PROMPTS})."
            )
        yield f"{said}."


def _outcome(tasks: Mapping[str, TaskLog], wanted: str | None) -> tuple[str, dict[str, Metric]]:
    """The name of the outcome, and each task's metric for it."""
    offered = {name: {m.name: m for m in task.metrics} for name, task in tasks.items()}
    for name, metrics in offered.items():
        if not metrics:
            raise InputError(f"The task '{shown(name, 60)}' has no number per example to audit.")
    if wanted is not None:
        lacking = [name for name, metrics in offered.items() if wanted not in metrics]
        if lacking:
            raise InputError(
                f"--outcome: the task '{shown(lacking[0], 60)}' has no metric "
                f"'{shown(wanted, 60)}' for every example; it has: "
                f"{', '.join(offered[lacking[0]])}. Name the tasks that have it (--log-tasks)."
            )
        return wanted, {name: metrics[wanted] for name, metrics in offered.items()}
    chosen = {name: next(iter(metrics.values())) for name, metrics in offered.items()}
    names = sorted({metric.name for metric in chosen.values()})
    if len(names) == 1:
        return names[0], chosen
    if all(name in CORRECTNESS for name in names):
        return "correct", chosen
    raise InputError(
        f"The tasks are scored by different metrics ({', '.join(names)}), which have no common "
        "unit; name one that all have (--outcome NAME --better higher), or tasks that share one "
        "(--log-tasks)."
    )


def _better(by_task: Mapping[str, Metric], given: str | None, outcome: str) -> Side:
    said = {m.better or KNOWN_BETTER.get(m.name) for m in by_task.values()} - {None}
    if given is not None and said - {given}:
        raise InputError(
            f"--better {given}: the logs say that '{shown(outcome, 60)}' is better when it is "
            f"{next(iter(said - {given}))}; leave --outcome and --better out, or correct it."
        )
    for side in ("higher", "lower"):
        if given == side or (given is None and said == {side}):
            return side
    raise InputError(
        f"The logs do not say which side of '{shown(outcome, 60)}' is better; say it: --outcome "
        f"{shown(outcome, 60)} --better higher, or --better lower."
    )


def _table(
    tasks: Mapping[str, TaskLog], by_task: Mapping[str, Metric], outcome: str, ratio: bool
) -> pa.Table:
    """One table of all tasks, in which an example is called after its task too."""
    parts = []
    for name, task in tasks.items():
        held, metric = task.samples, by_task[name]
        of_task = pa.scalar(name)
        values = task.values(metric.name)
        columns: dict[str, pa.ChunkedArray | pa.Array] = {
            "example_id": pc.binary_join_element_wise(of_task, held["example"], "/"),
            "task": pa.repeat(of_task, held.num_rows),
            outcome: values,
            "prediction": held["answer"],
            "label": held["label"],
            "state": held["state"],
            "repeat": held["repeat"],
        }
        if ratio:
            columns["denominator"] = (
                held[f"denominator:{metric.name}"]
                if metric.has_denominator
                else pa.repeat(1.0, held.num_rows)
            )
        for column in held.schema.names:
            field = column.removeprefix("field:")
            if field != column and field not in columns and field not in RESERVED:
                columns[field] = pc.fill_null(held[column], NONE)
        parts.append(pa.table(columns))
    whole = pa.concat_tables(parts, promote_options="default")
    for place, column in enumerate(whole.schema.names):
        if whole[column].null_count and column not in ROLES:
            whole = whole.set_column(place, column, pc.fill_null(whole[column], NONE))
    return whole


def group_columns(
    table: pa.Table, roles: Sequence[str], *, several: bool = False
) -> tuple[tuple[str, ...], list[str]]:
    """Columns that could be groups: most samples have them, with 2 to 50 levels that recur.

    Of two columns that tell the same examples apart the first is taken.
    """
    groups: list[str] = ["task"] if several else []
    codes = [_codes(table["task"])] if several else []
    notes: list[str] = []
    for column in sorted(table.schema.names, key=lambda name: name != GOLD):
        if column in roles or not pa.types.is_string(table.schema.field(column).type):
            continue
        levels = pc.value_counts(table[column])
        counts = {one["values"].as_py(): one["counts"].as_py() for one in levels}
        if (
            counts.get(NONE, 0) > table.num_rows / 2
            or not 2 <= len(counts) <= MOST_LEVELS
            or len(counts) > table.num_rows / 10
        ):
            continue
        own = _codes(table[column])
        twin = next((g for g, c in zip(groups, codes, strict=True) if _same(c, own)), None)
        if twin is not None:
            notes.append(f"'{column}' tells the same examples apart as '{twin}' and is left out.")
            continue
        groups.append(column)
        codes.append(own)
    return tuple(groups), notes


def _codes(column: pa.ChunkedArray) -> Codes:
    coded = column.combine_chunks().dictionary_encode()
    return np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _same(one: Codes, two: Codes) -> bool:
    """Whether two columns divide the rows alike."""
    pairs = len(np.unique(one * (two.max() + 1) + two))
    return pairs == len(np.unique(one)) == len(np.unique(two))


def _states(variant: str, table: pa.Table, groups: Sequence[str]) -> Iterator[str]:
    """How many generations were cut off, failed or could not be read, by group."""
    for state in ("truncated", "failed", "unparsed"):
        rows = table.filter(pc.equal(table["state"], state))
        if not rows.num_rows:
            continue
        by = []
        for group in groups:
            counted = Counter(rows[group].to_pylist()).most_common()
            levels = ", ".join(f"{shown(level, 40)} {n:,}" for level, n in counted[:MOST_SHOWN])
            by.append(f"{group}: {levels}{' …' if len(counted) > MOST_SHOWN else ''}")
        said = f" ({'; '.join(by)})" if by else ""
        yield (
            f"Of the {table.num_rows:,} generations of '{variant}', {rows.num_rows:,} were "
            f"{state}{said}."
        )
