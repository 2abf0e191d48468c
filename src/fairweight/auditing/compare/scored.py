"""Rows of the score metrics: AUC, calibration errors, Brier score, uncertainty, top-5 accuracy.

Calibration errors and the Brier score are functions of sums over (slice, bin), so their replicates
are sparse products like those of counts. The AUC needs ranks; it is bootstrapped on fewer
replicates where there are many examples, and the interval column says how many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.closed import closed_flags
from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.linear import linear_flags
from fairweight.auditing.compare.quantities import Quantity, impossible, sizes
from fairweight.auditing.compare.rates import rate_block
from fairweight.auditing.compare.replicates import Replicated, Values, in_batches
from fairweight.auditing.compare.rows import Block
from fairweight.auditing.compare.slots import groupings_of, join_slots, slots_of
from fairweight.auditing.compare.values import family_block
from fairweight.auditing.counts.cube import select
from fairweight.auditing.counts.groupings import Grouping, groupings, whole
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.metrics.registry import metric
from fairweight.auditing.metrics.scores import ScoreColumn, auc, bin_edges, bin_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

AUC_BUDGET = 100_000_000  # replicates × examples × evaluations of all ranks
FEWEST_AUC_REPLICATES = 200
CONFIDENT = 0.9  # IO: |p - 0.5| >= 0.4, which is a top probability of at least 0.9
KINDS = ("overall", "group", "intersection")


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
    if vector is not None:
        known = np.clip(prediction, 0, len(c.classes) - 1)
        picked = np.take_along_axis(vector, known[:, :, None], axis=2)[:, :, 0]
        confidence = np.where((prediction >= 0) & (prediction < len(c.classes)), picked, np.nan)
    elif positive is not None:
        confidence = np.where(prediction == c.positive, positive, 1 - positive)
    elif scores.score is not None and len(c.classes) != 2:
        confidence = scores.score
    rank = scores.rank
    if rank is None and vector is not None:
        own = np.take_along_axis(vector, c.cube.label[:, None, None].astype(np.intp), axis=2)
        rank = 1.0 + (vector > own).sum(axis=2)
    return Probabilities(positive, confidence, vector, rank)


def with_scores_only(c: Comparison) -> tuple[Comparison, int]:
    """The examples that every member scores and answers, and how many others were left out."""
    scores = c.cube.scores
    assert scores is not None
    keep = (c.cube.prediction >= 0).all(axis=1)
    if scores.score is not None:
        keep &= np.isfinite(scores.score).all(axis=1)
    if scores.vector is not None:
        keep &= np.isfinite(scores.vector).all(axis=(1, 2))
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
    yield from _flag_rows(c, "top5_accuracy", None if p.rank is None else p.rank <= 5)
    yield from _flag_rows(
        c, "uncertainty", None if p.confidence is None else _uncertain(p)
    )
    right = (c.cube.prediction == c.cube.label[:, None]).astype(float)
    is_positive = (
        None if c.positive is None else (c.cube.label == c.positive).astype(float)[:, None]
    )
    if p.confidence is not None:
        yield from _calibration_rows(c, "ece_top_label", p.confidence, right)
    if p.positive is not None and is_positive is not None:
        outcome = np.broadcast_to(is_positive, p.positive.shape)
        yield from _calibration_rows(c, "ece", p.positive, outcome)
        yield from _loss_rows(c, (p.positive - outcome) ** 2)
        yield from _auc_rows(c, [(p.positive, outcome)])
    elif p.vector is not None and len(c.classes) > 2:
        one_hot = np.eye(len(c.classes))[c.cube.label][:, None, :]
        yield from _loss_rows(c, ((p.vector - one_hot) ** 2).sum(axis=2))
        yield from _auc_rows(
            c,
            [
                (p.vector[:, :, k], np.broadcast_to(one_hot[:, :, k], p.vector.shape[:2]))
                for k in range(len(c.classes))
            ],
        )
    else:
        for name in ("auc", "brier", "ece"):
            reason = impossible(c, metric(name)) or "not_estimable: no scores of the kind it needs"
            yield _no_value(c, name, reason)


def no_score_rows(c: Comparison) -> Iterator[Block]:
    """Rows that say which metrics would need scores."""
    for name in ("auc", "ece", "ece_top_label", "brier", "uncertainty"):
        yield _no_value(c, name, "not_estimable: no scores")
    yield _no_value(c, "top5_accuracy", "not_estimable: no label ranks or score vectors")


def _uncertain(p: Probabilities) -> NDArray[np.bool_]:
    """IO: |p - .5| < .4; with more classes, a top probability below .9 (both strict)."""
    if p.positive is not None:
        return np.abs(p.positive - 0.5) < CONFIDENT - 0.5
    if p.vector is not None:
        return p.vector.max(axis=2) < CONFIDENT
    assert p.confidence is not None
    return p.confidence < CONFIDENT


def _no_value(c: Comparison, name: str, reason: str) -> Block:
    slots = slots_of(c, c.whole, "overall")
    quantity = Quantity(
        name, slots, sizes(c, c.whole), None, status=np.array([reason], dtype=object)
    )
    return family_block(c, [(quantity, None)])


def _flag_rows(
    c: Comparison, name: str, flags: NDArray[np.bool_] | None
) -> Iterator[Block]:
    if flags is None:
        yield _no_value(c, name, "not_estimable: no scores of the kind it needs")
        return
    for kind in KINDS:
        made = closed_flags if c.closed_form else linear_flags
        estimate = made(c, flags, kind)
        if estimate is not None:
            yield rate_block(c, name, estimate)


def _calibration_rows(
    c: Comparison, name: Any, score: Floats, outcome: Floats
) -> Iterator[Block]:
    bins = len(bin_edges(name)[0])
    yield from _binned_rows(c, name, score - outcome, bin_of(score, name), bins)


def _loss_rows(c: Comparison, loss: Floats) -> Iterator[Block]:
    """The Brier score is a calibration error with one bin and a loss that is never negative."""
    yield from _binned_rows(c, "brier", loss, np.zeros(loss.shape, dtype=np.intp), 1)


def _binned_rows(
    c: Comparison, name: str, value: Floats, bins: NDArray[np.intp], n_bins: int
) -> Iterator[Block]:
    """Rows of sum_b |sum_i w_i value_i| / sum_i w_i, the sums over the examples of a bin."""
    for kind in KINDS:
        chosen = groupings_of(c, kind)
        if not chosen:
            continue
        matrices = [
            [_bin_matrix(c, g, value[:, m], bins[:, m], n_bins) for g in chosen]
            for m in range(value.shape[1])
        ]
        ones, one_bin = np.ones(len(value)), np.zeros(len(value), dtype=np.intp)
        totals = [_bin_matrix(c, g, ones, one_bin, 1) for g in chosen]

        def gaps(
            weights: list[Floats],  # per member's data, (R, cells)
            matrices: list[list[csr_array]] = matrices,
            totals: list[csr_array] = totals,
        ) -> Floats:
            """(R, rows): members' data weighted and pooled, as one model."""
            parts = []
            used = [(m, w) for m, w in zip(matrices, weights, strict=True) if w.any()]
            for k, total in enumerate(totals):
                summed = sum(m[k] @ w.T for m, w in used)
                size = sum(total @ w.T for _, w in used)
                slices = total.shape[0]
                absolute = np.abs(summed).reshape(slices, n_bins, -1).sum(axis=1)
                with np.errstate(invalid="ignore", divide="ignore"):
                    parts.append((absolute / size).T)
            return np.concatenate(parts, axis=1)

        slots = join_slots([slots_of(c, g, kind) for g in chosen], kind)
        n = np.concatenate([sizes(c, g) for g in chosen])
        quantity = Quantity(name, slots, n, None)
        found = _replicated(c, f"{name} {kind}", gaps, c.options.n_boot)
        yield family_block(c, [(quantity, found)])


