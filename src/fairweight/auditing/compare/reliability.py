"""The reliability table: score against outcome in bins, whose sum is the calibration error.

A calibration error is above 0 by chance alone, so it is read beside that of a calibrated model of
the same size.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing import schema
from fairweight.auditing.compare.comparison import Comparison, Options, comparison
from fairweight.auditing.compare.scores import probabilities, with_scores_only
from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.metrics.scores import ScoreColumn, expected_ece_if_calibrated, reliability
from fairweight.base.types import Floats

Scored: TypeAlias = tuple[Literal["ece", "ece_top_label"], Floats, Floats]  # scores, outcomes

DEFINITIONS = ("ece", "ece_top_label")
CALIBRATED_DRAWS = (20, 200)  # fewest and most; a mean of 20 is off by a few percent of itself
DRAWN_OUTCOMES = 200_000
MOST_LEVELS = 200  # columns with more levels have no reliability table of their own


def reliability_table(
    scored: Cube,
    variants: Sequence[str],
    grouping_names: tuple[str, ...],
    positive: dict[str | None, int | None],
    options: Options,
) -> pd.DataFrame:
    """One row per member, definition, group and bin that holds examples.

    `expected_if_calibrated` is what the whole calibration error would be for a calibrated model of
    that group's size; `calibration_in_the_large` is the group's mean score − mean outcome.
    """
    parts: list[dict[str, NDArray[Any]]] = []
    for task in scored.tasks or (None,):
        for variant in variants:
            found = comparison(
                scored,
                baseline=variant,
                variant=variant,
                task=task,
                grouping_names=grouping_names,
                positive=positive[task],
                options=options,
                keep_scores=True,
            )
            c, _ = with_scores_only(found)
            if not c.cube.n_cells:
                continue
            p = probabilities(c)
            right = (c.cube.prediction == c.cube.label[:, None]).astype(float)
            definitions: list[Scored] = []
            if p.positive is not None:
                truth = (c.cube.label == c.positive).astype(float)[:, None]
                definitions.append(("ece", p.positive, np.broadcast_to(truth, p.positive.shape)))
            if p.confidence is not None:
                definitions.append(("ece_top_label", p.confidence, right))
            shown = [g for g in (c.whole, *c.groupings) if len(g.levels) <= MOST_LEVELS]
            jobs = product(definitions, range(c.n_baseline), shown)
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                parts += pool.map(partial(_of_member, c), jobs)
    if not parts:
        return schema.frame("reliability")
    names = schema.column_names("reliability")
    columns = {name: np.concatenate([part[name] for part in parts]) for name in names}
    return schema.frame("reliability", columns)


def if_calibrated(table: pd.DataFrame) -> dict[tuple[str, str | None, str, str | None], float]:
    """The calibration error of a calibrated model with these scores, mean over members.

    By variant, task, definition and group (None: everyone).
    """
    keys = ["variant", "task", "definition", "group"]
    once = table.drop_duplicates([*keys, "seed"])
    means = once.groupby(keys, dropna=False, sort=False)["expected_if_calibrated"].mean()
    made: dict[Any, float] = {}
    for key, value in zip(means.index.tolist(), means.tolist(), strict=True):
        made[tuple(_named(part) for part in key)] = float(value)
    return made


def _named(value: Any) -> Any:
    """A name; None where a frame holds nothing, in whatever form."""
    return value if isinstance(value, str) else None


def beside_calibrated(results: pd.DataFrame, table: pd.DataFrame, baseline: str) -> pd.DataFrame:
    """The results, with what a calibrated model has said beside every calibration error.

    It stands in the column `interval`: there are no limits in its place.
    """
    expected = if_calibrated(table)
    interval = results["interval"].to_numpy(dtype=object).copy()
    names = ("variant", "metric", "task", "group")
    variant, metric, task, group = (results[name].to_numpy(dtype=object) for name in names)
    for i in np.flatnonzero(results["metric"].isin(DEFINITIONS) & results["compressed"].notna()):
        keys = [
            (name, _named(task[i]), metric[i], _named(group[i])) for name in (baseline, variant[i])
        ]
        if _named(interval[i]) is not None and all(key in expected for key in keys):
            first, second = (expected[key] for key in keys)
            interval[i] += f"; calibrated models of this size have {first:.3g} and {second:.3g}"
    return results.assign(interval=interval)


def _of_member(c: Comparison, job: tuple[Scored, int, Grouping]) -> dict[str, NDArray[Any]]:
    """The bins of one member in the levels of one grouping."""
    (definition, score, outcome), m, grouping = job
    column = ScoreColumn(
        score[:, m], outcome[:, m], grouping.code.astype(np.intp), len(grouping.levels)
    )
    bins = reliability(column, definition, c.cube.amount.astype(float))
    rng = c.rng(f"calibrated {definition} {grouping.name}")
    # Fewer draws where there are many scores.
    draws = int(np.clip(DRAWN_OUTCOMES // max(c.cube.n_cells, 1), *CALIBRATED_DRAWS))
    expected = expected_ece_if_calibrated(column, definition, draws, rng, c.cube.count)
    levels = grouping.levels if grouping.name else (None,)
    n = bins["n"]
    slot, at = np.nonzero(n > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        large = np.nansum(n * (bins["mean_score"] - bins["mean_outcome"]), axis=1) / n.sum(axis=1)
    named = {
        "variant": c.variant,
        "seed": c.cube.members[m].seed,
        "task": c.task,
        "definition": definition,
    }
    return {
        **{name: np.full(len(slot), text, dtype=object) for name, text in named.items()},
        "group": np.array(levels, dtype=object)[slot],
        "bin": at,
        "low": bins["low"][at],
        "high": bins["high"][at],
        "n": n[slot, at],
        "mean_score": bins["mean_score"][slot, at],
        "mean_outcome": bins["mean_outcome"][slot, at],
        "contribution": bins["contribution"][slot, at],
        "expected_if_calibrated": expected[slot],
        "calibration_in_the_large": large[slot],
    }
