"""What every reader of a log gives, and how the logs of two models become one audit.

A reader turns a file or folder into a `Log`: tasks with rows of one example each. Before any number
is computed, `audit_of` checks that the models were asked the same things in the same way.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from fairweight.base.wording import shown
from fairweight.errors import InputError

Better: TypeAlias = Literal["higher", "lower"]
Cell: TypeAlias = str | float | int | bool | None
STATES = ("ok", "truncated", "failed", "unparsed")
MOST_LEVELS = 50  # of a field that is offered as a group column
NONE = "(none)"  # the group of examples that lack a field
LONGEST_LEVEL = 80  # characters of a group's name
# Metrics that say 0 or 1 for an example; tasks that differ in them can stand in one audit.
CORRECTNESS = frozenset(
    ("acc", "acc_norm", "exact_match", "em", "accuracy", "correct", "quasi_exact_match",
     "prefix_exact_match", "quasi_prefix_exact_match", "pass@1", "match", "choice", "includes")
)  # fmt: skip
# Where a log does not say which side is better.
KNOWN_BETTER: dict[str, Better] = {
    **dict.fromkeys(CORRECTNESS, "higher"),
    **dict.fromkeys(("f1", "f1_score", "bleu", "chrf", "rouge1", "rouge2", "rougeL", "rouge_l"),
                    "higher"),
    **dict.fromkeys(("wer", "cer", "ter", "brier_score", "loss", "perplexity", "word_perplexity",
                     "byte_perplexity", "bits_per_byte"), "lower"),
}  # fmt: skip


@dataclass(frozen=True)
class Metric:
    """A number per example: what it is called, which side is better, and whether it is a ratio."""

    name: str
    better: Better | None = None
    has_denominator: bool = False


@dataclass(frozen=True)
class Sample:
    """One example as a log holds it; `asked` is a digest of prompt and target."""

    example: str
    asked: str
    values: Mapping[str, float]
    denominators: Mapping[str, float] = field(default_factory=dict)
    answer: str | None = None
    label: str | None = None
    state: str = "ok"
    repeat: int = 1
    fields: Mapping[str, Cell] = field(default_factory=dict)


@dataclass(frozen=True)
class TaskLog:
    """One task of a log.

    Parameters
    ----------
    metrics
        Numbers that its samples have, the task's own first choice first.
    settings, incidental
        What must be the same for two models to be compared (versions, shots, generation), and
        what is only worth a note where it differs (seeds, limits: the prompts are compared).
    positions
        Whether labels are positions of answers, not classes.
    reported
        Means that the tool itself reported, by metric.
    """

    name: str
    samples: Sequence[Sample]
    metrics: Sequence[Metric]
    settings: Mapping[str, Any] = field(default_factory=dict)
    incidental: Mapping[str, Any] = field(default_factory=dict)
    positions: bool = False
    reported: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Log:
    """What one model was asked, and how it did."""

    path: Path
    tool: str  # with its version
    tasks: Mapping[str, TaskLog]
    notes: Sequence[str] = ()


# Reading: one module per tool, each with `finds` and `read`.

READERS = ("lm_eval", "inspect_ai", "helm")
Reader: TypeAlias = Callable[[Path, str | None], Log]


def reader_of(path: Path) -> Reader | None:
    """The reader whose files a path holds; None where it is no log that is known."""
    for name in READERS:
        module = importlib.import_module(f"fairweight.tables.logs.{name}")
        if module.finds(path):
            reader: Reader = module.read
            return reader
    return None


def read_log(path: str | Path, filter: str | None = None) -> Log:
    """Read a log by whatever tool wrote it.

    Parameters
    ----------
    filter
        Where a tool scores every example by several filters: the one to take.
    """
    place = Path(path)
    reader = reader_of(place)
    if reader is None:
        raise InputError(
            f"'{place}' is no evaluation log that fairweight knows (lm-eval with --log_samples, "
            "Inspect, HELM); convert it into a table with one row per example."
        )
    log = reader(place, filter)
    for task in log.tasks.values():
        _check_task(log, task)
    return log


def _check_task(log: Log, task: TaskLog) -> None:
    """Every example once, and what the tool reported is what its samples give."""
    if not task.samples:
        raise InputError(f"'{log.path}' has no samples of the task '{shown(task.name, 60)}'.")
    times = Counter((sample.example, sample.repeat) for sample in task.samples)
    (example, _), most = times.most_common(1)[0]
    if most > 1:
        raise InputError(
            f"'{log.path}': the example '{shown(example, 60)}' of the task "
            f"'{shown(task.name, 60)}' occurs {most} times; evaluate again, or remove the copies."
        )
    for name, said in task.reported.items():
        values = [s.values[name] for s in task.samples if name in s.values]
        if values and len(values) == len(task.samples) and math.isfinite(said):
            mean = math.fsum(values) / len(values)
            if abs(mean - said) > 1e-6 * max(1.0, abs(said)) + 5e-5:
                raise InputError(
                    f"'{log.path}': the results say {name} = {said:.4f} for the task "
                    f"'{shown(task.name, 60)}', and its samples give {mean:.4f}; they are of "
                    "different runs. Keep the files of one run."
                )


def number(value: Any) -> float | None:
    """A number of a log, also where it is text or true; None where it is none.

    >>> number("0.5"), number(True), number("nan"), number([1, 2])
    (0.5, 1.0, None, None)
    """
    try:
        found = float(value) if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        found = math.nan
    return found if math.isfinite(found) else None


def digest(*parts: Any) -> str:
    """A short name of what was asked, the same for the same text."""
    text = json.dumps(parts, sort_keys=True, default=str).encode()
    return hashlib.blake2b(text, digest_size=12).hexdigest()


def plain_fields(record: Any) -> dict[str, Cell]:
    """The fields of a record that could name a group: short text, whole numbers, yes or no."""
    if not isinstance(record, Mapping):
        return {}
    found: dict[str, Cell] = {}
    for name, value in record.items():
        if isinstance(value, bool | int) or (
            isinstance(value, str) and 0 < len(value) <= LONGEST_LEVEL
        ):
            found[str(name)] = value
    return found


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The records of a file with one JSON value per line, and their line numbers."""
    with path.open("rb") as file:
        for place, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield place, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(
                    f"'{path}', line {place:,}: no whole JSON record ({shown(str(error), 80)}); "
                    "the file may be cut off: evaluate again, or remove the line."
                ) from None


