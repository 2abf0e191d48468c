"""What every reader of a log gives: tasks with one row per example (and repeat).

A reader turns a file or folder into a `Log`. `comparability.py` then checks that two models were
asked the same things in the same way, and makes the tables of an audit.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from fairweight.base.wording import shown
from fairweight.errors import InputError
from fairweight.tables.logs.records import Cell

Side: TypeAlias = Literal["higher", "lower"]
MOST_LEVELS = 50  # of a field that is offered as a group column
CHUNK = 4096  # samples that are held as Python values
# Metrics that say 0 or 1 for an example; tasks that differ in them can stand in one audit.
CORRECTNESS = frozenset(
    ("acc", "acc_norm", "exact_match", "em", "accuracy", "correct", "quasi_exact_match",
     "prefix_exact_match", "quasi_prefix_exact_match", "pass@1", "match", "choice", "includes")
)  # fmt: skip
# Where a log does not say which side is better.
KNOWN_BETTER: dict[str, Side] = {
    **dict.fromkeys(CORRECTNESS, "higher"),
    **dict.fromkeys(("f1", "f1_score", "bleu", "chrf", "rouge1", "rouge2", "rougeL", "rouge_l"),
                    "higher"),
    **dict.fromkeys(("wer", "cer", "ter", "brier_score", "loss", "perplexity", "word_perplexity",
                     "byte_perplexity", "bits_per_byte"), "lower"),
}  # fmt: skip


@dataclass(frozen=True)
class LogRequest:
    """What is read of a log.

    Parameters
    ----------
    filter
        Where a tool scores every example by several filters: the one to take.
    tasks
        Only these; all by default.
    named
        Fields of examples that were asked for, as groups or clusters: kept however many values
        they have.
    """

    filter: str | None = None
    tasks: tuple[str, ...] = ()
    named: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Metric:
    """A number per example: what it is called, which side is better, and whether it is a ratio."""

    name: str
    better: Side | None = None
    has_denominator: bool = False


@dataclass(frozen=True)
class Sample:
    """One example as a log holds it.

    Parameters
    ----------
    asked, prompt
        Digests of what was asked (question and target), and of the prompt that was sent.
    state
        ok, truncated, failed or unparsed.
    """

    example: str
    asked: bytes
    values: Mapping[str, float]
    prompt: bytes = b""
    denominators: Mapping[str, float] = field(default_factory=dict)
    answer: str | None = None
    label: str | None = None
    state: str = "ok"
    repeat: int = 1
    fields: Mapping[str, Cell] = field(default_factory=dict)


class Samples:
    """The samples of a task, packed into columns as they come: a log may have millions.

    `table` has the columns of a `Sample`, each metric as `value:NAME` and `denominator:NAME`, and
    each field that could be a group as `field:NAME`.
    """

    def __init__(self, named: Collection[str] = ()) -> None:
        self._named = named
        self._rows: list[Sample] = []
        self._packed: list[pa.Table] = []
        self._levels: dict[str, set[Cell]] = {}
        self._dropped: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._rows or self._packed)

    def append(self, sample: Sample) -> None:
        self._rows.append(sample)
        for name, value in sample.fields.items():
            if name not in self._dropped:
                levels = self._levels.setdefault(name, set())
                levels.add(value)
                if len(levels) > MOST_LEVELS and name not in self._named:
                    self._dropped.add(name)
                    del self._levels[name]
        if len(self._rows) == CHUNK:
            self._pack()

    def _pack(self) -> None:
        rows, self._rows = self._rows, []
        if not rows:
            return
        columns: dict[str, pa.Array] = {
            "example": pa.array([row.example for row in rows], pa.string()),
            "asked": pa.array([row.asked for row in rows], pa.binary()),
            "prompt": pa.array([row.prompt for row in rows], pa.binary()),
            "answer": pa.array([row.answer for row in rows], pa.string()),
            "label": pa.array([row.label for row in rows], pa.string()),
            "state": pa.array([row.state for row in rows], pa.string()),
            "repeat": pa.array([row.repeat for row in rows], pa.int64()),
        }
        for part, kind in (("values", "value"), ("denominators", "denominator")):
            for name in dict.fromkeys(name for row in rows for name in getattr(row, part)):
                held = [getattr(row, part).get(name) for row in rows]
                columns[f"{kind}:{name}"] = pa.array(held, pa.float64())
        for name in self._levels:
            cells = [row.fields.get(name) for row in rows]
            texts = [None if cell is None else str(cell) for cell in cells]
            columns[f"field:{name}"] = pa.array(texts, pa.string())
        self._packed.append(pa.table(columns))

    def table(self) -> pa.Table:
        """All samples; fields with too many values are left out."""
        self._pack()
        if len(self._packed) != 1 or self._dropped:
            whole = pa.concat_tables(self._packed, promote_options="default")
            gone = [f"field:{name}" for name in self._dropped]
            self._packed = [
                whole.drop_columns([name for name in gone if name in whole.schema.names])
            ]
        return self._packed[0]


@dataclass(frozen=True)
class TaskLog:
    """One task of a log.

    Parameters
    ----------
    samples
        The table of `Samples`.
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
    samples: pa.Table
    metrics: Sequence[Metric]
    settings: Mapping[str, Any] = field(default_factory=dict)
    incidental: Mapping[str, Any] = field(default_factory=dict)
    positions: bool = False
    reported: Mapping[str, float] = field(default_factory=dict)

    def values(self, metric: str) -> pa.ChunkedArray:
        return self.samples.column(f"value:{metric}")


