"""Rows of the score metrics: AUC, calibration, Brier score, uncertainty, top-5 accuracy.

Their intervals come from `score_replicates`; this file brings scores to one form and rows to the
results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.closed import closed_flags
from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.events import flag_rows
from fairweight.auditing.compare.linear import linear_rates
from fairweight.auditing.compare.quantities import NO_POSITIVE, Quantity, impossible, sizes
from fairweight.auditing.compare.rates import scopes
from fairweight.auditing.compare.rows import Block
from fairweight.auditing.compare.score_replicates import (
    KINDS,
    Statistic,
    calibration,
    mean_of,
    ranking,
    replicate_scores,
    squared_calibration,
)
from fairweight.auditing.compare.slots import groupings_of, join_slots, slots_of
from fairweight.auditing.compare.values import family_blocks
from fairweight.auditing.counts.cube import Cube, Scores, select
from fairweight.auditing.counts.groupings import groupings, whole
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.sums import sums
from fairweight.auditing.metrics.rates import is_uncertain
from fairweight.auditing.metrics.registry import metric

NAMES = ("auc", "brier", "ece", "ece_top_label", "calibration_error_sq", "calibration_gap")


@dataclass(frozen=True)
class Probabilities:
    """Per cell and member, what the scores say; None where they do not say it."""

    positive: Floats | None  # P(positive class), binary labels
    confidence: Floats | None  # probability of the predicted class
    vector: Floats | None  # (cells, members, classes), in the order of the label classes
    rank: Floats | None


def probabilities(c: Comparison) -> Probabilities:
    """Bring single scores and score vectors to one form."""
    scores = c.cube.scores
    assert scores is not None
    prediction = c.cube.prediction
    vector = None
    if scores.vector is not None:
        order = [scores.vector_classes.index(name) for name in c.classes]
        vector = scores.vector[:, :, order]
    positive = confidence = None
    if c.positive is not None and vector is not None:
        positive = vector[:, :, c.positive]
    elif c.positive is not None and scores.score is not None:
        positive = scores.score
    if scores.vector is not None:
        confidence = _of_the_prediction(c, scores)
    elif positive is not None:
        confidence = np.where(prediction == c.positive, positive, 1 - positive)
    elif scores.score is not None and len(c.classes) != 2:
        confidence = scores.score
    rank = scores.rank
    if rank is None and vector is not None:
        own = np.take_along_axis(vector, c.cube.label[:, None, None].astype(np.intp), axis=2)
        rank = 1.0 + (vector > own).sum(axis=2)
    return Probabilities(positive, confidence, vector, rank)


def _of_the_prediction(c: Comparison, scores: Scores) -> Floats:
    """The vectors' entry for the class that each member predicts; NaN where they have none."""
    assert scores.vector is not None
    place = {name: i for i, name in enumerate(scores.vector_classes)}
    # One more entry, for abstentions (-1) and for classes that the vectors do not know.
    nowhere = len(scores.vector_classes)
    at = np.array([*(place.get(name, nowhere) for name in c.cube.classes), nowhere])
    room = np.concatenate([scores.vector, np.full((*scores.vector.shape[:2], 1), np.nan)], axis=2)
    entry = at[c.cube.prediction][:, :, None]
    picked: Floats = np.take_along_axis(room, entry, axis=2)[:, :, 0]
    return picked


def with_scores_only(c: Comparison) -> tuple[Comparison, int]:
    """The examples that every member scores and answers, and how many others were left out."""
    scores = c.cube.scores
    assert scores is not None
    keep = np.asarray((c.cube.prediction >= 0).all(axis=1))
    if scores.score is not None:
        keep = keep & np.isfinite(scores.score).all(axis=1)
    if scores.vector is not None:
        keep = keep & np.isfinite(scores.vector).all(axis=(1, 2))
        keep = keep & np.isfinite(_of_the_prediction(c, scores)).all(axis=1)
    left_out = int(c.cube.count[~keep].sum())
    if not left_out:
        return c, 0
    cube = select(c.cube, keep)
    names = tuple(g.name for g in c.groupings)
    kept = replace(c, cube=cube, whole=whole(cube), groupings=groupings(cube, names))
    return kept, left_out


def score_rows(c: Comparison) -> Iterator[Block]:
    """Blocks of rows of every score metric that the scores allow."""
    p = probabilities(c)
    top5, unsure = None if p.rank is None else p.rank <= 5, None
    if p.confidence is not None:
        unsure = _uncertain(p)
    yield from _flag_rows(c, "top5_accuracy", top5, "not_estimable: no ranks or score vectors")
    yield from _flag_rows(c, "uncertainty", unsure, _no_scores(c))
    statistics = list(score_statistics(c, p))
    for (name, kind), found in replicate_scores(c, statistics).items():
        chosen = groupings_of(c, kind)
        slots = join_slots([slots_of(c, g, kind) for g in chosen], kind)
        n = np.concatenate([sizes(c, g) for g in chosen])
        yield from family_blocks(c, [(Quantity(name, slots, n, None), found)])
    made = {statistic.metric for statistic in statistics}
    for name in NAMES:
        if name not in made:
            yield from _no_value(c, name, impossible(c, metric(name)) or _no_scores(c))


