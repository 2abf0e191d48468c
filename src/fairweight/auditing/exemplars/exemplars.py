"""Compression Identified Exemplars: the examples on which compression changes the answer.

Read this page first: it calls the parts in order and puts their numbers into frames.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing import schema
from fairweight.auditing.compare.comparison import MIN_CLUSTERS
from fairweight.auditing.exemplars.retraining import (
    MOST_EXAMPLES,
    RedrawnComparisons,
    RetrainingContext,
    retraining,
)
from fairweight.auditing.exemplars.risk import uncertain, uncertain_shares
from fairweight.auditing.exemplars.selection import (
    DEFAULT_KINDS,
    Key,
    Request,
    Selection,
    agreement,
    checked_request,
    marked,
    top_share,
)
from fairweight.auditing.exemplars.table import exemplar_rows
from fairweight.auditing.exemplars.votes import Disagreement
from fairweight.auditing.intervals.proportion import tango, wilson
from fairweight.auditing.intervals.units import linearised
from fairweight.auditing.prediction_matrix import Answers
from fairweight.auditing.table_files import write_frames
from fairweight.base.files import atomic_directory
from fairweight.base.types import Floats, Mask

# What finding exemplars gives: frames with fixed columns, and who they are.


@dataclass(frozen=True)
class Exemplars:
    """Frames of exemplars, and who they are.

    counts      how many of each kind, beside what retraining alone gives (`floor`, as a share)
    accuracy    how often both sides are right on exemplars, on the others and on all
    overlap     what variants share
    surrogate   how well a single pair would have found them
    rows        the exemplars themselves, for people
    masks       (variant, kind, percentile or None) → which of the examples, (n,)
    images      whose images were written, if any were asked for
    """

    counts: pd.DataFrame
    accuracy: pd.DataFrame
    overlap: pd.DataFrame
    surrogate: pd.DataFrame
    rows: pd.DataFrame
    masks: Mapping[Key, Mask]
    notes: tuple[str, ...]
    images: tuple[Any, ...] = ()

    @property
    def frames(self) -> dict[str, pd.DataFrame]:
        """The frames under the names that results have them by."""
        return {
            "exemplar_counts": self.counts,
            "exemplar_accuracy": self.accuracy,
            "exemplar_overlap": self.overlap,
            "exemplar_surrogate": self.surrogate,
            "exemplars": self.rows,
        }

    def save(self, directory: str | Path, *, overwrite: bool = False) -> Path:
        """Write every frame as Parquet and CSV."""
        complete = ("exemplars.parquet",)
        with atomic_directory(directory, completion=complete, overwrite=overwrite) as folder:
            write_frames(self.frames, folder)
        return Path(directory)


def join(found: Sequence[Exemplars]) -> Exemplars:
    """Exemplars of several tasks as one; masks stay with their tasks and are left out."""
    notes = tuple(dict.fromkeys(note for one in found for note in one.notes))
    return Exemplars(
        stacked([one.counts for one in found]),
        stacked([one.accuracy for one in found]),
        stacked([one.overlap for one in found]),
        stacked([one.surrogate for one in found]),
        stacked([one.rows for one in found]),
        {},
        notes,
    )


def frame(name: str, rows: list[dict[str, Any]], task: str | None) -> pd.DataFrame:
    """Rows of one task as a frame of a table."""
    return schema.frame(name, [{"task": task} | row for row in rows])


def stacked(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Frames one below the other; empty ones have columns without a type and say nothing."""
    held = [part for part in frames if len(part)] or list(frames[:1])
    return pd.concat(held, ignore_index=True)


# Which exemplars two variants share.


def overlap_row(first: Mask, second: Mask) -> dict[str, Any]:
    """How many two sets share, and how many they would if they were drawn independently.

    >>> row = overlap_row(np.array([True, True, False, False]), np.array([True, False, True, True]))
    >>> row["n_both"], row["jaccard"], row["expected_both"]
    (1, 0.25, 1.5)
    """
    n_first, n_second = int(first.sum()), int(second.sum())
    both = int(np.count_nonzero(first & second))
    either = n_first + n_second - both
    return {
        "n_first": n_first,
        "n_second": n_second,
        "n_both": both,
        "jaccard": both / either if either else np.nan,
        "expected_both": n_first * n_second / len(first) if len(first) else np.nan,
    }