@dataclass(frozen=True)
class Log:
    """What one model was asked, and how it did."""

    path: Path
    tool: str  # with its version
    tasks: Mapping[str, TaskLog]
    files: tuple[Path, ...]  # that were read
    notes: Sequence[str] = ()


def chosen_tasks(request: LogRequest, there: Collection[str], path: Path) -> list[str]:
    """The tasks to read: those that were named, else all that a log has."""
    for name in request.tasks:
        if name not in there:
            raise InputError(
                f"--log-tasks: '{path}' has no task '{shown(name, 60)}'; it has: "
                f"{', '.join(shown(one, 40) for one in list(there)[:20])}."
            )
    return [name for name in there if not request.tasks or name in request.tasks]


def common_values(samples: pa.Table, kind: str = "value") -> list[str]:
    """Metrics that every sample has."""
    return [
        name.removeprefix(f"{kind}:")
        for name in samples.schema.names
        if name.startswith(f"{kind}:") and samples.column(name).null_count == 0
    ]


# Reading: one module per tool, each with `finds(path)` and `read(path, request)`.

READERS = ("lm_eval", "inspect_ai", "helm", "lighteval")
Reader: TypeAlias = Callable[[Path, LogRequest], Log]


def reader_of(path: Path) -> Reader | None:
    """The reader whose files a path holds; None where it is no log that is known."""
    for name in READERS:
        module = importlib.import_module(f"fairweight.tables.logs.{name}")
        if module.finds(path):
            reader: Reader = module.read
            return reader
    return None


def read_log(path: str | Path, request: LogRequest | None = None) -> Log:
    """Read a log by whatever tool wrote it."""
    place, wanted = Path(path), request or LogRequest()
    reader = reader_of(place)
    if reader is None:
        raise InputError(
            f"'{place}' is no evaluation log that fairweight knows (lm-eval with --log_samples, "
            "Inspect, HELM, lighteval); give a table with one row per example, or make one of it "
            "by --query."
        )
    log = reader(place, wanted)
    for task in log.tasks.values():
        _check_task(log, task)
    return log


def _check_task(log: Log, task: TaskLog) -> None:
    """Every example once, and what the tool reported is what its samples give."""
    if task.samples.num_rows == 0:
        raise InputError(f"'{log.path}' has no samples of the task '{shown(task.name, 60)}'.")
    times = task.samples.group_by(["example", "repeat"]).aggregate([([], "count_all")])
    most = pc.max(times["count_all"]).as_py()
    if most > 1:
        example = times.filter(pc.equal(times["count_all"], most))["example"][0].as_py()
        raise InputError(
            f"'{log.path}': the example '{shown(example, 60)}' of the task "
            f"'{shown(task.name, 60)}' occurs {most} times; evaluate again, or remove the copies."
        )
    for name, said in task.reported.items():
        if name not in common_values(task.samples) or not math.isfinite(said):
            continue
        mean = float(pc.mean(task.values(name)).as_py())
        if abs(mean - said) > 1e-6 * max(1.0, abs(said)) + 5e-5:
            raise InputError(
                f"'{log.path}': the results say {name} = {said:.4f} for the task "
                f"'{shown(task.name, 60)}', and its samples give {mean:.4f}; they are of "
                "different runs. Keep the files of one run."
            )
