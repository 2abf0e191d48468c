"""Compression Identified Exemplars: the examples on which compression changes the answer.

Read this page first: it calls the parts in order and puts their numbers into frames.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairweight.auditing.answers import Answers
from fairweight.auditing.exemplars.accuracy import SELECTED, Correctness, correctness, part_rows
from fairweight.auditing.exemplars.cut import top_share
from fairweight.auditing.exemplars.disagreement import Disagreement
from fairweight.auditing.exemplars.marked import checked_request, marked
from fairweight.auditing.exemplars.modal import Mask
from fairweight.auditing.exemplars.noise_floor import Context, Retraining, retraining
from fairweight.auditing.exemplars.overlap import overlaps
from fairweight.auditing.exemplars.redrawn import MOST_EXAMPLES
from fairweight.auditing.exemplars.result import (
    ACCURACY_COLUMNS,
    COUNT_COLUMNS,
    OVERLAP_COLUMNS,
    SURROGATE_COLUMNS,
    Exemplars,
    Key,
    frame,
    stacked,
)
from fairweight.auditing.exemplars.rows import exemplar_rows
from fairweight.auditing.exemplars.selection import DEFAULT_KINDS, Request, Selection
from fairweight.auditing.exemplars.surrogate import agreement
from fairweight.auditing.exemplars.uncertain import uncertain, uncertain_shares


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
    import pandas as pd

    request = checked_request(answers, percentiles, kinds, tie_rule, fill, random_state, alpha)
    found = [_of_variant(request, variant) for variant in answers.variants]
    masks = {key: mask for one in found for key, mask in one.masks.items()}
    return Exemplars(
        frame([row for one in found for row in one.counts], COUNT_COLUMNS, answers.task),
        frame([row for one in found for row in one.accuracy], ACCURACY_COLUMNS, answers.task),
        frame(overlaps(masks), OVERLAP_COLUMNS, answers.task),
        frame([row for one in found for row in one.surrogate], SURROGATE_COLUMNS, answers.task),
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


def _context(context: Retraining, chosen: Selection) -> Context:
    if chosen.mask is None or chosen.kind == "surrogate":
        return Context()
    if chosen.cut is None:
        return context.context(chosen.kind)
    assert chosen.percentile is not None
    # Fillers have no distance: the cut among those that differ is the smallest there is.
    threshold = max(chosen.cut.threshold, 1.0)
    return context.context("taxicab", chosen.percentile, threshold)


def _accuracy(
    right: Correctness, mask: Mask, beside: Context, alpha: float
) -> list[dict[str, Any]]:
    return [
        row | {"floor": beside.accuracy if row["part"] == "exemplars" else np.nan}
        for row in part_rows(right, mask, alpha)
    ]


def _count(
    found: Disagreement,
    chosen: Selection,
    beside: Context,
    context: Retraining,
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
