"""A cascade: the compressed model answers, and what it is unsure of goes to the dense one.

The same idea as overrides, for inputs that nobody has seen yet. An input goes as a whole: with
several tasks the least sure of them decides, because the dense model answers all at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing import schema
from fairweight.auditing.metrics.harm import WORST_GROUP_SHIFT
from fairweight.auditing.mitigate.confidence import confidence
from fairweight.auditing.mitigate.curves import (
    Curve,
    columns_of,
    draws_of_units,
    limits,
    mean_curve,
    n_having,
    series,
    stepwise,
)
from fairweight.auditing.mitigate.mitigation import (
    NewVariant,
    RowsSeen,
    dense_partners,
    item_latency,
    same_examples,
)
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.types import Floats, Progress
from fairweight.errors import InputError

KIND = "cascade"
SHARES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7)  # deferred, on the choosing rows


@dataclass(frozen=True)
class Cascade:
    """From which confidence on the compressed model's answer stands, by variant."""

    thresholds: Mapping[str, float]
    margin: float | None  # with which they were chosen; None: they were given
    fitted_on: RowsSeen

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "kind": KIND,
            "thresholds": dict(self.thresholds),
            "margin": self.margin,
            "fitted_on": self.fitted_on.as_json(),
        }

    @classmethod
    def from_json(cls, held: dict[str, Any]) -> Cascade:
        thresholds = {name: float(given) for name, given in held["thresholds"].items()}
        if not all(0 <= given <= 1 for given in thresholds.values()):
            raise ValueError("a threshold is no number from 0 to 1")
        return cls(thresholds, held["margin"], RowsSeen.from_json(held["fitted_on"]))


def cascade_name(variant: str, threshold: float) -> str:
    """The name of a variant with a cascade.

    >>> cascade_name("int8", 0.35), cascade_name("int8", 1.0)
    ('int8+cascade-0.35', 'int8+cascade-1')
    """
    return f"{variant}+cascade-{threshold:.6g}"


def deferred(sure: Floats, threshold: float) -> NDArray[np.bool_]:
    """Which inputs go to the dense model: those below the threshold; at 1 all, at 0 none.

    >>> deferred(np.array([0.2, 0.5, 1.0]), 0.5).tolist(), deferred(np.ones(1), 1.0).tolist()
    ([True, False, False], [True])
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"The threshold {threshold:g} cannot be used; give 0 to 1.")
    return np.asarray((sure < threshold) | (threshold >= 1))


def check_whole_inputs(tasks: Sequence[Answers]) -> None:
    """Raise where tasks have different examples."""
    if not same_examples(tasks):
        raise InputError(
            "The tasks do not have the same examples, but a cascade sends whole inputs; give one "
            "task at a time."
        )


def input_confidence(tasks: Sequence[Answers], variant: str) -> Floats:
    """How sure each member is of an input: of its least sure task, (members, n)."""
    check_whole_inputs(tasks)
    return np.asarray(np.min([confidence(a, variant) for a in tasks], axis=0))


def apply_cascade(threshold: float, tasks: Sequence[Answers], variant: str) -> list[NewVariant]:
    """For each task, the answers of a variant's members with the unsure ones deferred."""
    goes = deferred(input_confidence(tasks, variant), threshold)
    made = []
    for answers in tasks:
        dense = dense_partners(answers, variant)
        prediction = np.where(goes, answers.prediction[dense], answers.of(variant))
        score = None
        if answers.score is not None:
            score = np.where(goes, answers.score[dense], answers.score[answers.rows(variant)])
        made.append(NewVariant(cascade_name(variant, threshold), variant, prediction, score))
    return made


def threshold_grid(sure: Floats) -> tuple[float, ...]:
    """0, the quantiles of the confidence at SHARES, and 1."""
    found = [float(f"{value:.6g}") for value in np.quantile(sure, SHARES)]
    return (0.0, *sorted({t for t in found if 0 < t < 1}), 1.0)


def cascade_curve(
    tasks: Sequence[Answers],
    variant: str,
    thresholds: Sequence[float],
    part: str,
    *,
    min_group: int = 10,
    n_boot: int = 500,
    alpha: float = 0.05,
    random_state: int = 0,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """The table `cascade_curve` of one variant: a row per task, metric, column and threshold.

    Parameters
    ----------
    thresholds
        Growing, from 0.
    part
        Which rows these are: choosing, or judging.
    """
    sure = input_confidence(tasks, variant)
    steps = len(thresholds)
    step = np.minimum(
        np.searchsorted(thresholds, sure, side="right"),
        steps - 1 if thresholds[-1] >= 1 else steps,
    )
    share = np.mean([(own[None] <= np.arange(steps)[:, None]).mean(axis=1) for own in step], axis=0)
    table = tasks[0].variants_table
    cost = item_latency(table, variant) + share * item_latency(table, tasks[0].baseline)
    drawn = draws_of_units(tasks[0], n_boot, random_state)
    curves: list[Curve] = []
    for number, answers in enumerate(tasks):
        if progress is not None:
            progress(f"cascade of {variant}", number, len(tasks))
        columns = columns_of(answers, min_group)
        dense = answers.prediction[dense_partners(answers, variant)]
        curves.append(mean_curve([
            stepwise(answers, columns, own, other, [other], place, steps, drawn)[0][0]
            for own, other, place in zip(answers.of(variant), dense, step, strict=True)
        ]))  # fmt: skip
    named = [(a.task, [c]) for a, c in zip(tasks, curves, strict=True)]
    if len(tasks) > 1:
        named.append((None, curves))
    rows = []
    for task, own in named:
        for line in series(mean_curve(own), alpha):
            change = line.values - line.values[:, :1]
            low, high = limits(change, alpha)
            for place, threshold in enumerate(thresholds):
                value = float(line.values[0, place])
                rows.append(
                    {
                        "variant": variant,
                        "task": task,
                        "part": part,
                        "threshold": threshold,
                        "share_deferred": share[place],
                        "cost_ms": cost[place],
                        "n": tasks[0].n_examples,
                        "n_tasks": n_having(own, line.metric, line.group),
                        "recommended": False,
                        "metric": line.metric,
                        "group": line.group,
                        "value": value,
                        "low": line.low[place],
                        "high": line.high[place],
                        "change": change[0, place],
                        "change_low": low[place],
                        "change_high": high[place],
                        "status": "not_estimable: undefined" if isnan(value) else "ok",
                    }
                )
    return schema.frame("cascade_curve", rows)


def recommended(curve: pd.DataFrame, margin: float) -> float:
    """The least threshold at which no group of any task may lose more than the margin.

    Against the dense model, and by the lower simultaneous limit of the worst-group shift: what is
    uncertain counts as a loss. At 1 nobody loses anything, so there is always one.
    """
    rows = curve[(curve["metric"] == WORST_GROUP_SHIFT)]
    if rows["task"].notna().any():
        rows = rows[rows["task"].notna()]
    if rows.empty:
        raise InputError(
            "No group is large enough to be judged, so no threshold can be recommended; give one "
            "(--threshold)."
        )
    kept = rows.assign(holds=rows["low"] >= -margin).groupby("threshold")["holds"].all()
    return float(kept.index[kept].min()) if kept.any() else 1.0
