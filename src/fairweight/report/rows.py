"""Choosing rows of an audit's frames; missing cells compare as missing, whatever their type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairweight.errors import UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

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
