"""How well each risk score foretold who lost, in studies where it is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import stdtrit

from fairweight.auditing import schema
from fairweight.auditing.compare.comparison import MIN_CLUSTERS
from fairweight.auditing.exemplars.enrichment import Partition, partitions, training_sizes
from fairweight.auditing.exemplars.risk import MEANINGS as OF_EXAMPLES
from fairweight.auditing.exemplars.risk import risk_scores
from fairweight.auditing.intervals.auc import placements
from fairweight.auditing.intervals.proportion import wilson
from fairweight.auditing.intervals.units import linearised
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.types import Floats
from fairweight.tables.companions import parents

LEVELS = ("attribute", "class", "group", "example")
CHOSEN = "chosen"  # the score that was best in all other studies
CHANCE = {"auc": 0.5, "rank_correlation": 0.0}
LARGEST = 1.0
FEWEST_STUDIES = 3


@dataclass(frozen=True)
class ScoreWorth:
    """What one score was worth in one study: the mean over its comparisons."""

    study: str
    level: str  # one of LEVELS
    members: str  # one, several: dense members that the score was made of
    score: str
    measure: str  # auc (examples), rank_correlation (parts)
    value: float
    n: int  # comparisons
    choice: str = ""  # for `chosen`: which score that was


@dataclass(frozen=True)
class Support:
    """The same over studies, with an interval for the next one's mean; NaN where unknown."""

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    n_studies: int = 0
    chance: float = np.nan

    @property
    def reason(self) -> str:
        """Why nothing can be told from this score; empty where something can."""
        if not self.n_studies:
            return "no study has tried this score"
        if self.n_studies < FEWEST_STUDIES:
            return f"only {self.n_studies} of {FEWEST_STUDIES} studies needed have tried this score"
        if not self.low > self.chance:
            return "in past studies this score did not foretell who lost better than chance"
        return ""


def read_evidence() -> pd.DataFrame:
    """The table that comes with the package."""
    text = files("fairweight.auditing.preflight").joinpath("evidence.csv")
    with text.open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False)


def support(evidence: pd.DataFrame, level: str, members: str, score: str) -> Support:
    """Mean over studies and its t interval, every study counted once.

    The interval is about the mean over further studies of this kind; studies are what is sampled.
    """
    rows = evidence[
        (evidence["level"] == level)
        & (evidence["members"] == members)
        & (evidence["score"] == score)
    ]
    if rows.empty:
        return Support()
    measure = str(rows["measure"].iloc[0])
    values = rows.groupby("study")["value"].mean().to_numpy(dtype=np.float64)
    mean, k = float(values.mean()), len(values)
    if k < FEWEST_STUDIES:
        return Support(mean, n_studies=k, chance=CHANCE[measure])
    reach = float(-stdtrit(k - 1, 0.025) * values.std(ddof=1) / np.sqrt(k))
    least = 0.0 if measure == "auc" else -LARGEST
    return Support(mean, max(least, mean - reach), min(LARGEST, mean + reach), k, CHANCE[measure])


def best_score(
    evidence: pd.DataFrame, level: str, members: str, known: Iterable[str]
) -> str | None:
    """The available score with the highest mean over studies; None where there is none."""
    found = {name: support(evidence, level, members, name) for name in known}
    tried = {name: one.value for name, one in found.items() if one.n_studies}
    return max(tried, key=lambda name: tried[name]) if tried else None


def with_choices(found: Sequence[ScoreWorth]) -> list[ScoreWorth]:
    """The rows, and for every study what the score was worth in it that did best in all others.

    This is the cross-validated row: the choice has not seen the study that it is judged on.

    >>> rows = [ScoreWorth(s, "class", "one", name, "rank_correlation", value, 1)
    ...         for s, name, value in (("a", "x", 0.9), ("a", "y", 0.1), ("b", "x", 0.2),
    ...                                ("b", "y", 0.4), ("c", "x", 0.5), ("c", "y", 0.3))]
    >>> [(r.study, r.choice, r.value) for r in with_choices(rows) if r.score == CHOSEN]
    [('a', 'x', 0.9), ('b', 'x', 0.2), ('c', 'x', 0.5)]
    """
    rows = list(found)
    for level, members in dict.fromkeys((row.level, row.members) for row in found):
        here = [row for row in found if (row.level, row.members) == (level, members)]
        for study in dict.fromkeys(row.study for row in here):
            own = {row.score: row for row in here if row.study == study}
            others: dict[str, list[float]] = {}
            for row in here:
                if row.study != study and row.score in own:
                    others.setdefault(row.score, []).append(row.value)
            if others:
                best = max(others, key=lambda name: float(np.mean(others[name])))
                rows.append(replace(own[best], score=CHOSEN, choice=best))
    return rows


def evidence_frame(found: Sequence[ScoreWorth]) -> pd.DataFrame:
    """The table that comes with the package, from what was found."""
    return schema.frame("evidence", [asdict(row) for row in found])


# Risk scores of classes, groups and whole tasks: means over their examples, with limits.

ERROR_RATE, RARITY = "error_rate", "rarity"
MEANINGS = {
    ERROR_RATE: "share of the dense model's answers that are wrong",
    RARITY: "how many times rarer than an even share of the training data",
    **OF_EXAMPLES,
}


@dataclass(frozen=True)
class Limited:
    """A number with its limits; NaN where it has none."""

    value: float
    low: float
    high: float


def scores_of_examples(answers: Answers) -> dict[str, Floats]:
    """What can be averaged over a part: errors, and the risk scores of single examples."""
    wrong: Floats = 1 - answers.correct(answers.baseline).mean(axis=0)
    return {ERROR_RATE: wrong, **risk_scores(answers)}


