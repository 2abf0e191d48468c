"""With a single pair of models: a stand-in for exemplars, and how well it stands in.

One dense and one compressed model cannot tell what compression changes from what another training
run would have changed. Changed predictions come first, then the divergence of the two models'
scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairweight.auditing.answers import Answers
from fairweight.auditing.compare.pairing import pair_members
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.auc import Placements, auc_limits, placements
from fairweight.auditing.exemplars.cut import Fill, top_share
from fairweight.auditing.exemplars.disagreement import disagreement
from fairweight.auditing.exemplars.modal import Mask, TieRule
from fairweight.auditing.streams import stream
from fairweight.tables.parents import parents

MOST_PAIRS = 10  # of a population, on which the stand-in is tried
FEWEST = 3  # compressed members: one for the pair, others for the population
BLOCK = 32_768


def surrogate(answers: Answers, baseline_row: int, compressed_row: int) -> Floats:
    """Of every example: 1 where the prediction changed, plus a divergence below 1.

    The divergence is Jensen and Shannon's, in bits, of the two score vectors; the absolute
    difference of two scores of the positive class; 0 where there are no scores. Scores of the
    predicted class alone are not compared: the two may speak of different classes.
    """
    changed = answers.prediction[baseline_row] != answers.prediction[compressed_row]
    divergence = np.zeros(answers.n_examples)
    if answers.scores is not None:
        for start in range(0, answers.n_examples, BLOCK):
            here = slice(start, start + BLOCK)
            divergence[here] = jensen_shannon(
                answers.scores[baseline_row, here], answers.scores[compressed_row, here]
            )
    elif answers.score is not None and answers.n_label_classes == 2:
        divergence = np.abs(
            answers.score[baseline_row].astype(np.float64) - answers.score[compressed_row]
        )
    # Strictly below 1, so that no divergence outranks a changed prediction.
    found: Floats = changed + np.nan_to_num(divergence, nan=0.0) * (1 - 1e-6)
    return found


def has_divergence(answers: Answers) -> bool:
    """Whether more than changed predictions can be told apart."""
    binary = answers.n_label_classes == 2 and answers.score is not None
    return answers.scores is not None or binary


def jensen_shannon(p: Any, q: Any) -> Floats:
    """Jensen–Shannon divergence in bits along the last axis, from 0 to 1.

    Vectors are divided by their sums first.

    >>> jensen_shannon([[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]).tolist()
    [1.0, 0.0]
    """
    first, second = (np.asarray(x, dtype=np.float64) for x in (p, q))
    with np.errstate(invalid="ignore", divide="ignore"):
        first, second = (x / x.sum(axis=-1, keepdims=True) for x in (first, second))
        middle = (first + second) / 2
        parts = [
            np.where(side > 0, side * np.log2(side / middle), 0.0).sum(axis=-1)
            for side in (first, second)
        ]
    divergence: Floats = np.clip((parts[0] + parts[1]) / 2, 0.0, 1.0)
    return divergence


@dataclass(frozen=True)
class Agreement:
    """How well single pairs find what the rest of the population finds."""

    auc: float
    low: float
    high: float
    overlap: dict[float, float]  # percentile → share of the pair's exemplars that are the rest's
    reason: str | None


def agreement(
    answers: Answers,
    variant: str,
    percentiles: tuple[float, ...],
    rule: TieRule,
    fill: Fill | None,
    random_state: int,
    alpha: float,
) -> Agreement:
    """Try single pairs against the exemplars of the members that are not in the pair.

    The AUC is for the modal exemplars of the others, the overlap with their Taxicab cut; both are
    means over pairs. The pair itself is left out of the population that it is judged by (a lone
    baseline model cannot be). The interval is about other examples (or clusters).
    """
    span, other = answers.rows(answers.baseline), answers.rows(variant)
    n_first, n_second = span.stop - span.start, other.stop - other.start
    if n_second < FEWEST or n_first == 2:
        told = f"{n_first} baseline and {n_second} compressed members"
        why = f"not_estimable: {told}, too few to leave a pair out"
        return Agreement(np.nan, np.nan, np.nan, {}, why)
    first, second = answers.of(answers.baseline), answers.of(variant)
    judged: list[Placements] = []
    overlap: dict[float, list[float]] = {q: [] for q in percentiles}
    rng = stream(random_state, variant, answers.task or "", "exemplars surrogate")
    for i, j in _pairs(answers, variant):
        value = surrogate(answers, span.start + i, other.start + j)
        rest = np.delete(first, i, axis=0) if n_first > 1 else first
        found = disagreement(rest, np.delete(second, j, axis=0), rule, rng)
        if 0 < np.count_nonzero(found.exemplar) < len(value):
            judged.append(placements(value, found.exemplar))
        priority = rng.random(len(value))
        for q in percentiles:
            mine = top_share(value, q, priority, fill).mask
            theirs = top_share(found.distance, q, priority, fill).mask
            overlap[q].append(_shared(mine, theirs))
    shares = {q: float(np.nanmean(v)) for q, v in overlap.items() if not np.isnan(v).all()}
    if not judged:
        why = "not_estimable: the others have no modal exemplars"
        return Agreement(np.nan, np.nan, np.nan, shares, why)
    auc, low, high = auc_limits(judged, answers.cluster, alpha)
    return Agreement(auc, low, high, shares, None)


def _shared(mine: Mask, theirs: Mask) -> float:
    n = int(np.count_nonzero(mine))
    return int(np.count_nonzero(mine & theirs)) / n if n else np.nan


def _pairs(answers: Answers, variant: str) -> list[tuple[int, int]]:
    """Children with their parents; else members in their order, the shorter side again."""
    first = answers.members[answers.rows(answers.baseline)]
    second = answers.members[answers.rows(variant)]
    pairing = pair_members(first, second, parents(answers.variants_table))
    if pairing.paired:
        found = [(int(parent), j) for j, parent in enumerate(pairing.parent)]
    else:
        found = [(j % len(first), j) for j in range(len(second))]
    return found[:MOST_PAIRS]
