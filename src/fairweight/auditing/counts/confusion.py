"""Frames that are read straight off the cube: confusion, examples per group, those left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairweight.auditing import schema
from fairweight.auditing.counts.counts import sums
from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import Grouping, groupings, whole
from fairweight.tables.names import group_name, level_name, split_grouping

ABSTAINED = "(abstained)"
SUPPRESSED = "(suppressed)"  # who lacks examples that a published cube does not tell of


def confusion(cube: Cube) -> pd.DataFrame:
    """Non-empty cells of every member's confusion matrix (weighted where there are weights)."""
    parts = []
    for task in cube.tasks or (None,):
        part = cube.of_task(task)
        amount = part.count if part.weight is None else part.count * part.weight
        names = np.array([*part.classes, ABSTAINED], dtype=object)
        n_classes = len(part.classes)
        for m, member in enumerate(part.members):
            answer = np.where(part.prediction[:, m] < 0, n_classes, part.prediction[:, m])
            key = part.label.astype(np.int64) * (n_classes + 1) + answer
            cells, place = np.unique(key, return_inverse=True)
            parts.append(
                pd.DataFrame(
                    {
                        "variant": member.variant,
                        "seed": member.seed,
                        "task": task,
                        "label": names[cells // (n_classes + 1)],
                        "prediction": names[cells % (n_classes + 1)],
                        "count": sums(place.reshape(-1), amount, len(cells)),
                    }
                )
            )
    frame = pd.concat(parts, ignore_index=True)
    return frame.astype({"task": object})


def data_table(
    cube: Cube, grouping_names: Sequence[str], train: pd.DataFrame | None
) -> pd.DataFrame:
    """Examples per split, class and group, with shares."""
    rows: list[dict[str, Any]] = []
    for task in cube.tasks or (None,):
        part = cube.of_task(task)
        rows += _split_rows("test", task, part, (whole(part), *groupings(part, grouping_names)))
    if train is not None:
        rows += _training_rows(train, grouping_names)
    columns = ["split", "task", "by", "group", "class", "n", "share"]
    return pd.DataFrame(rows, columns=columns).astype(
        {"task": object, "group": object, "class": object}
    )


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
        weight = _mean_weights(part, chosen)
        for example in cube.left_out:
            if example.task not in (None, task):
                continue
            labels = part.label_classes if example.label is None else (example.label,)
            places: list[tuple[str, str | None, str | None]] = [("overall", None, None)]
            places += [("class", None, label) for label in labels]
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


def _mean_weights(
    cube: Cube, chosen: Sequence[Grouping]
) -> dict[tuple[str | None, str | None], float]:
    """The mean weight of an example overall, in every class and in every level."""
    weight = cube.count if cube.weight is None else cube.count * cube.weight
    found: dict[tuple[str | None, str | None], float] = {}

    def add(names: Sequence[tuple[str | None, str | None]], code: Any) -> None:
        size = sums(code, cube.count, len(names))
        means = sums(code, weight, len(names)) / np.maximum(size, 1)
        found.update((name, float(m)) for name, m in zip(names, means, strict=True) if m > 0)

    add([(None, None)], np.zeros(cube.n_cells, dtype=np.int64))
    add([(None, cls) for cls in cube.label_classes], cube.label)
    for grouping in chosen:
        add([(level, None) for level in grouping.levels], grouping.code)
    return found


def _split_rows(
    split: str, task: str | None, cube: Cube, chosen: Sequence[Grouping]
) -> list[dict[str, Any]]:
    total = int(cube.count.sum())
    n_classes = len(cube.label_classes)
    rows: list[dict[str, Any]] = []

    def row(by: str, group: str | None, cls: str | None, n: float) -> None:
        rows.append(
            {
                "split": split,
                "task": task,
                "by": by,
                "group": group,
                "class": cls,
                "n": int(n),
                "share": n / total if total else np.nan,
            }
        )

    for grouping in chosen:
        size = len(grouping.levels)
        place = grouping.code.astype(np.int64) * n_classes + cube.label
        table = sums(place, cube.count, size * n_classes).reshape(size, n_classes)
        if not grouping.name:
            row("overall", None, None, total)
            for k, cls in enumerate(cube.label_classes):
                row("class", None, cls, table[0, k])
            continue
        for i, level in enumerate(grouping.levels):
            row("group", level, None, table[i].sum())
        for i, level in enumerate(grouping.levels):
            for k, n in enumerate(table[i]):
                if n:
                    row("group*class", level, cube.label_classes[k], n)
    return rows


def _training_rows(train: pd.DataFrame, grouping_names: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    tasks = list(dict.fromkeys(train["task"])) if "task" in train else [None]
    for task in tasks:
        part = train if task is None else train[train["task"] == task]
        total = part["n"].sum()

        def row(by: str, group: str | None, cls: str | None, n: float) -> None:
            rows.append(
                {
                    "split": "train",
                    "task": task,  # noqa: B023 - called at once, within this turn of the loop
                    "by": by,
                    "group": group,
                    "class": cls,
                    "n": int(n),
                    "share": n / total if total else np.nan,  # noqa: B023
                }
            )

        row("overall", None, None, total)
        for cls, n in part.groupby("label", sort=False)["n"].sum().items():
            row("class", None, str(cls), n)
        for name in grouping_names:
            parts = list(split_grouping(name))
            if any(column not in part for column in parts):
                continue
            level = part[parts].apply(
                lambda values: group_name((str(c), v) for c, v in values.items()), axis=1
            )
            for group, n in part.groupby(level, sort=False)["n"].sum().items():
                row("group", str(group), None, n)
            crossed = part.groupby([level.rename("level"), "label"], sort=False)["n"].sum()
            for group, cls, n in crossed.reset_index().itertuples(index=False):
                row("group*class", str(group), str(cls), float(n))
    return rows
