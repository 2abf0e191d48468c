"""What an audit returns: one tidy frame of results, the tables beside it, their provenance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairweight.auditing.columns import DIVISORS as DIVISORS
from fairweight.auditing.columns import GATE_ALPHA as GATE_ALPHA
from fairweight.auditing.schema import AUDIT_TABLES, BOUND, OK, TABLES, column_names, frame, typed
from fairweight.base.wording import missing
from fairweight.errors import UnknownNameError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from fairweight.auditing.counts.cube import Cube
    from fairweight.tables.spec import OutcomeRole

# Columns by the names that the engine uses.
RESULT_COLUMNS = column_names("results")
BOUND_COLUMNS = column_names("bounds")
LEAD_COLUMNS = column_names("lead")
LEFT_OUT_COLUMNS = column_names("left_out")
TEXT_COLUMNS = TABLES["results"].of_kind("text")
INTEGER_COLUMNS = TABLES["results"].of_kind("whole")
BOOLEAN_COLUMNS = TABLES["results"].of_kind("truth")
# Status of limits that are no interval but one bound; what it rests on follows.
BOUNDED = f"{BOUND}: "


@dataclass(frozen=True)
class Provenance:
    """How the numbers were made, and from which inputs; enough to make them again."""

    version: str
    command: str | None
    created: str  # ISO 8601, UTC
    inputs: tuple[dict[str, Any], ...]  # {"name", "sha256" or None, "rows"}
    options: dict[str, Any]  # alpha, n_boot, correction, min_group, random_state, ...
    # {"tables", "options"}: what was asked for, as `TableSpec` and `AuditOptions` store it; {"out"}
    # where it was saved. Empty where nothing was asked for in these words.
    request: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AuditResult:
    """Numbers only: the report draws them, the gate judges them.

    The frames have the columns and types of `auditing/columns.py`, whatever they are made from.
    """

    baseline: str
    variants: tuple[str, ...]  # the compressed ones, in the order given
    classes: tuple[str, ...]
    positive: str | None
    tasks: tuple[str, ...]  # () for a single task, which rows do not name (`only_task`)
    groupings: tuple[str, ...]  # "sex", "age", "sex*age"
    n_examples: int
    results: pd.DataFrame
    per_seed: pd.DataFrame
    confusion: pd.DataFrame
    reliability: pd.DataFrame
    data: pd.DataFrame
    power: pd.DataFrame
    concentration: pd.DataFrame
    group_error: pd.DataFrame
    notes: tuple[str, ...]  # what was dropped, assumed, unused or not estimable, one sentence each
    provenance: Provenance
    variants_table: pd.DataFrame | None = None
    bounds: pd.DataFrame = field(default_factory=lambda: frame("bounds"))
    lead: pd.DataFrame = field(default_factory=lambda: frame("lead"))
    left_out: pd.DataFrame = field(default_factory=lambda: frame("left_out"))
    test_set: str | None = None  # the fingerprint of its examples, where it was made
    pairing: dict[str, str] = field(default_factory=dict)  # variant → parent, seed, independent, …
    single_columns: tuple[str, ...] = ()  # the groupings that are one column: "sex", "age"
    explanations: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # by name of the table
    # What was counted, or the file that holds it; None where there is none, or where it is hidden.
    cube: Cube | Path | None = field(default=None, repr=False, compare=False)
    outcome: OutcomeRole | None = None  # what stands in the place of labels and predictions
    largest_losses: dict[str, float] = field(default_factory=dict)  # of one example, by variant
    only_task: str | None = None  # where the data name a single task
    labelled: bool = True  # else it says how often predictions changed, and no more
    # (metric, by) whose rows a lone audit.json does not hold; see auditing/archive.py.
    absent: frozenset[tuple[str, str]] = frozenset()

    def __post_init__(self) -> None:
        for name in AUDIT_TABLES:
            object.__setattr__(self, name, typed(name, getattr(self, name)))
        if self.variants_table is not None:
            object.__setattr__(self, "variants_table", typed(None, self.variants_table))
        explanations = {name: typed(name, held) for name, held in self.explanations.items()}
        object.__setattr__(self, "explanations", explanations)

    @property
    def primary(self) -> str:
        """The metric that an audit is about: accuracy, or what its outcome is reported as."""
        if self.outcome is None:
            return "accuracy" if self.labelled else "flips"
        return self.outcome.metric

    @cached_property
    def places(self) -> dict[tuple[str, str, str, str], NDArray[np.intp]]:
        """Positions of the rows of `results` by variant, metric, by and scope."""
        scope = self.results["scope"].fillna("model").rename("scope")
        keys = [self.results[name] for name in ("variant", "metric", "by")]
        found: Any = self.results.groupby([*keys, scope], sort=False).indices
        return dict(found)

    @cached_property
    def overall_per_seed(self) -> pd.DataFrame:
        """The rows of `per_seed` about everybody, which the finding of every variant looks at."""
        return self.per_seed[self.per_seed["by"] == "overall"]

    @cached_property
    def rows_by_key(self) -> dict[tuple[str, ...], tuple[Row, ...]]:
        """What `rows_of` and `power_of` have made so far."""
        return {}


# Choosing rows of an audit's frames; missing cells compare as missing, whatever their type.

Scope: TypeAlias = Literal["model", "method"]
Row: TypeAlias = Mapping[str, Any]


def variant_of(result: AuditResult, variant: str | None) -> str:
    """The variant asked for; the first one if none was."""
    if variant is None:
        return result.variants[0]
    if variant not in result.variants:
        raise UnknownNameError("Variant", variant, result.variants)
    return variant


def at_task(frame: pd.DataFrame, result: AuditResult, task: str | None) -> pd.DataFrame:
    """The rows of one task.

    `None` asks for the single task of a table without tasks, else for the mean over tasks, and
    where there is no such mean (a confusion matrix), for the first task.
    """
    if task is not None and task not in result.tasks:
        raise UnknownNameError("Task", task, result.tasks)
    if task is None:
        mean = frame[frame["task"].isna()]
        if len(mean) or not result.tasks:
            return mean
        task = result.tasks[0]
    return frame[frame["task"] == task]


def select(
    result: AuditResult,
    variant: str,
    metric: str | tuple[str, ...],
    by: str,
    scope: Scope = "model",
) -> pd.DataFrame:
    """Rows of `results` of one variant, metrics, level and scope (none is `model`)."""
    import numpy as np

    names = (metric,) if isinstance(metric, str) else metric
    none = np.zeros(0, dtype=np.intp)
    found = [result.places.get((variant, name, by, scope), none) for name in dict.fromkeys(names)]
    return result.results.take(np.sort(np.concatenate([none, *found])))


def rows_of(
    result: AuditResult, variant: str, metric: str, by: str, scope: Scope = "model"
) -> tuple[Row, ...]:
    """The rows that `select` gives, made once: sentences ask for them often."""
    key = variant, metric, by, scope
    if key not in result.places:
        return ()
    if key not in result.rows_by_key:
        columns = Columns(select(result, variant, metric, by, scope))
        rows = tuple(FrameRow(columns, at) for at in range(len(columns.frame)))
        result.rows_by_key[key] = rows
    return result.rows_by_key[key]


class Columns(dict[str, list[Any]]):
    """The columns of a frame as lists, each made when it is first asked for."""

    def __init__(self, frame: pd.DataFrame) -> None:
        super().__init__()
        self.frame = frame

    def __missing__(self, name: str) -> list[Any]:
        made: list[Any] = self.frame[name].tolist()
        self[name] = made
        return made


class FrameRow(Mapping[str, Any]):
    """A row of a frame to read from: sentences ask for a few of its many columns."""

    __slots__ = ("_at", "_columns")

    def __init__(self, columns: Columns, at: int) -> None:
        self._columns, self._at = columns, at

    def __getitem__(self, name: str) -> Any:
        return self._columns[name][self._at]

    def __iter__(self) -> Iterator[str]:
        return iter(map(str, self._columns.frame.columns))

    def __len__(self) -> int:
        return len(self._columns.frame.columns)


def power_of(result: AuditResult, variant: str, metric: str, by: str) -> tuple[Row, ...]:
    """The rows of `power` of one variant, metric and level, made once."""
    if not result.rows_by_key.get(("power",)):
        every = result.rows_by_key[("power",)] = tuple(records(result.power))
        own: dict[tuple[str, ...], list[Row]] = {}
        for row in every:
            own.setdefault(("power", row["variant"], row["metric"], row["by"]), []).append(row)
        result.rows_by_key.update((key, tuple(rows)) for key, rows in own.items())
    return result.rows_by_key.get(("power", variant, metric, by), ())


def row_ok(row: Row) -> bool:
    """Whether a row carries the status `ok` (a missing status counts as ok)."""
    return missing(row["status"]) or row["status"] == OK


def of_scope(frame: pd.DataFrame, scope: Scope) -> pd.Series:
    """Which rows answer the question of one scope; a row without a scope speaks of the models."""
    own: pd.Series = frame["scope"] == scope
    return own | frame["scope"].isna() if scope == "model" else own


def is_ok(frame: pd.DataFrame) -> pd.Series:
    """Which rows carry the status `ok` (a missing status counts as ok)."""
    return frame["status"].isna() | (frame["status"] == OK)


def records(frame: pd.DataFrame, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The rows as dictionaries of these columns (of all by default).

    Far faster than `to_dict` where there are many columns and few are asked for.
    """
    names = list(frame.columns) if columns is None else list(columns)
    cells = [frame[name].tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
