"""What the training data say about labels and groups: signs, rarer values, shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.counts.groupings import Grouping, level_name
from fairweight.auditing.counts.stats import Counts

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Training:
    """Counts of the training data: one row per (task, group values, label), with its `n`.

    Columns are `task`, `label`, `n` and one per group column, all canonical text.
    """

    table: pd.DataFrame

    def counts(self, c: Comparison, grouping: Grouping) -> Counts | None:
        """Label counts (L, C) in the levels of a grouping; None where the columns are absent."""
        rows = self.table
        if c.task is not None and "task" in rows:
            rows = rows[rows["task"] == c.task]
        names = grouping.columns
        if any(name not in rows for name in names) or rows.empty:
            return None
        if names:
            texts = [[level_name(name, value) for value in rows[name]] for name in names]
            level = [" & ".join(parts) for parts in zip(*texts, strict=True)]
        else:
            level = [""] * len(rows)
        levels = {name: i for i, name in enumerate(grouping.levels)}
        classes = {name: i for i, name in enumerate(c.classes)}
        label = np.zeros((len(levels), len(classes)))
        for name, cls, n in zip(level, rows["label"], rows["n"], strict=True):
            # Levels and classes that the test data do not have cannot be asked about.
            if name in levels and cls in classes:
                label[levels[name], classes[cls]] += float(n)
        zero = np.zeros_like(label)
        return Counts(label, zero, zero, zero[:, 0], c.classes, c.positive)