def _bin_matrix(
    c: Comparison, grouping: Grouping, value: Floats, bins: NDArray[np.intp], n_bins: int
) -> csr_array:
    from scipy.sparse import coo_array

    row = grouping.code.astype(np.int64) * n_bins + bins
    shape = (len(grouping.levels) * n_bins, len(value))
    return coo_array((value, (row, np.arange(len(value)))), shape=shape).tocsr()


def _auc_rows(c: Comparison, problems: list[tuple[Floats, Floats]]) -> Iterator[Block]:
    """AUC of each one-vs-rest problem (score, outcome), averaged over the problems."""
    evaluations = len(problems) * (1 + len(c.groupings)) * len(c.cube.members) * 3
    room = AUC_BUDGET // max(1, c.cube.n_cells * evaluations)
    n_draws = min(c.options.n_boot, max(FEWEST_AUC_REPLICATES, room))
    for kind in KINDS:
        chosen = groupings_of(c, kind)
        if not chosen:
            continue

        def mean_auc(
            weights: list[Floats], chosen: list[Grouping] = chosen
        ) -> Floats:
            parts = []
            for grouping in chosen:
                found = 0.0
                for score, outcome in problems:
                    used = [m for m, w in enumerate(weights) if w.any()]
                    column = _column(score, outcome, grouping, used)
                    found = found + auc(column, np.concatenate([weights[m] for m in used], axis=1))
                parts.append(found / len(problems))
            return np.concatenate(parts, axis=1)

        slots = join_slots([slots_of(c, g, kind) for g in chosen], kind)
        n = np.concatenate([sizes(c, g) for g in chosen])
        found = _replicated(c, f"auc {kind}", mean_auc, n_draws)
        yield family_block(c, [(Quantity("auc", slots, n, None), found)])


