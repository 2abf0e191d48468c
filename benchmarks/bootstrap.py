"""Paired bootstrap of five metrics by group, beside fairlearn's."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.lines import Line
from benchmarks.measure import Settings, processor_seconds
from benchmarks.tables import Shape, parquet

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.counts.cube import Cube

TITLE = "Bootstrap beside fairlearn"
SETTING = (
    "1,000,000 rows, 8 groups, binary; accuracy, recall, precision, selection rate and FPR of two "
    "models by group, 2,000 paired replicates. One replicate of fairlearn's MetricFrame (rows "
    "drawn again, one frame per model) is measured; the rest is extrapolated (× replicates). "
    "Processor time on both sides, so that a busy machine favours neither."
)
METRICS = ("accuracy", "recall", "precision", "selection_rate", "fpr")
ROWS, GROUPS = 1_000_000, 8
TARGET = 100_000


def run(settings: Settings) -> list[Line]:
    rows, n_boot = settings.rows_or(ROWS), settings.n_boot
    with tempfile.TemporaryDirectory(prefix="fairweight-bench-") as folder:
        table = _frame(parquet(Path(folder), Shape(rows, GROUPS, 2)))
    theirs = processor_seconds(_fairlearn_replicate(table))
    peer = f"fairlearn, 1 replicate measured × {n_boot:,}"
    cube = _cube(table)
    counting, drawing, audit = (
        median(processor_seconds(work) for _ in range(settings.rounds))
        for work in (
            lambda: _cube(table),
            lambda: replicates(cube, n_boot),
            lambda: _audit(table, n_boot),
        )
    )
    every = n_boot * theirs
    return [
        Line(f"{n_boot:,} replicates", drawing, peer, every, target=TARGET, faster=True),
        Line("counting into the cube, then the replicates", counting + drawing, peer, every,
             faster=True),
        Line("whole audit (every metric, interval and test)", audit, peer, every, faster=True),
        Line("counting into the cube", counting, "one replicate of fairlearn", theirs,
             faster=True),
    ]  # fmt: skip


def replicates(cube: Cube, n_boot: int) -> np.ndarray[Any, Any]:
    """The five metrics (metric, replicate, model, slice) on `n_boot` draws of all examples.

    Slices are everyone and each group, as in fairlearn's frame.
    """
    from fairweight.auditing.counts.counts import Tally
    from fairweight.auditing.counts.groupings import groupings, whole
    from fairweight.auditing.metrics.rates import summary_of
    from fairweight.auditing.metrics.registry import metric

    tally = Tally(cube, (whole(cube), *groupings(cube, ["grp"])), range(2), positive=1)
    total = int(tally.multiplicity.sum())
    shares = tally.multiplicity / total
    drawn = np.random.default_rng(0).multinomial(total, shares, size=n_boot)
    parts = tally.read(tally.flat(drawn.astype(np.float64)))
    made = [
        [summary_of(entry, entry.function(counts), counts) for counts in parts]
        for entry in (metric(name) for name in METRICS)
    ]
    return np.stack([np.concatenate(slices, axis=-1) for slices in made])


def _frame(path: Path) -> pd.DataFrame:
    import pandas as pd

    return pd.read_parquet(path)


def _cube(table: pd.DataFrame) -> Cube:
    from fairweight.auditing.counts.group_by import count
    from fairweight.tables.align import align
    from fairweight.tables.spec import TableSpec, sources_of

    with align(TableSpec(sources_of(table), groups=["grp"])) as aligned:
        return count(aligned)


def _audit(table: pd.DataFrame, n_boot: int) -> None:
    import fairweight as fw

    fw.audit_table(table, groups=["grp"], n_boot=n_boot, random_state=0)


def _fairlearn_replicate(table: pd.DataFrame) -> Callable[[], None]:
    """Rows drawn again and one MetricFrame per model, as fairlearn's own bootstrap does."""
    from fairlearn.metrics import (  # type: ignore[import-untyped]
        MetricFrame,
        false_positive_rate,
        selection_rate,
    )
    from sklearn.metrics import accuracy_score, precision_score, recall_score

    functions = {
        "accuracy": accuracy_score,
        "recall": recall_score,
        "precision": precision_score,
        "selection_rate": selection_rate,
        "fpr": false_positive_rate,
    }

    def once() -> None:
        drawn = table.sample(frac=1, replace=True, random_state=0, ignore_index=True)
        for column in ("pred_dense", "pred_int8"):
            frame = MetricFrame(
                metrics=functions,
                # Plain arrays are what it is quickest with (tried: categories, text, numbers).
                y_true=drawn["label"].to_numpy(),
                y_pred=drawn[column].to_numpy(),
                sensitive_features=drawn["grp"].to_numpy(),
            )
            assert len(frame.by_group) == GROUPS

    return once