def score_statistics(c: Comparison, p: Probabilities) -> Iterator[Statistic]:
    """Every metric of scores that these probabilities allow, for each kind of rows.

    Calibration error and gap are of the positive class's probability; with more than two classes,
    of the predicted class's.
    """
    right = (c.cube.prediction == c.cube.label[:, None]).astype(float)
    one_hot = np.eye(len(c.classes))[c.cube.label][:, None, :]
    places = [(kind, grouping) for kind in KINDS for grouping in groupings_of(c, kind)]
    if p.confidence is not None:
        yield calibration(c, "ece_top_label", p.confidence, right)
    promise = None
    if p.positive is not None and c.positive is not None:
        truth = np.broadcast_to(one_hot[:, :, c.positive], p.positive.shape)
        promise = p.positive, truth
        yield calibration(c, "ece", p.positive, truth)
        yield mean_of(c, "brier", (p.positive - truth) ** 2)
        for kind, grouping in places:
            yield ranking(c, "auc", kind, grouping, [(p.positive, truth)])
    elif p.vector is not None and len(c.classes) > 2:
        yield mean_of(c, "brier", ((p.vector - one_hot) ** 2).sum(axis=2))
        shape = p.vector.shape[:2]
        problems = [
            (p.vector[:, :, k], np.broadcast_to(one_hot[:, :, k], shape))
            for k in range(len(c.classes))
        ]
        for kind, grouping in places:
            yield ranking(c, "auc", kind, grouping, problems)
    if p.confidence is not None and len(c.classes) != 2:
        promise = p.confidence, right
    if promise is not None:
        yield mean_of(c, "calibration_gap", promise[0] - promise[1])
        for kind, grouping in places:
            yield squared_calibration(c, "calibration_error_sq", kind, grouping, *promise)


def flag_statistics(c: Comparison, p: Probabilities) -> Iterator[Statistic]:
    """Uncertainty and top-5 accuracy as means to be drawn: no closed form across tasks."""
    flags = {
        "top5_accuracy": None if p.rank is None else p.rank <= 5,
        "uncertainty": None if p.confidence is None else _uncertain(p),
    }
    for name, flag in flags.items():
        if flag is not None:
            yield mean_of(c, name, flag.astype(float))


def no_score_rows(c: Comparison) -> Iterator[Block]:
    """Rows that say which metrics would need scores."""
    for name in (*NAMES, "uncertainty"):
        yield from _no_value(c, name, "not_estimable: no scores")
    yield from _no_value(c, "top5_accuracy", "not_estimable: no label ranks or score vectors")


def most_tied_share(scored: Cube, positive: dict[str | None, int | None]) -> float:
    """Largest share, over tasks and members, of (positive, negative) pairs with equal scores.

    Rounding puts at most these pairs out of order, and an equal pair counts one half.
    """
    most = 0.0
    for task in scored.tasks or (None,):
        cube = scored.of_task(task)
        if cube.scores is None or cube.scores.score is None or positive[task] is None:
            continue
        is_positive = cube.label == positive[task]
        for column in cube.scores.score.T:
            known = np.isfinite(column)
            values, place = np.unique(column[known], return_inverse=True)
            count, truth = cube.count[known], is_positive[known]
            up = sums(place.reshape(-1), count * truth, len(values))
            down = sums(place.reshape(-1), count * ~truth, len(values))
            most = max(most, float((up * down).sum() / max(up.sum() * down.sum(), 1.0)))
    return most


def _uncertain(p: Probabilities) -> NDArray[np.bool_]:
    """IO: |p - .5| < .4; with more classes, a top probability below .9 (both strict)."""
    if p.positive is not None:
        return is_uncertain(p.positive, binary=True)
    assert p.confidence is not None
    top = p.confidence if p.vector is None else p.vector.max(axis=2)
    return is_uncertain(top, binary=False)


def _no_value(c: Comparison, name: str, reason: str) -> Iterator[Block]:
    slots = slots_of(c, c.whole, "overall")
    quantity = Quantity(
        name, slots, sizes(c, c.whole), None, status=np.array([reason], dtype=object)
    )
    return family_blocks(c, [(quantity, None)])


def _no_scores(c: Comparison) -> str:
    """Why scores that were given do not serve."""
    if len(c.classes) == 2 and c.positive is None:
        return NO_POSITIVE
    return "not_estimable: no scores of the kind it needs"


def _flag_rows(
    c: Comparison, name: str, flags: NDArray[np.bool_] | None, reason: str
) -> Iterator[Block]:
    if flags is None:
        yield from _no_value(c, name, reason)
        return
    for kind in KINDS:
        estimate = (
            closed_flags(c, flags, kind)
            if c.closed_form
            else linear_rates(c, flag_rows(c, flags, kind), kind)
        )
        if estimate is not None:
            for made in scopes(c, metric(name), estimate, flag_rows(c, flags, kind)):
                yield made.block