def read_json(path: Path) -> Any:
    """The one value of a JSON file."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"'{path}' is no whole JSON file ({shown(str(error), 80)}); it may be cut off."
        ) from None


# Two or more models: the same tasks, examples and settings, then one table per model.


@dataclass(frozen=True)
class LogAudit:
    """What an audit of logs reads: a table per variant, and what its columns are.

    Parameters
    ----------
    tables
        By variant: `example_id`, `task`, the outcome, its denominator, `answer`, `label`, `state`,
        `repeat` and group columns.
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
    better: Better
    denominator: str | None
    groups: tuple[str, ...]
    repeat: str | None
    notes: tuple[str, ...]


def audit_of(
    logs: Mapping[str, Log],
    metric: str | None = None,
    tasks: Sequence[str] = (),
    better: Better | None = None,
    allow: Sequence[str] = (),
) -> LogAudit:
    """Check that logs can be compared, and turn them into tables.

    Parameters
    ----------
    logs
        By variant, the baseline first.
    metric
        The number to audit; by default the first choice of the tasks.
    tasks
        Only these; all by default.
    better
        Its better side, where the logs do not say.
    allow
        Settings that may differ between the logs; they become a note.
    """
    first = next(iter(logs))
    selected = {variant: _selected(variant, log, tasks) for variant, log in logs.items()}
    names = list(selected[first])
    notes = [note for log in logs.values() for note in log.notes]
    for variant, own in selected.items():
        if missing := sorted(set(names) ^ set(own)):
            raise InputError(
                f"'{first}' and '{variant}' were not asked the same tasks: "
                f"'{shown(missing[0], 60)}' is only in one of them; evaluate it in both, or name "
                "the tasks to compare (--tasks)."
            )
        for name in names:
            notes += _differences(selected[first][name], own[name], first, variant, allow)
            _check_asked(selected[first][name], own[name], first, variant)
    outcome, by_task = _outcome(selected[first], metric)
    side = _better(by_task, better, outcome)
    fields = _group_fields([own for tasks_ in selected.values() for own in tasks_.values()])
    repeated = any(
        s.repeat > 1 for own in selected.values() for t in own.values() for s in t.samples
    )
    ratio = any(chosen.has_denominator for chosen in by_task.values())
    if any(task.positions for task in selected[first].values()):
        notes.append(
            "Labels are positions of answers, not classes: correctness is audited, and the "
            "position of the right answer is a group column (gold)."
        )
    return LogAudit(
        tables={v: _table(own, by_task, outcome, fields, ratio) for v, own in selected.items()},
        outcome=outcome,
        better=side,
        denominator="denominator" if ratio else None,
        groups=(*(["task"] if len(names) > 1 else []), *fields),
        repeat="repeat" if repeated else None,
        notes=tuple(dict.fromkeys(notes)),
    )


