"""Frames that are read straight off the cube: confusion, examples per group, those left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairweight.auditing import schema
from fairweight.auditing.counts.counts import sums
from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import groupings, whole
from fairweight.tables.names import group_name, level_name, split_grouping

ABSTAINED = "(abstained)"
SUPPRESSED = "(suppressed)"  # who lacks examples that a published cube does not tell of


def confusion(cube: Cube) -> pd.DataFrame:
    """Non-empty cells of every member's confusion matrix (weighted where there are weights)."""
    columns: dict[str, list[Any]] = {name: [] for name in schema.column_names("confusion")}
    for task in cube.tasks or (None,):
        part = cube.of_task(task)
        amount = part.amount
        names = np.array([*part.classes, ABSTAINED], dtype=object)
        n_classes = len(part.classes)
        for m, member in enumerate(part.members):
            answer = np.where(part.prediction[:, m] < 0, n_classes, part.prediction[:, m])
            key = part.label.astype(np.int64) * (n_classes + 1) + answer
            cells, place = np.unique(key, return_inverse=True)
            for name, value in (("variant", member.variant), ("seed", member.seed), ("task", task)):
                columns[name].append(np.full(len(cells), value, dtype=object))
            columns["label"].append(names[cells // (n_classes + 1)])
            columns["prediction"].append(names[cells % (n_classes + 1)])
            columns["count"].append(sums(place.reshape(-1), amount, len(cells)))
    return schema.frame(
        "confusion", {name: np.concatenate(parts) for name, parts in columns.items()}
    )


def data_table(
    cube: Cube, grouping_names: Sequence[str], train: pd.DataFrame | None
) -> pd.DataFrame:
    """Examples per split, class and group, with shares."""
    # Split, task, by, group, class, examples, and all examples of the split and task.
    rows: list[tuple[str, Any, str, str | None, str | None, float, float]] = []
    for task in cube.tasks or (None,):
        part = cube.of_task(task)
        total, classes = int(part.count.sum()), part.label_classes
        for grouping in (whole(part), *groupings(part, grouping_names)):
            shape = len(grouping.levels), len(classes)
            place = grouping.code.astype(np.int64) * shape[1] + part.label
            table = sums(place, part.count, shape[0] * shape[1]).reshape(shape)
            if not grouping.name:
                rows.append(("test", task, "overall", None, None, total, total))
                for cls, n in zip(classes, table[0], strict=True) if cube.has_classes else ():
                    rows.append(("test", task, "class", None, cls, n, total))
                continue
            for level, own in zip(grouping.levels, table, strict=True):
                rows.append(("test", task, "group", level, None, own.sum(), total))
            for level, own in zip(grouping.levels, table, strict=True) if cube.has_classes else ():
                for cls, n in zip(classes, own, strict=True):
                    if n:
                        rows.append(("test", task, "group*class", level, cls, n, total))
    if train is not None:
        rows += _training_rows(train, grouping_names)
    shares = [(*row, int(n), n / total if total else np.nan) for *row, n, total in rows]
    columns = ("split", "task", "by", "group", "class", "n", "share")
    return schema.frame("data", dict(zip(columns, zip(*shares, strict=True), strict=True)))


def left_out_table(cube: Cube, grouping_names: Sequence[str]) -> pd.DataFrame:
    """Examples that were left out, in every row that they would be in, by who lacks them.

    What is not known of them (no table that has them has the column) is taken to be anything:
    they are then counted in every class, or in every level of the grouping.
    """

    if not cube.left_out:
        return schema.frame("left_out")
    found: dict[tuple[str | None, str, str | None, str | None, str], list[float]] = {}
    for task in cube.tasks or (None,):
        part = cube.of_task(task)
        chosen = groupings(part, grouping_names)
        # The mean weight of an example overall, in every class and in every level.
        weight: dict[tuple[str | None, str | None], float] = {}
        named: list[tuple[list[Any], Any]] = [
            ([(level, None) for level in g.levels], g.code) for g in chosen
        ]
        named.append(([(None, cls) for cls in part.label_classes], part.label))
        named.append(([(None, None)], np.zeros(part.n_cells, dtype=np.int64)))
        for names, code in named:
            size = sums(code, part.count, len(names))
            means = sums(code, part.amount, len(names)) / np.maximum(size, 1)
            weight |= {name: float(m) for name, m in zip(names, means, strict=True) if m > 0}
        for example in cube.left_out:
            if example.task not in (None, task):
                continue
            labels = part.label_classes if example.label is None else (example.label,)
            places: list[tuple[str, str | None, str | None]] = [("overall", None, None)]
            places += [("class", None, label) for label in labels if cube.has_classes]
            for grouping in chosen:
                kind = "group" if grouping.single else "intersection"
                known = all(column in example.groups for column in grouping.columns)
                level = " & ".join(level_name(c, example.groups.get(c)) for c in grouping.columns)
                places += [(kind, name, None) for name in ((level,) if known else grouping.levels)]
            for kind, group, cls in places:
                side = " and ".join(example.lacks) or SUPPRESSED
                count = found.setdefault((task, kind, group, cls, side), [0, 0.0])
                count[0] += example.n
                mean = weight.get((group, cls), weight.get((None, None), 1.0))
                count[1] += example.weight / mean
    rows = [(*key, int(n), weighted) for key, (n, weighted) in sorted(found.items(), key=str)]
    return schema.frame("left_out", rows)


def _training_rows(train: pd.DataFrame, grouping_names: Sequence[str]) -> list[Any]:
    """Rows of `data_table` of the training data."""
    rows: list[Any] = []
    for task in dict.fromkeys(train["task"]) if "task" in train else [None]:
        part = train if task is None else train[train["task"] == task]
        total = part["n"].sum()
        rows.append(("train", task, "overall", None, None, total, total))
        for cls, n in part.groupby("label", sort=False)["n"].sum().items():
            rows.append(("train", task, "class", None, str(cls), n, total))
        for name in grouping_names:
            parts = list(split_grouping(name))
            if any(column not in part for column in parts):
                continue
            level = part[parts].apply(
                lambda values: group_name((str(c), v) for c, v in values.items()), axis=1
            )
            for group, n in part.groupby(level, sort=False)["n"].sum().items():
                rows.append(("train", task, "group", str(group), None, n, total))
            crossed = part.groupby([level.rename("level"), "label"], sort=False)["n"].sum()
            for group, cls, n in crossed.reset_index().itertuples(index=False):
                rows.append(("train", task, "group*class", str(group), str(cls), float(n), total))
    return rows
