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
    RetrainingContext,
    retraining,
)
from fairweight.auditing.exemplars.risk import uncertain, uncertain_shares
from fairweight.auditing.exemplars.selection import (
    DEFAULT_KINDS,
    Key,
    agreement,
    checked_request,
    marked,
    top_share,
)
from fairweight.auditing.exemplars.table import exemplar_rows
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
    parts = zip(*(one.frames.values() for one in found), strict=True)
    counts, accuracy, overlap, surrogate, rows = (stacked(part) for part in parts)
    notes = tuple(dict.fromkeys(note for one in found for note in one.notes))
    return Exemplars(counts, accuracy, overlap, surrogate, rows, {}, notes)


def stacked(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Frames one below the other; empty ones have columns without a type and say nothing."""
    held = [part for part in frames if len(part)] or list(frames[:1])
    return pd.concat(held, ignore_index=True)


# Which exemplars two variants share.


def overlaps(masks: Mapping[Key, Mask]) -> list[dict[str, Any]]:
    """Rows of all pairs of variants, for every kind and percentile that both have.

    Beside how many two sets share stands how many they would if they were drawn independently.

    >>> first, second = np.array([True, True, False, False]), np.array([True, False, True, True])
    >>> [row] = overlaps({("int8", "modal", None): first, ("pruned", "modal", None): second})
    >>> row["n_both"], row["jaccard"], row["expected_both"]
    (1, 0.25, 1.5)
    """
    rows = []
    cuts = dict.fromkeys((kind, percentile) for _, kind, percentile in masks)
    for kind, percentile in cuts:
        held = {v: mask for (v, k, q), mask in masks.items() if (k, q) == (kind, percentile)}
        for (one, first), (other, second) in combinations(held.items(), 2):
            n_first, n_second = int(first.sum()), int(second.sum())
            both = int(np.count_nonzero(first & second))
            either = n_first + n_second - both
            rows.append(
                {
                    "kind": kind,
                    "percentile": np.nan if percentile is None else percentile,
                    "first": one,
                    "second": other,
                    "n_first": n_first,
                    "n_second": n_second,
                    "n_both": both,
                    "jaccard": both / either if either else np.nan,
                    "expected_both": n_first * n_second / len(first) if len(first) else np.nan,
                }
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
    rows: list[dict[str, Any]] = []
    parts = {"exemplars": exemplar, "others": ~exemplar, "all": np.ones_like(exemplar)}
    for name, part in parts.items():
        n = int(np.count_nonzero(part))
        row: dict[str, Any] = {"part": name, "n": n, "status": "not_estimable: no examples"}
        rows.append(row)
        if n == 0:
            continue
        baseline, compressed = found.baseline[part], found.compressed[part]
        unit = None if found.cluster is None else found.cluster[part]
        for side, value, members, bounds in (
            ("baseline", baseline, found.n_baseline, (0.0, 1.0)),
            ("compressed", compressed, found.n_compressed, (0.0, 1.0)),
            ("shift", compressed - baseline, found.n_baseline * found.n_compressed, (-1.0, 1.0)),
        ):
            low, high = _limits(value, unit, members == 1, bounds, alpha)
            row |= {side: float(value.mean()), f"{side}_low": low, f"{side}_high": high}
        row["status"] = "ok" if n > 1 else "not_estimable: one example"
        if unit is not None and (clusters := len(np.unique(unit))) < MIN_CLUSTERS:
            row["status"] = f"not_estimable: {clusters} clusters"
    return rows


def _limits(
    value: Floats,
    unit: NDArray[np.int64] | None,
    single: bool,
    bounds: tuple[float, float],
    alpha: float,
) -> tuple[float, float]:
    """Limits of a mean over examples or clusters; NaN with few clusters."""
    n = len(value)
    if unit is None and single and bounds[0] == 0:
        low, high = wilson(value.sum(), n, alpha, modified=True)
    elif unit is None and single:
        low, high = tango(n, (value < 0).sum(), (value > 0).sum(), alpha)
    elif unit is None:
        low, high, _ = linearised(
            value.sum(), n, (value**2).sum(), value.sum(), n, n, alpha, bounds=bounds
        )
    else:
        place = np.unique(unit, return_inverse=True)[1]
        total, size = np.bincount(place, weights=value), np.bincount(place).astype(np.float64)
        if len(size) < MIN_CLUSTERS:
            return np.nan, np.nan
        low, high, _ = linearised(
            total.sum(),
            n,
            (total**2).sum(),
            (total * size).sum(),
            (size**2).sum(),
            len(size),
            alpha,
            bounds=bounds,
        )
    return float(low), float(high)


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
    counts: list[dict[str, Any]] = []
    accuracy: list[dict[str, Any]] = []
    surrogates: list[dict[str, Any]] = []
    rows: list[pd.DataFrame] = []
    masks: dict[Key, Mask] = {}
    sampled = False
    unsure = uncertain(answers)
    baseline = answers.of(answers.baseline)
    for variant in answers.variants:
        here = marked(request, variant)
        found, compressed = here.found, answers.of(variant)
        right = Correctness(
            share_correct(baseline, answers.label),
            share_correct(compressed, answers.label),
            len(baseline),
            len(compressed),
            answers.cluster,
        )
        redrawn = retraining(answers, variant, right.baseline, request.rule, random_state)
        sampled |= redrawn.sampled
        for chosen in here.sets:
            name = {
                "task": answers.task,
                "variant": variant,
                "kind": chosen.kind,
                "percentile": np.nan if chosen.percentile is None else chosen.percentile,
            }
            beside, shares, number = RetrainingContext(), (np.nan, np.nan), np.nan
            reasons = [] if chosen.reason is None else [chosen.reason]
            if chosen.mask is not None:
                masks[variant, chosen.kind, chosen.percentile] = chosen.mask
                number = int(np.count_nonzero(chosen.mask))
                shares = uncertain_shares(unsure, chosen.mask)
                if chosen.kind != "surrogate":
                    beside = redrawn.context(chosen)
                    reasons += redrawn.reasons
                for row in part_rows(right, chosen.mask, alpha):
                    floor = beside.accuracy if row["part"] == "exemplars" else np.nan
                    accuracy.append(name | row | {"floor": floor})
            counts.append(
                name
                | {
                    "threshold": chosen.threshold,
                    "n_examples": answers.n_examples,
                    "n_asked": np.nan if chosen.cut is None else chosen.cut.n_asked,
                    "n_exemplars": number,
                    "share": number / answers.n_examples if answers.n_examples else np.nan,
                    "n_baseline_members": len(baseline),
                    "n_compressed_members": len(compressed),
                    "floor": beside.floor,
                    "floor_low": beside.floor_low,
                    "floor_high": beside.floor_high,
                    "matched": beside.matched,
                    "p_retraining": beside.p_retraining,
                    "n_undecided": int(np.count_nonzero(found.undecided)),
                    "uncertain_share": shares[0],
                    "uncertain_share_others": shares[1],
                    "status": "; ".join(reasons) or "ok",
                }
            )
        ranked = here.order if here.one_pair else found.distance
        cuts = {q: top_share(ranked, q, here.priority, request.fill) for q in request.percentiles}
        columns = exemplar_rows(
            answers,
            variant,
            here.distance,
            len(baseline) == len(compressed),
            here.order,
            here.priority,
            found.exemplar,
            {q: cut.mask for q, cut in cuts.items()},
        )
        rows.append(pd.DataFrame(columns))
        if not here.one_pair and "surrogate" in request.kinds:
            single = agreement(request, variant)
            surrogates += [
                {
                    "task": answers.task,
                    "variant": variant,
                    "percentile": q,
                    "n": answers.n_examples,
                    "agreement_auc": single.auc,
                    "auc_low": single.low,
                    "auc_high": single.high,
                    "overlap": single.overlap.get(q, np.nan),
                    "status": single.reason or "ok",
                }
                for q in request.percentiles
            ]
    notes = [SELECTED]
    if answers.weight is not None:
        notes.append("Exemplars are counted without weights: every example counts once.")
    if sampled:
        notes.append(
            f"Noise floors of exemplars rest on {MOST_EXAMPLES:,} of the examples on which members "
            "disagree, drawn at random."
        )
    if unsure is None:
        notes.append("There are no scores, so shares of uncertain predictions are empty.")
    return Exemplars(
        schema.frame("exemplar_counts", counts),
        schema.frame("exemplar_accuracy", accuracy),
        schema.frame("exemplar_overlap", [{"task": answers.task} | row for row in overlaps(masks)]),
        schema.frame("exemplar_surrogate", surrogates),
        stacked(rows),
        masks,
        tuple(notes),
    )
