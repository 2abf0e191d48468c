"""What an audit returns: one tidy frame of results, the tables beside it, their provenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairweight.errors import UnknownNameError

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

RESULT_COLUMNS: tuple[str, ...] = (
    "variant", "metric", "by", "group", "class", "task", "scope", "aggregation",
    "n", "n_clusters", "n_seeds_baseline", "n_seeds_compressed",
    "baseline", "baseline_low", "baseline_high",
    "compressed", "compressed_low", "compressed_high",
    "shift", "ci_low", "ci_high", "interval",
    "p_value", "p_adjusted", "family", "n_family", "sim_low", "sim_high",
    "excess_shift", "excess_low", "excess_high", "excess_p", "excess_p_adjusted",
    "excess_sim_low", "excess_sim_high", "level", "equivalent", "loss_ruled_out",
    "debiased", "matched", "noise_floor", "p_retraining", "churn", "status",
)  # fmt: skip

TEXT_COLUMNS: frozenset[str] = frozenset(
    {"variant", "metric", "by", "group", "class", "task", "scope", "aggregation"}
    | {"interval", "family", "status", "level"}
)
# The gate's limits: one-sided errors of GATE_ALPHA / j, for Holm's steps down to j of DIVISORS.
GATE_ALPHA = 0.05
DIVISORS: tuple[int, ...] = (1, 2, 3, 4, 6, 10, 20, 50, 200, 1000)
# Status of limits that are no interval but one bound; what it rests on follows.
BOUNDED = "bound: "
BOUND_COLUMNS: tuple[str, ...] = (
    "variant", "task", "metric", "by", "kind", "group", "class", "n", "quantity", "estimate",
    "status", *(f"{side}_{j}" for j in DIVISORS for side in ("low", "high")),
)  # fmt: skip

LEFT_OUT_COLUMNS: tuple[str, ...] = (
    "task", "kind", "group", "class", "lacks", "n", "n_weighted",
)  # fmt: skip

INTEGER_COLUMNS: frozenset[str] = frozenset(
    ("n", "n_clusters", "n_seeds_baseline", "n_seeds_compressed", "n_family")
)
BOOLEAN_COLUMNS: frozenset[str] = frozenset(("equivalent", "loss_ruled_out"))

# What is read first: one error rate for all families and variants together. `quantity` is "shift"
# or "excess"; limits and p hold for all rows of one scope at once.
LEAD_COLUMNS: tuple[str, ...] = (
    "variant", "task", "scope", "by", "column", "group", "class", "n", "quantity", "estimate",
    "low", "high", "p_lead", "n_tests",
)  # fmt: skip


@dataclass(frozen=True)
class Provenance:
    """From what and how the numbers were made; enough to make them again."""

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

    Frames (columns):

    results        RESULT_COLUMNS
    per_seed       variant, seed, task, metric, by, group, class, n, value
    confusion      variant, seed, task, label, prediction, count
    reliability    variant, seed, task, definition (ece | ece_top_label), group, bin, low, high,
                   n, mean_score, mean_outcome, contribution (ece = its sum),
                   expected_if_calibrated, calibration_in_the_large (of the whole group)
    data           split (test | train), task, by (overall | class | group | group*class),
                   group, class, n, share
    power          variant, task, metric, by, group, class, n, discordance, n_family,
                   min_detectable_shift, reference_shift, n_needed, largest_loss, status
    concentration  variant, task, column, part (a level, or "top 1 %" ...), n, share_examples,
                   lost, gained, share_lost, share_gained, share_lost_poisson
    lead           LEAD_COLUMNS: shifts and excesses of the confirmatory families with limits and p
                   that hold for all of them, and all variants, at once
    bounds         BOUND_COLUMNS: one-sided limits of what a gate can ask for, scope `model`;
                   quantity is "shift" (compressed − baseline) or "value" (of the compressed)
    left_out       LEFT_OUT_COLUMNS: examples that some variant lacks (--missing drop), in every row
                   that they would be in; lacks names the variants, n_weighted counts them in
                   examples of that row's mean weight. A row may have no examples but these.
    group_error    variant, task, group, error, excess_shift, corrected_low, corrected_high
                   (only with a declared error of the group labels; else empty)
    """

    baseline: str
    variants: tuple[str, ...]  # the compressed ones, in the order given
    classes: tuple[str, ...]
    positive: str | None
    tasks: tuple[str, ...]  # () for a single task
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
    bounds: pd.DataFrame = field(default_factory=lambda: empty_frame(BOUND_COLUMNS))
    lead: pd.DataFrame = field(default_factory=lambda: empty_frame(LEAD_COLUMNS))
    left_out: pd.DataFrame = field(default_factory=lambda: empty_frame(LEFT_OUT_COLUMNS))
    test_set: str | None = None  # the fingerprint of its examples, where it was made
    pairing: dict[str, str] = field(default_factory=dict)  # variant → parent, seed, independent, …
    single_columns: tuple[str, ...] = ()  # the groupings that are one column: "sex", "age"
    # Exemplars and explanations by the name of the table; see auditing/explain/tables.py.
    explanations: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @cached_property
    def places(self) -> dict[tuple[str, str, str, str], NDArray[np.intp]]:
        """Positions of the rows of `results` by variant, metric, by and scope."""
        scope = self.results["scope"].fillna("model").rename("scope")
        keys = [self.results[name] for name in ("variant", "metric", "by")]
        found: Any = self.results.groupby([*keys, scope], sort=False).indices
        return dict(found)


def empty_frame(columns: tuple[str, ...]) -> pd.DataFrame:
    """A frame with these columns and no rows."""
    import pandas as pd

    return pd.DataFrame(columns=list(columns))


# Choosing rows of an audit's frames; missing cells compare as missing, whatever their type.

Scope: TypeAlias = Literal["model", "method"]


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
    names = (metric,) if isinstance(metric, str) else metric
    found = [result.places.get((variant, name, by, scope), ()) for name in dict.fromkeys(names)]
    return result.results.take(sorted(place for places in found for place in places))


def of_scope(frame: pd.DataFrame, scope: Scope) -> pd.Series:
    """Which rows answer the question of one scope; a row without a scope speaks of the models."""
    own: pd.Series = frame["scope"] == scope
    return own | frame["scope"].isna() if scope == "model" else own


def is_ok(frame: pd.DataFrame) -> pd.Series:
    """Which rows carry the status `ok` (a missing status counts as ok)."""
    return frame["status"].isna() | (frame["status"] == "ok")


def records(frame: pd.DataFrame, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """The rows as dictionaries of these columns (of all by default).

    Far faster than `to_dict` where there are many columns and few are asked for.
    """
    names = list(frame.columns) if columns is None else list(columns)
    cells = [frame[name].tolist() for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*cells, strict=True)]