def overlaps(masks: Mapping[tuple[str, str, float | None], Mask]) -> list[dict[str, Any]]:
    """Rows of all pairs of variants, for every kind and percentile that both have."""
    rows = []
    cuts = dict.fromkeys((kind, percentile) for _, kind, percentile in masks)
    for kind, percentile in cuts:
        held = {v: mask for (v, k, q), mask in masks.items() if (k, q) == (kind, percentile)}
        for one, other in combinations(held, 2):
            rows.append(
                {
                    "kind": kind,
                    "percentile": np.nan if percentile is None else percentile,
                    "first": one,
                    "second": other,
                }
                | overlap_row(held[one], held[other])
            )
    return rows


# How often either side is right on exemplars, on the others, and on all examples.

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


def find(
    answers: Answers,
    *,
    percentiles: Sequence[float] = (90, 95, 99),
    kinds: Sequence[str] = DEFAULT_KINDS,
    tie_rule: str = "disjoint",
    fill: str | None = None,
    random_state: int = 0,
    alpha: float = 0.05,
) -> Exemplars:
    """Find the exemplars of every compressed variant.

    Parameters
    ----------
    percentiles
        Cuts of the distances: 95 keeps the 5 % of examples that lie furthest apart.
    kinds
        `modal` (the most frequent answers differ), `unanimous` (no compressed member gives the
        baseline's most frequent answer: the code of Simon Says), `taxicab` and `jaccard` (cuts of
        the distance between the votes), `surrogate` (single pairs only).
    tie_rule
        Who wins equally many votes: `disjoint` (an exemplar has no most frequent answer in common),
        `max`, `min`, `negative`, `random`, `baseline`.
    fill
        `"random"` fills a cut with examples on which nothing differs, as the paper's code does;
        by default there are fewer exemplars instead.
    random_state
        Seed of everything that is drawn: ties at a cut, splits of members, relabellings.
    alpha
        One minus the confidence of the intervals.
    """
    request = checked_request(answers, percentiles, kinds, tie_rule, fill, random_state, alpha)
    found = [_of_variant(request, variant) for variant in answers.variants]
    masks = {key: mask for one in found for key, mask in one.masks.items()}
    return Exemplars(
        frame("exemplar_counts", [row for one in found for row in one.counts], answers.task),
        frame("exemplar_accuracy", [row for one in found for row in one.accuracy], answers.task),
        frame("exemplar_overlap", overlaps(masks), answers.task),
        frame("exemplar_surrogate", [row for one in found for row in one.surrogate], answers.task),
        stacked([pd.DataFrame(one.rows) for one in found]),
        masks,
        _notes(request, any(one.sampled for one in found)),
    )


@dataclass(frozen=True)
class _Found:
    counts: list[dict[str, Any]]
    accuracy: list[dict[str, Any]]
    surrogate: list[dict[str, Any]]
    rows: dict[str, Any]
    masks: dict[Key, Mask]
    sampled: bool


