"""The sets of exemplars that are asked for, before they are described."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.exemplars.votes import (
    Disagreement,
    TieRule,
    disagreement,
    jaccard,
    per_member,
)
from fairweight.auditing.exemplars.votes import tie_rule as chosen_rule
from fairweight.auditing.intervals.auc import Placements, auc_limits, placements
from fairweight.auditing.pairing import pair_members
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.streams import stream
from fairweight.base.types import Floats, Mask
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.companions import parents

# The examples that lie furthest apart: a share of them, ties drawn, none without a difference.

Fill = Literal["random"]


@dataclass(frozen=True)
class Cut:
    """The exemplars of a percentile."""

    mask: Mask
    n_asked: int
    threshold: float  # the smallest value among those chosen; NaN where none is
    reason: str | None  # why there are fewer than asked for; None where there are not


def checked_percentiles(given: Sequence[float]) -> tuple[float, ...]:
    """Percentiles in ascending order, each once."""
    for value in given:
        if isinstance(value, bool) or not 0 < float(value) < 100:
            raise InputError(
                f"percentiles: {value!r} cannot be used; give numbers between 0 and 100, such as "
                "90, 95, 99."
            )
    return tuple(sorted({float(value) for value in given}))


def checked_fill(fill: str | None) -> Fill | None:
    if fill is None or fill == "random":
        return fill  # type: ignore[return-value]
    raise InputError(
        f"fill={fill!r} cannot be used; give 'random' (examples without any difference fill up "
        "what is missing, as Hooker's code does) or leave it out."
    )


def top_share(
    value: NDArray[Any], percentile: float, priority: Floats, fill: Fill | None = None
) -> Cut:
    """The share 1 − percentile / 100 of examples with the largest values, rounded down.

    Parameters
    ----------
    value
        (n,) from 0: how much differs.
    priority
        (n,) random numbers; among equal values the smallest come first. The same numbers at every
        percentile make the cuts nested.
    fill
        `"random"`: where fewer examples than asked for differ at all, take others at random.

    Examples
    --------
    >>> found = top_share(np.array([0, 2, 4, 2, 0]), 40, np.array([0.1, 0.9, 0.5, 0.2, 0.3]))
    >>> found.mask.tolist(), found.n_asked, found.threshold
    ([False, True, True, True, False], 3, 2.0)
    >>> found = top_share(np.array([0, 2, 0, 0]), 50, np.array([0.1, 0.9, 0.5, 0.2]))
    >>> found.mask.tolist(), found.n_asked, found.reason
    ([False, True, False, False], 2, 'fewer than asked for: only 1 example differs at all')
    """
    n = len(value)
    wanted = math.floor(n * (100 - percentile) / 100 + 1e-9)
    if wanted == 0:
        told = f"too few examples for a percentile of {percentile:g}"
        return Cut(np.zeros(n, dtype=bool), 0, math.nan, told)
    edge = np.partition(value, n - wanted)[n - wanted]
    mask: Mask = value > edge
    above = int(np.count_nonzero(mask))
    reason = None
    if edge == 0 and above < wanted:
        verb = "example differs" if above == 1 else "examples differ"
        reason = f"only {above:,} {verb} at all" if above else "no example differs"
        filled = "filled at random" if fill == "random" else "fewer than asked for"
        reason = f"{filled}: {reason}"
    if edge > 0 or fill == "random":  # among equals the smallest priorities come first
        equal, number = np.flatnonzero(value == edge), wanted - above
        if number < len(equal):
            equal = equal[np.argpartition(priority[equal], number)[:number]]
        mask[equal] = True
    chosen = value[mask]
    return Cut(mask, wanted, float(chosen.min()) if len(chosen) else math.nan, reason)


# With a single pair of models: a stand-in for exemplars, and how well it stands in.
#
# One dense and one compressed model cannot tell what compression changes from what another
# training run would have changed. Changed predictions come first, then the divergence of the two
# models' scores.

MOST_PAIRS = 10  # of a population, on which the stand-in is tried
FEWEST_EXEMPLARS = 20  # from fewer nothing is said about who or what is among them
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


def agreement(request: Request, variant: str) -> Agreement:
    """Try single pairs against the exemplars of the members that are not in the pair.

    The AUC is for the modal exemplars of the others, the overlap with their Taxicab cut; both are
    means over pairs. The pair itself is left out of the population that it is judged by (a lone
    baseline model cannot be). The interval is about other examples (or clusters).
    """
    answers, fill = request.answers, request.fill
    span, other = answers.rows(answers.baseline), answers.rows(variant)
    first, second = answers.of(answers.baseline), answers.of(variant)
    n_first, n_second = len(first), len(second)
    if n_second < FEWEST or n_first == 2:
        told = f"{n_first} baseline and {n_second} compressed members"
        why = f"not_estimable: {told}, too few to leave a pair out"
        return Agreement(np.nan, np.nan, np.nan, {}, why)
    # Children with their parents; else members in their order, the shorter side again.
    lineage = parents(answers.variants_table)
    pairing = pair_members(answers.members[span], answers.members[other], lineage)
    if pairing.paired:
        pairs = [(int(parent), j) for j, parent in enumerate(pairing.parent)]
    else:
        pairs = [(j % n_first, j) for j in range(n_second)]
    judged: list[Placements] = []
    overlap: dict[float, list[float]] = {q: [] for q in request.percentiles}
    rng = stream(request.random_state, variant, answers.task or "", "exemplars surrogate")
    for i, j in pairs[:MOST_PAIRS]:
        value = surrogate(answers, span.start + i, other.start + j)
        rest = np.delete(first, i, axis=0) if n_first > 1 else first
        found = disagreement(rest, np.delete(second, j, axis=0), request.rule, rng)
        if 0 < np.count_nonzero(found.exemplar) < len(value):
            judged.append(placements(value, found.exemplar))
        priority = rng.random(len(value))
        for q in request.percentiles:
            mine = top_share(value, q, priority, fill).mask
            theirs = top_share(found.distance, q, priority, fill).mask
            n = np.count_nonzero(mine)
            overlap[q].append(np.count_nonzero(mine & theirs) / n if n else np.nan)
    shares = {q: float(np.nanmean(v)) for q, v in overlap.items() if not np.isnan(v).all()}
    if not judged:
        why = "not_estimable: the others have no modal exemplars"
        return Agreement(np.nan, np.nan, np.nan, shares, why)
    auc, low, high = auc_limits(judged, answers.cluster, request.alpha)
    return Agreement(auc, low, high, shares, None)


Key = tuple[str, str, float | None]  # variant, kind, percentile (None: not a cut)


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


# Which examples are exemplars of a variant, and how all of them are ranked.
#
# What `find` counts and describes, and what a viewer of examples looks up.

PERCENTILES = (90.0, 95.0, 99.0)


@dataclass(frozen=True)
class Marked:
    """A variant beside the baseline, on every example.

    found       votes compared
    order       (n,) what ranks the examples: the distance per member, or a pair's surrogate
    priority    (n,) random numbers that decide among equals
    one_pair    whether one model stands against one
    sets        the exemplars of every kind and percentile
    """

    found: Disagreement
    order: Floats
    priority: Floats
    one_pair: bool
    sets: tuple[Selection, ...]

    @property
    def distance(self) -> Floats:
        """(n,) from 0 (the same votes) to 1 (none in common)."""
        return per_member(self.found.distance, self.found.scale) / 2


def checked_request(
    answers: Answers,
    percentiles: Sequence[float] = PERCENTILES,
    kinds: Sequence[str] = DEFAULT_KINDS,
    rule: str = "disjoint",
    fill: str | None = None,
    random_state: int = 0,
    alpha: float = 0.05,
) -> Request:
    """What is asked for; parameters as those of `find`."""
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownNameError("Kind of exemplars", kind, KINDS)
    if random_state < 0:
        raise InputError(f"random_state is {random_state}; give a whole number of at least 0.")
    if not 0 < alpha < 1:
        raise InputError(f"alpha is {alpha}; give a number between 0 and 1, such as 0.05.")
    if not answers.variants:
        raise InputError("There is no compressed variant; exemplars need one beside the baseline.")
    return Request(
        answers,
        checked_percentiles(percentiles),
        tuple(kind for kind in KINDS if kind in kinds),
        chosen_rule(rule, answers),
        checked_fill(fill),
        random_state,
        alpha,
    )


def marked(request: Request, variant: str) -> Marked:
    """Compare a variant with the baseline, and choose its exemplars."""
    answers = request.answers
    first, second = answers.of(answers.baseline), answers.of(variant)
    one_pair, several = len(first) == len(second) == 1, len(first) > 1
    rng = partial(stream, request.random_state, variant, answers.task or "")
    found = disagreement(first, second, request.rule, rng("exemplars modal ties"))
    priority = rng("exemplars ties at the cut").random(answers.n_examples)
    order: Floats = per_member(found.distance, found.scale)
    if one_pair:
        order = surrogate(
            answers, answers.rows(answers.baseline).start, answers.rows(variant).start
        )
    sets: list[Selection] = []
    for kind in request.kinds:
        if kind == "modal":
            told = "one pair: changed predictions, which retraining changes too"
            reason = told if one_pair else None
            sets.append(Selection(kind, None, None, found.exemplar, reason=reason))
        elif kind == "unanimous":
            told = "against the baseline's most frequent answer: there is no single teacher"
            reason = told if several else None
            sets.append(Selection(kind, None, None, found.unanimous, reason=reason))
        elif kind == "surrogate" and one_pair:
            binary = answers.n_label_classes == 2 and answers.score is not None
            told = "a pair's surrogate: changed predictions"
            told += (
                ", then divergence of scores"
                if answers.scores is not None or binary
                else "; scores of all classes would order the rest"
            )
            for q in request.percentiles:
                cut = top_share(order, q, priority, request.fill)
                reason = told if cut.reason is None else f"{told}; {cut.reason}"
                sets.append(Selection(kind, q, cut, cut.mask, cut.threshold, reason))
        elif kind != "surrogate" and one_pair:
            told = "not_estimable: votes of one pair are alike or not; see surrogate"
            sets += [Selection(kind, q, None, None, reason=told) for q in request.percentiles]
        elif kind != "surrogate":
            far = per_member if kind == "taxicab" else jaccard
            for q in request.percentiles:
                cut = top_share(found.distance, q, priority, request.fill)
                threshold = float(far(cut.threshold, found.scale))
                sets.append(Selection(kind, q, cut, cut.mask, threshold, cut.reason))
    return Marked(found, order, priority, one_pair, tuple(sets))
