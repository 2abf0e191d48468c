"""The training table: how often each label (and group, and task) occurs in the training data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.checks import require_plain
from fairweight.tables.complaints import reading
from fairweight.tables.connection import Workspace
from fairweight.tables.sources import Source
from fairweight.tables.sql import is_number, one_row, quote

COUNT_NAMES = ("count", "n")


@dataclass(frozen=True)
class Training:
    """A small table of counts on the audit's connection.

    Columns: `label`, `task` (if `has_task`), one `g<i>` for each of `group_columns`, numbered as
    in the aligned view, and `n`, the number of training examples.
    """

    view: str
    has_task: bool
    group_columns: tuple[tuple[str, str], ...]  # (the user's name, g<i>)
    n_examples: float
    n_unlabelled: int  # rows without a label, which say nothing


def count_training(
    workspace: Workspace, table: Source, label: str, task: str | None, groups: Sequence[str]
) -> Training:
    """Group the training rows, or add their given counts."""
    if label not in table.columns:
        raise UnknownNameError(
            f"In the training table {table.shown}, the column",
            label,
            table.columns,
            remedy="It must be named as in the predictions.",
        )
    require_plain(table, label, "label")
    held = [(name, f"g{i}") for i, name in enumerate(groups) if name in table.columns]
    has_task = task is not None and task in table.columns
    for name, _ in held:
        require_plain(table, name, "group")
        if name in {"n", "label", *(["task"] if has_task else [])} - {label, task}:
            raise InputError(
                f"The group column '{name}' of the training table {table.shown} has a name that "
                "counts of training examples use themselves; rename it here and in the "
                "predictions, or leave --train (train=) out."
            )
    if has_task:
        require_plain(table, str(task), "task")
    keys = [f"{quote(label)} AS label"]
    if has_task:
        keys.append(f"{quote(str(task))} AS task")
    keys += [f"{quote(name)} AS {column}" for name, column in held]
    counted = next((c for c in COUNT_NAMES if c in table.columns and c not in groups), None)
    if counted is not None and not is_number(table.kind(counted)):
        raise InputError(
            f"The column '{counted}' of the training table {table.shown} holds no numbers; "
            "it is read as the number of training examples."
        )
    number = "1::DOUBLE" if counted is None else f"CAST({table.number(counted)} AS DOUBLE)"
    view = workspace.name("training")
    with reading(f"the training table {table.shown}"):
        workspace.connection.execute(
            f"CREATE TEMP TABLE {quote(view)} AS SELECT {', '.join(keys)}, "
            f"sum({number}) AS n FROM {quote(table.view)} "
            f"WHERE {quote(label)} IS NOT NULL GROUP BY ALL"
        )
        total, least = one_row(workspace.connection, f"SELECT sum(n), min(n) FROM {quote(view)}")
        unlabelled, unknown = one_row(
            workspace.connection,
            f"SELECT count(*) FILTER ({quote(label)} IS NULL), count(*) FILTER ({quote(label)} IS "
            f"NOT NULL AND ({number} IS NULL OR isnan({number}) OR isinf({number}))) "
            f"FROM {quote(table.view)}",
        )
    if unknown:
        raise InputError(
            f"The column '{counted}' of the training table {table.shown} is missing or infinite in "
            f"{unknown:,} rows; it is read as the number of training examples, so give counts of "
            "at least 0."
        )
    if not total or least < 0:
        raise InputError(
            f"The training table {table.shown} counts no examples"
            + (" or counts below zero" if total else "")
            + "; give labels, or counts of at least 0."
        )
    return Training(view, has_task, tuple(held), float(total), int(unlabelled))
