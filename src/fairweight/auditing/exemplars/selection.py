"""The sets of exemplars that are asked for, before they are described."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.cut import Cut, Fill, top_share
from fairweight.auditing.exemplars.disagreement import Disagreement
from fairweight.auditing.exemplars.distance import jaccard, per_member
from fairweight.auditing.exemplars.modal import Mask, TieRule
from fairweight.auditing.exemplars.surrogate import has_divergence

KINDS = ("modal", "unanimous", "taxicab", "jaccard", "surrogate")
# Jaccard's distance ranks examples as the Taxicab does: the same sets under another name.
DEFAULT_KINDS = ("modal", "unanimous", "taxicab", "surrogate")


@dataclass(frozen=True)
class Request:
    """What is asked for, checked."""

    answers: Answers
    percentiles: tuple[float, ...]
    kinds: tuple[str, ...]
    rule: TieRule
    fill: Fill | None
    random_state: int
    alpha: float


@dataclass(frozen=True)
class Selection:
    """One set of exemplars before it is described."""

    kind: str
    percentile: float | None
    cut: Cut | None  # None for kinds without one
    mask: Mask | None  # None where it cannot be had
    threshold: float = np.nan  # as it is reported
    reason: str | None = None


def selections(
    request: Request, found: Disagreement, order: Floats, priority: Floats, one_pair: bool
) -> list[Selection]:
    chosen: list[Selection] = []
    several = request.answers.rows(request.answers.baseline).stop > 1
    for kind in request.kinds:
        if kind == "modal":
            told = "one pair: changed predictions, which retraining changes too"
            chosen.append(
                Selection(kind, None, None, found.exemplar, reason=told if one_pair else None)
            )
        elif kind == "unanimous":
            told = "against the baseline's most frequent answer: there is no single teacher"
            chosen.append(
                Selection(kind, None, None, found.unanimous, reason=told if several else None)
            )
        elif kind == "surrogate":
            if one_pair:
                chosen += [_by_surrogate(request, order, q, priority) for q in request.percentiles]
        elif one_pair:
            told = "not_estimable: votes of one pair are alike or not; see surrogate"
            chosen += [Selection(kind, q, None, None, reason=told) for q in request.percentiles]
        else:
            chosen += [_by_distance(request, found, kind, q, priority) for q in request.percentiles]
    return chosen


def _by_surrogate(
    request: Request, order: Floats, percentile: float, priority: Floats
) -> Selection:
    cut = top_share(order, percentile, priority, request.fill)
    told = "a pair's surrogate: changed predictions"
    told += (
        ", then divergence of scores"
        if has_divergence(request.answers)
        else "; scores of all classes would order the rest"
    )
    reason = told if cut.reason is None else f"{told}; {cut.reason}"
    return Selection("surrogate", percentile, cut, cut.mask, cut.threshold, reason)


def _by_distance(
    request: Request, found: Disagreement, kind: str, percentile: float, priority: Floats
) -> Selection:
    cut = top_share(found.distance, percentile, priority, request.fill)
    far = per_member if kind == "taxicab" else jaccard
    threshold = float(far(cut.threshold, found.scale))
    return Selection(kind, percentile, cut, cut.mask, threshold, cut.reason)
