"""How often either side is right on exemplars, on the others, and on all examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.compare.comparison import MIN_CLUSTERS
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.modal import Mask

SELECTED = (
    "Exemplars are chosen because the two sides disagree there, so both sides are less often right "
    "on them by construction; the column `floor` gives the baseline's accuracy on exemplars of "
    "dense against dense."
)


@dataclass(frozen=True)
class Correctness:
    """The share of either side's members that are right, per example."""

    baseline: Floats  # (n,)
    compressed: Floats
    n_baseline: int
    n_compressed: int
    cluster: NDArray[np.int64] | None


def correctness(answers: Answers, variant: str) -> Correctness:
    span, other = answers.of(answers.baseline), answers.of(variant)
    return Correctness(
        share_correct(span, answers.label),
        share_correct(other, answers.label),
        len(span),
        len(other),
        answers.cluster,
    )


def share_correct(prediction: NDArray[Any], label: NDArray[Any]) -> Floats:
    """Of every example, the share of members that are right; (members, n) and (n,)."""
    right = np.zeros(len(label))
    for row in prediction:  # one row at a time: thirty members of a million need no third copy
        right += row == label
    return right / len(prediction)


def part_rows(found: Correctness, exemplar: Mask, alpha: float) -> list[dict[str, Any]]:
    """Rows of the parts `exemplars`, `others` and `all`.

    Intervals speak of other examples (or clusters) and these models: linearised t on the mean
    over members; Wilson's and Tango's where single models answer independent examples.
    """
    parts = (("exemplars", exemplar), ("others", ~exemplar), ("all", np.ones_like(exemplar)))
    return [{"part": name} | _row(found, mask, alpha) for name, mask in parts]


def _row(found: Correctness, part: Mask, alpha: float) -> dict[str, Any]:
    n = int(np.count_nonzero(part))
    empty = {
        f"{side}{end}": np.nan
        for side in ("baseline", "compressed", "shift")
        for end in ("", "_low", "_high")
    }
    if n == 0:
        return {"n": 0, **empty, "status": "not_estimable: no examples"}
    baseline, compressed = found.baseline[part], found.compressed[part]
    unit = None if found.cluster is None else found.cluster[part]
    row: dict[str, Any] = {"n": n}
    for side, value, members, bounds in (
        ("baseline", baseline, found.n_baseline, (0.0, 1.0)),
        ("compressed", compressed, found.n_compressed, (0.0, 1.0)),
        ("shift", compressed - baseline, found.n_baseline * found.n_compressed, (-1.0, 1.0)),
    ):
        low, high = _limits(value, unit, members == 1, bounds, alpha)
        row |= {side: float(value.mean()), f"{side}_low": low, f"{side}_high": high}
    return row | {"status": _status(n, unit)}


def _limits(
    value: Floats,
    unit: NDArray[np.int64] | None,
    single: bool,
    bounds: tuple[float, float],
    alpha: float,
) -> tuple[float, float]:
    from fairweight.auditing.intervals.linearised import linearised
    from fairweight.auditing.intervals.tango import tango
    from fairweight.auditing.intervals.wilson import wilson

    n = len(value)
    if unit is None and single:
        if bounds[0] == 0:
            low, high = wilson(value.sum(), n, alpha, modified=True)
        else:
            low, high = tango(n, (value < 0).sum(), (value > 0).sum(), alpha)
        return float(low), float(high)
    if unit is None:
        low, high, _ = linearised(
            value.sum(), n, (value**2).sum(), value.sum(), n, n, alpha, bounds=bounds
        )
        return float(low), float(high)
    names, place = np.unique(unit, return_inverse=True)
    if len(names) < MIN_CLUSTERS:
        return np.nan, np.nan
    total, size = np.bincount(place, weights=value), np.bincount(place).astype(np.float64)
    low, high, _ = linearised(
        total.sum(),
        n,
        (total**2).sum(),
        (total * size).sum(),
        (size**2).sum(),
        len(names),
        alpha,
        bounds=bounds,
    )
    return float(low), float(high)


def _status(n: int, unit: NDArray[np.int64] | None) -> str:
    if unit is not None and (clusters := len(np.unique(unit))) < MIN_CLUSTERS:
        return f"not_estimable: {clusters} clusters"
    return "ok" if n > 1 else "not_estimable: one example"