def _selected(variant: str, log: Log, tasks: Sequence[str]) -> dict[str, TaskLog]:
    for name in tasks:
        if name not in log.tasks:
            raise InputError(
                f"'{variant}' ('{log.path}') has no task '{shown(name, 60)}'; it has: "
                f"{', '.join(shown(one, 40) for one in list(log.tasks)[:20])}."
            )
    return {name: task for name, task in log.tasks.items() if not tasks or name in tasks}


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


def _check_asked(base: TaskLog, other: TaskLog, first: str, variant: str) -> None:
    asked = {(s.example, s.repeat): s.asked for s in base.samples}
    theirs = {(s.example, s.repeat): s.asked for s in other.samples}
    if missing := sorted(set(asked) ^ set(theirs)):
        example, _ = missing[0]
        holder, lacking = (first, variant) if missing[0] in asked else (variant, first)
        raise InputError(
            f"The task '{shown(base.name, 60)}' has {len(missing):,} examples in only one of the "
            f"two logs, such as '{shown(example, 60)}' in '{holder}' and not in '{lacking}'; "
            "evaluate both on the same examples (the same --limit), without failures."
        )
    if changed := [key for key, value in asked.items() if theirs[key] != value]:
        raise InputError(
            f"The prompts or targets of {len(changed):,} of {len(asked):,} examples of "
            f"'{shown(base.name, 60)}' differ between '{first}' and '{variant}', such as example "
            f"'{shown(changed[0][0], 60)}'; evaluate both with the same prompts, few-shot examples "
            "and chat template."
        )


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
                f"The task '{shown(lacking[0], 60)}' has no metric '{shown(wanted, 60)}'; it has: "
                f"{', '.join(offered[lacking[0]])}. Name the tasks that have it (--tasks)."
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
        "unit; name one (--metric), or tasks that share one (--tasks)."
    )


def _better(by_task: Mapping[str, Metric], given: Better | None, outcome: str) -> Better:
    said = {m.better or KNOWN_BETTER.get(m.name) for m in by_task.values()} - {None}
    if given is not None:
        return given
    if len(said) == 1:
        side: Better = said.pop()  # type: ignore[assignment]
        return side
    raise InputError(
        f"The logs do not say which side of '{shown(outcome, 60)}' is better; say it: --better "
        "higher, or --better lower."
    )


def _group_fields(tasks: Sequence[TaskLog]) -> tuple[str, ...]:
    """Fields that could be groups: in most samples, with 2 to 50 levels that occur often."""
    levels: dict[str, Counter[Cell]] = {}
    total = 0
    for task in tasks:
        for sample in task.samples:
            total += 1
            for name, value in sample.fields.items():
                levels.setdefault(name, Counter())[value] += 1
    return tuple(
        name
        for name, counted in levels.items()
        if counted.total() >= total / 2
        and 2 <= len(counted) <= MOST_LEVELS
        and len(counted) <= total / 10
        and name not in ("task", "state", "answer", "label", "repeat", "example_id")
    )


def _table(
    tasks: Mapping[str, TaskLog],
    by_task: Mapping[str, Metric],
    outcome: str,
    fields: Sequence[str],
    ratio: bool,
) -> pa.Table:
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "example_id",
            "task",
            outcome,
            "denominator",
            "answer",
            "label",
            "state",
            "repeat",
        )
    }
    columns |= {name: [] for name in fields}
    for name, task in tasks.items():
        metric = by_task[name].name
        for sample in task.samples:
            if metric not in sample.values:
                raise InputError(
                    f"The example '{shown(sample.example, 60)}' of the task '{shown(name, 60)}' "
                    f"has no {metric}; evaluate again, or choose another metric (--metric)."
                )
            columns["example_id"].append(f"{name}/{sample.example}")
            columns["task"].append(name)
            columns[outcome].append(sample.values[metric])
            columns["denominator"].append(sample.denominators.get(metric, 1.0))
            columns["answer"].append(sample.answer)
            columns["label"].append(sample.label)
            columns["state"].append(sample.state)
            columns["repeat"].append(sample.repeat)
            for one in fields:
                columns[one].append(str(sample.fields.get(one, NONE)))
    if not ratio:
        del columns["denominator"]
    kinds = {outcome: pa.float64(), "denominator": pa.float64(), "repeat": pa.int64()}
    return pa.table({n: pa.array(v, kinds.get(n, pa.string())) for n, v in columns.items()})
