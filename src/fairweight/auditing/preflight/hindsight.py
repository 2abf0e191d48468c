"""What a pre-flight check would have been worth, where it is known who lost.

For parts (classes, group levels, attributes): the rank correlation of a score with the loss of
accuracy that followed, in excess of everybody else's. The score is taken on one half of the
examples and the loss on the other: on the same examples a part in which the dense model was lucky
would have low scores *and* lose more. For single examples: the AUC of a score for finding, among
those that the dense model has right, the ones that compression loses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.exemplars.auc import placements
from fairweight.auditing.exemplars.partitions import Partition, partitions
from fairweight.auditing.exemplars.risk_scores import risk_scores
from fairweight.auditing.preflight.evidence import Found
from fairweight.auditing.preflight.part_scores import RARITY, rarity, scores_of_examples
from fairweight.tables.parents import parents

FEWEST_LOST = 20  # answers lost, below which a comparison says nothing
FEWEST_PARTS = 4
FEWEST_EXAMPLES = 10  # of a part, in either half
HALF = 0.5


def hindsight(study: str, tasks: Sequence[Answers], *, random_state: int = 0) -> list[Found]:
    """What every score was worth in one study: means over its tasks and variants.

    Scores of one dense member are judged by that member and its children, scores of all of them by
    all.
    """
    rows: list[Found] = []
    whole = tasks[0]
    settings = [("one", [_of_one_member(t) for t in tasks])]
    if len(whole.of(whole.baseline)) > 1:
        settings.append(("several", list(tasks)))
    for members, chosen in settings:
        values: dict[tuple[str, str, str], list[float]] = {}
        for key, value in _values(chosen, np.random.default_rng(random_state)):
            values.setdefault(key, []).append(value)
        for (level, score, measure), held in values.items():
            mean = float(np.mean(held))
            rows.append(Found(study, level, members, score, measure, mean, len(held)))
    return rows


def _values(
    tasks: Sequence[Answers], rng: np.random.Generator
) -> Iterator[tuple[tuple[str, str, str], float]]:
    halves = [_half(answers, rng) for answers in tasks]
    for answers, half in zip(tasks, halves, strict=True):
        for variant in answers.variants:
            lost = _loss(answers, variant)
            if (lost > 0).sum() < FEWEST_LOST:
                continue
            yield from _examples(answers, lost)
            for level in ("class", "group"):
                chosen = [p for p in partitions(answers) if p.by == level]
                for score, value in _parts(answers, chosen, lost, half):
                    yield (level, score, "rank_correlation"), value
    if len(tasks) >= FEWEST_PARTS:
        for score, value in _attributes(tasks, halves):
            yield ("attribute", score, "rank_correlation"), value


def _loss(answers: Answers, variant: str) -> Floats:
    """Of every example: how much less often compressed members are right than dense ones."""
    before = answers.correct(answers.baseline).mean(axis=0)
    loss: Floats = before - answers.correct(variant).mean(axis=0)
    return loss


def _examples(answers: Answers, loss: Floats) -> Iterator[tuple[tuple[str, str, str], float]]:
    right = answers.correct(answers.baseline).mean(axis=0) > HALF
    for name, score in risk_scores(answers).items():
        here = right & ~np.isnan(score)
        lost = loss[here] > HALF
        if FEWEST_LOST <= lost.sum() < here.sum():
            yield ("example", name, "auc"), placements(score[here], lost).auc


def _parts(
    answers: Answers, chosen: Sequence[Partition], loss: Floats, half: NDArray[np.bool_]
) -> Iterator[tuple[str, float]]:
    scores = scores_of_examples(answers)
    for name in [*scores, RARITY]:
        both = [
            _rank_correlation(
                [
                    pair
                    for partition in chosen
                    for pair in _pairs(answers, partition, loss, here, scores.get(name))
                ]
            )
            for here in (half, ~half)
        ]
        if not np.isnan(both).any():
            yield name, float(np.mean(both))


def _pairs(
    answers: Answers,
    partition: Partition,
    loss: Floats,
    here: NDArray[np.bool_],
    score: Floats | None,
) -> Iterator[tuple[float, float]]:
    """Of every level: its score here (its rarity without one), and its excess loss elsewhere."""
    rare = rarity(answers, partition, 0.05) if score is None else None
    if score is None and rare is None:
        return
    for level in np.flatnonzero(~partition.missing):
        inside = partition.code == level
        enough = min((inside & here).sum(), (inside & ~here).sum()) >= FEWEST_EXAMPLES
        if not enough or not (~inside & ~here).any():
            continue
        excess = float(loss[inside & ~here].mean() - loss[~inside & ~here].mean())
        if score is None:
            assert rare is not None
            yield rare[level].value, excess
        else:
            yield float(np.nanmean(score[inside & here])), excess


def _attributes(
    tasks: Sequence[Answers], halves: Sequence[NDArray[np.bool_]]
) -> Iterator[tuple[str, float]]:
    for variant in tasks[0].variants:
        losses = [_loss(answers, variant) for answers in tasks]
        if sum((loss > 0).sum() for loss in losses) < FEWEST_LOST:
            continue
        scores = [scores_of_examples(answers) for answers in tasks]
        for name in set.intersection(*(set(found) for found in scores)):
            both = [
                _rank_correlation(
                    [
                        (
                            float(np.nanmean(found[name][half if first else ~half])),
                            float(loss[~half if first else half].mean()),
                        )
                        for found, loss, half in zip(scores, losses, halves, strict=True)
                    ]
                )
                for first in (True, False)
            ]
            if not np.isnan(both).any():
                yield name, float(np.mean(both))


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's, with ties at their mean rank; NaN for few parts, or where a side is constant."""
    from scipy.stats import rankdata

    if len(pairs) < FEWEST_PARTS:
        return float("nan")
    first, second = (rankdata(side) for side in zip(*pairs, strict=True))
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def _half(answers: Answers, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A random half of the examples, clusters whole."""
    unit = np.arange(answers.n_examples) if answers.cluster is None else answers.cluster
    drawn = rng.random(int(unit.max(initial=-1)) + 1) < HALF
    half: NDArray[np.bool_] = drawn[unit]
    return half


def _of_one_member(answers: Answers) -> Answers:
    """The first dense member and what descends from it; all compressed ones where nobody knows."""
    lineage = parents(answers.variants_table)
    names = [(m.variant, m.seed) for m in answers.members]
    root = names[answers.rows(answers.baseline).start]
    kept = []
    for place, member in enumerate(names):
        oldest = member
        while oldest in lineage and oldest != root:
            oldest = lineage[oldest]
        dense = member[0] == answers.baseline
        if member == root or (not dense and (oldest == root or member not in lineage)):
            kept.append(place)
    held = {names[place][0] for place in kept}
    return replace(
        answers,
        prediction=answers.prediction[kept],
        members=tuple(answers.members[place] for place in kept),
        variants=tuple(name for name in answers.variants if name in held),
        score=None if answers.score is None else answers.score[kept],
        scores=None if answers.scores is None else answers.scores[kept],
    )