def mean_of(
    score: Floats, part: NDArray[np.bool_], cluster: NDArray[np.int64] | None, alpha: float
) -> Limited:
    """The mean over a part's examples, which (or whose clusters) are sampled; all in [0, 1].

    Wilson's limits where every value is 0 or 1, linearised ones else; NaN below 20 clusters.
    """
    here = part & ~np.isnan(score)
    x = score[here]
    n = len(x)
    if n < 2:
        return Limited(float(x.mean()) if n else np.nan, np.nan, np.nan)
    if cluster is None and np.isin(x, (0.0, 1.0)).all():
        low, high = wilson(x.sum(), n, alpha, modified=True)
        return Limited(float(x.mean()), float(low), float(high))
    if cluster is None:
        total, size = x, np.ones(n)
    else:
        unit = np.unique(cluster[here], return_inverse=True)[1]
        total = np.bincount(unit, weights=x).astype(np.float64)
        size = np.bincount(unit).astype(np.float64)
        if len(size) < MIN_CLUSTERS:
            return Limited(float(x.mean()), np.nan, np.nan)
    low, high, _ = linearised(
        total.sum(), size.sum(), total @ total, total @ size, size @ size, len(size), alpha
    )
    return Limited(float(x.mean()), float(low), float(high))


def beyond(inside: Limited, outside: Limited) -> Limited:
    """The difference of two means from their limits (Newcombe's square-and-add).

    >>> found = beyond(Limited(0.5, 0.4, 0.6), Limited(0.2, 0.1, 0.3))
    >>> [round(x, 3) for x in (found.value, found.low, found.high)]
    [0.3, 0.159, 0.441]
    """
    value = inside.value - outside.value
    down = np.hypot(inside.value - inside.low, outside.high - outside.value)
    up = np.hypot(inside.high - inside.value, outside.value - outside.low)
    return Limited(value, value - float(down), value + float(up))


def rarity(answers: Answers, partition: Partition, alpha: float) -> list[Limited] | None:
    """1 / (levels × share of the training data) of every level; None without training data.

    An even share has rarity 1, half of it 2. Limits are Wilson's of the share.
    """
    sizes = training_sizes(answers, partition)
    if sizes is None or not sizes.sum():
        return None
    levels = int((~partition.missing).sum())
    total = sizes.sum()
    low, high = wilson(sizes, total, alpha, modified=True)
    with np.errstate(divide="ignore"):
        values = (1 / (levels * np.stack([sizes / total, high, low]))).T
    return [Limited(*(float(x) for x in row)) for row in values]


# What a pre-flight check would have been worth, where it is known who lost.
#
# For parts (classes, group levels, attributes): the rank correlation of a score with the loss of
# accuracy that followed, in excess of everybody else's. The score is taken on one half of the
# examples and the loss on the other: on the same examples a part in which the dense model was
# lucky would have low scores *and* lose more. For single examples: the AUC of a score for finding,
# among those that the dense model has right, the ones that compression loses.

FEWEST_LOST = 20  # answers lost, below which a comparison says nothing
FEWEST_PARTS = 4
FEWEST_EXAMPLES = 10  # of a part, in either half
HALF = 0.5


def hindsight(study: str, tasks: Sequence[Answers], *, random_state: int = 0) -> list[ScoreWorth]:
    """What every score was worth in one study: means over its tasks and variants.

    Scores of one dense member are judged by that member and its children, scores of all of them by
    all.
    """
    rows: list[ScoreWorth] = []
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
            rows.append(ScoreWorth(study, level, members, score, measure, mean, len(held)))
    return rows


def _values(
    tasks: Sequence[Answers], rng: np.random.Generator
) -> Iterator[tuple[tuple[str, str, str], float]]:
    """(level, score, measure) and its value, for every task, variant and score."""
    halves = []
    for answers in tasks:  # a random half of the examples, clusters whole
        unit = np.arange(answers.n_examples) if answers.cluster is None else answers.cluster
        halves.append((rng.random(int(unit.max(initial=-1)) + 1) < HALF)[unit])
    for answers, half in zip(tasks, halves, strict=True):
        for variant in answers.variants:
            loss = _loss(answers, variant)
            if (loss > 0).sum() < FEWEST_LOST:
                continue
            right = answers.correct(answers.baseline).mean(axis=0) > HALF
            for score, values in risk_scores(answers).items():
                here = right & ~np.isnan(values)
                lost = loss[here] > HALF
                if FEWEST_LOST <= lost.sum() < here.sum():
                    yield ("example", score, "auc"), placements(values[here], lost).auc
            for level in ("class", "group"):
                chosen = [p for p in partitions(answers) if p.by == level]
                for score, value in _parts(answers, chosen, loss, half):
                    yield (level, score, "rank_correlation"), value
    if len(tasks) >= FEWEST_PARTS:
        for score, value in _attributes(tasks, halves):
            yield ("attribute", score, "rank_correlation"), value


def _loss(answers: Answers, variant: str) -> Floats:
    """Of every example: how much less often compressed members are right than dense ones."""
    before = answers.correct(answers.baseline).mean(axis=0)
    loss: Floats = before - answers.correct(variant).mean(axis=0)
    return loss


def _parts(
    answers: Answers, chosen: Sequence[Partition], loss: Floats, half: NDArray[np.bool_]
) -> Iterator[tuple[str, float]]:
    """How well each score ranks the parts by their loss, over both halves."""
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
    """How well each score ranks whole tasks by their loss, over both halves."""
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
    if len(pairs) < FEWEST_PARTS:
        return float("nan")
    first, second = (pd.Series(side).rank().to_numpy() for side in zip(*pairs, strict=True))
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


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