def _column(
    score: Floats, outcome: Floats, grouping: Grouping, members: list[int]
) -> ScoreColumn:
    """The data of the named members one below the other."""
    return ScoreColumn(
        score=np.concatenate([score[:, m] for m in members]),
        outcome=np.concatenate([outcome[:, m] for m in members]),
        slice=np.tile(grouping.code.astype(np.intp), len(members)),
        n_slices=len(grouping.levels),
    )


def _replicated(
    c: Comparison,
    purpose: str,
    function: Callable[[list[Floats]], Floats],
    n_draws: int,
) -> Replicated:
    """Observed values, bootstrap replicates and swap null of a function of weighted scores.

    `function` takes for every member the weights (R, cells) of its data and returns (R, rows).
    """
    cube = c.cube
    members = range(len(cube.members))
    weight = np.ones(cube.n_cells) if cube.weight is None else cube.weight
    if cube.unit is None:
        multiplicity = cube.count
    else:
        multiplicity = np.ones(len(cube.unit_names), dtype=np.int64)
    total, shares = int(multiplicity.sum()), multiplicity / multiplicity.sum()

    def cells(items: NDArray[np.integer]) -> Floats:
        """Weights of the cells (R, cells) from how often items are taken."""
        if cube.unit is None:
            return items * weight
        return items[:, cube.unit] * (cube.count * weight)

    def alone(member: int, drawn: Floats) -> Floats:
        nothing = np.zeros_like(drawn)
        return function([drawn if m == member else nothing for m in members])

    def sides(drawn: Floats) -> Values:
        k = c.n_baseline
        per_member = [alone(m, drawn) for m in members]
        return Values(np.mean(per_member[:k], axis=0), np.mean(per_member[k:], axis=0))

    def bootstrap(rng: np.random.Generator, size: int) -> Values:
        return sides(cells(rng.multinomial(total, shares, size=size)))

    def swap(rng: np.random.Generator, size: int) -> Values:
        moved = rng.binomial(multiplicity, 0.5, size=(size, len(multiplicity)))
        stays = multiplicity - moved
        return Values(
            function([cells(stays), cells(moved)]), function([cells(moved), cells(stays)])
        )

    observed = sides(cells(multiplicity[None, :]))
    boot = _in_blocks(c, purpose + " bootstrap", bootstrap, n_draws)
    null = _in_blocks(c, purpose + " swap", swap, n_draws) if c.one_pair else None
    return Replicated(observed, boot, null)


def _in_blocks(
    c: Comparison,
    purpose: str,
    draw: Callable[[np.random.Generator, int], Values],
    n_draws: int,
) -> Values:
    made: dict[int, Values] = {}

    def work(generators: list[np.random.Generator], sizes: list[int], start: int) -> None:
        for rng, size in zip(generators, sizes, strict=True):
            made[start] = draw(rng, size)
            start += size

    in_batches(c.rng(purpose), n_draws, c.cube.n_cells, work)
    in_order = [made[start] for start in sorted(made)]
    baseline = [v.baseline for v in in_order if v.baseline is not None]
    return Values(np.concatenate(baseline), np.concatenate([v.compressed for v in in_order]))