def _of_variant(request: Request, variant: str) -> _Found:
    answers = request.answers
    here = marked(request, variant)
    found, order, priority = here.found, here.order, here.priority
    right = correctness(answers, variant)
    context = retraining(answers, variant, right.baseline, request.rule, request.random_state)
    unsure = uncertain(answers)
    counts, accuracy = [], []
    for chosen in here.sets:
        beside = _context(context, chosen)
        name = {
            "variant": variant,
            "kind": chosen.kind,
            "percentile": np.nan if chosen.percentile is None else chosen.percentile,
        }
        shares = (np.nan, np.nan)
        if chosen.mask is not None:
            shares = uncertain_shares(unsure, chosen.mask)
            accuracy += [name | row for row in _accuracy(right, chosen.mask, beside, request.alpha)]
        counts.append(name | _count(found, chosen, beside, context, right, shares))
    masks = {(variant, s.kind, s.percentile): s.mask for s in here.sets if s.mask is not None}
    ranked = order if here.one_pair else found.distance
    tops = {q: top_share(ranked, q, priority, request.fill).mask for q in request.percentiles}
    rows = exemplar_rows(
        answers,
        variant,
        here.distance,
        len(answers.of(answers.baseline)) == len(answers.of(variant)),
        order,
        priority,
        found.exemplar,
        tops,
    )
    return _Found(
        counts,
        accuracy,
        _agreement_rows(request, variant, here.one_pair),
        rows,
        masks,
        context.sampled,
    )


def _context(context: RedrawnComparisons, chosen: Selection) -> RetrainingContext:
    if chosen.mask is None or chosen.kind == "surrogate":
        return RetrainingContext()
    if chosen.cut is None:
        return context.context(chosen.kind)
    assert chosen.percentile is not None
    # Fillers have no distance: the cut among those that differ is the smallest there is.
    threshold = max(chosen.cut.threshold, 1.0)
    return context.context("taxicab", chosen.percentile, threshold)


def _accuracy(
    right: Correctness, mask: Mask, beside: RetrainingContext, alpha: float
) -> list[dict[str, Any]]:
    return [
        row | {"floor": beside.accuracy if row["part"] == "exemplars" else np.nan}
        for row in part_rows(right, mask, alpha)
    ]


def _count(
    found: Disagreement,
    chosen: Selection,
    beside: RetrainingContext,
    context: RedrawnComparisons,
    right: Correctness,
    unsure: tuple[float, float],
) -> dict[str, Any]:
    n = len(found.distance)
    number = np.nan if chosen.mask is None else int(np.count_nonzero(chosen.mask))
    reasons = [] if chosen.reason is None else [chosen.reason]
    if chosen.mask is not None and chosen.kind != "surrogate":
        reasons += context.reasons
    return {
        "threshold": chosen.threshold,
        "n_examples": n,
        "n_asked": np.nan if chosen.cut is None else chosen.cut.n_asked,
        "n_exemplars": number,
        "share": number / n if n else np.nan,
        "n_baseline_members": right.n_baseline,
        "n_compressed_members": right.n_compressed,
        "floor": beside.floor,
        "floor_low": beside.floor_low,
        "floor_high": beside.floor_high,
        "matched": beside.matched,
        "p_retraining": beside.p_retraining,
        "n_undecided": int(np.count_nonzero(found.undecided)),
        "uncertain_share": unsure[0],
        "uncertain_share_others": unsure[1],
        "status": "; ".join(reasons) or "ok",
    }


def _agreement_rows(request: Request, variant: str, one_pair: bool) -> list[dict[str, Any]]:
    if one_pair or "surrogate" not in request.kinds:
        return []
    found = agreement(
        request.answers,
        variant,
        request.percentiles,
        request.rule,
        request.fill,
        request.random_state,
        request.alpha,
    )
    return [
        {
            "variant": variant,
            "percentile": q,
            "n": request.answers.n_examples,
            "agreement_auc": found.auc,
            "auc_low": found.low,
            "auc_high": found.high,
            "overlap": found.overlap.get(q, np.nan),
            "status": found.reason or "ok",
        }
        for q in request.percentiles
    ]


def _notes(request: Request, sampled: bool) -> tuple[str, ...]:
    answers = request.answers
    notes = [SELECTED]
    if answers.weight is not None:
        notes.append("Exemplars are counted without weights: every example counts once.")
    if sampled:
        notes.append(
            f"Noise floors of exemplars rest on {MOST_EXAMPLES:,} of the examples on which members "
            "disagree, drawn at random."
        )
    if uncertain(answers) is None:
        notes.append("There are no scores, so shares of uncertain predictions are empty.")
    return tuple(notes)
