"""Threshold calibration: predict each attribute as often as it is true, whoever has it.

Group-blind: groups are neither used nor needed. Iofinova et al. 2023, section 4.1 and their code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, expit, logit

from fairweight.auditing.mitigate.confidence import class_scores, in_task, positive_scores
from fairweight.auditing.mitigate.mitigation import NewVariant, RowsSeen, rows_seen
from fairweight.auditing.prediction_matrix import Answer, Answers
from fairweight.base.types import Floats
from fairweight.errors import InputError

# Harrell and Davis' quantile: a mean of all order statistics (Biometrika 69, 635–640, 1982).


def quantile_weights(n: int, share: float) -> Floats:
    """The weight of each of n sorted values in their quantile at a share between 0 and 1.

    >>> quantile_weights(4, 0.5).round(3).tolist()
    [0.127, 0.373, 0.373, 0.127]
    """
    edges = betainc((n + 1) * share, (n + 1) * (1 - share), np.arange(n + 1) / n)
    return np.asarray(np.diff(edges))


# Offsets of several classes, so that each is predicted as often as it is true.
#
# The answer is the class of the highest log-probability plus offset. With two classes this is a
# threshold, so offsets are what thresholds become with more of them.

LEAST = 1e-12  # a probability of 0 has no logarithm
ROUNDS = 100
CLOSE = 1e-6  # of a logit


def fit_offsets(probabilities: NDArray[np.float32], label: Answer, *, smooth: bool) -> Floats:
    """One offset per class, with mean 0.

    Parameters
    ----------
    probabilities
        (n, classes).
    label
        (n,) into them. Every class must occur.
    smooth
        Lean on many margins near the one in question instead of on two (Harrell and Davis'
        quantile): offsets move less with single examples.

    Notes
    -----
    Classes take turns. An example chooses a class whose offset exceeds its margin, by how much the
    others lead, so each class is given the quantile of its margins at which as many examples choose
    it as have its label. Plain, the best round is kept, because ties between turns need not end.
    Smoothed, rounds come nearer to each other: no offset moves more than the largest move before.
    """
    classes = probabilities.shape[1]
    logs = np.log(np.maximum(probabilities.astype(np.float64), LEAST))
    wanted = np.bincount(label, minlength=classes).astype(np.float64)
    return _smoothed(logs, wanted) if smooth else _counted(logs, wanted)


def with_offsets(
    probabilities: NDArray[np.float32], offsets: Floats
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The answers and the probability of each, (…, n) of probabilities (…, n, classes).

    >>> answer, score = with_offsets(np.array([[0.6, 0.3, 0.1]], np.float32), np.array([0, 1, 0.0]))
    >>> answer.tolist(), score.round(3).tolist()
    ([1], [0.30000001192092896])
    """
    logs = np.log(np.maximum(probabilities.astype(np.float64), LEAST))
    answer: NDArray[np.intp] = np.argmax(logs + offsets, axis=-1)
    score = np.take_along_axis(probabilities, answer[..., None], axis=-1)[..., 0]
    return answer, score


def _counted(logs: Floats, wanted: Floats) -> Floats:
    """Offsets with which every class is chosen as often as it is true; the best of many rounds."""
    n, classes = logs.shape
    offsets = np.zeros(classes)
    best, least = offsets, _distance(logs, offsets, wanted)
    for _ in range(ROUNDS):
        for c in range(classes):
            margin = _margins(logs, offsets, c)
            k = int(wanted[c])
            upper = margin[k] if k < n else margin[-1] + 2
            offsets[c] = (margin[k - 1] + upper) / 2
        offsets = offsets - offsets.mean()
        found = _distance(logs, offsets, wanted)
        if found < least:
            best, least = offsets.copy(), found
        if least == 0:
            break
    return np.asarray(best - best.mean())


def _distance(logs: Floats, offsets: Floats, wanted: Floats) -> float:
    """By how many answers the numbers of classes are off."""
    answer = np.argmax(logs + offsets, axis=1)
    return float(np.abs(np.bincount(answer, minlength=len(wanted)) - wanted).sum())


def _smoothed(logs: Floats, wanted: Floats) -> Floats:
    """Offsets that lean on many margins, until they no longer move."""
    n, classes = logs.shape
    weights = [quantile_weights(n, k / n) for k in wanted]
    offsets = np.zeros(classes)
    for _ in range(ROUNDS):
        before = offsets.copy()
        for c in range(classes):
            offsets[c] = weights[c] @ _margins(logs, offsets, c)
        offsets -= offsets.mean()
        if np.abs(offsets - before).max() < CLOSE:
            break
    return offsets


def _margins(logs: Floats, offsets: Floats, c: int) -> Floats:
    """By how much the best other class leads, in order; chosen where the offset is larger."""
    shifted = logs + offsets
    shifted[:, c] = -np.inf
    return np.asarray(np.sort(shifted.max(axis=1) - logs[:, c]))


KIND = "thresholds"
SUFFIX = "+thresholds"


@dataclass(frozen=True)
class MemberRule:
    """What was fitted for one member and task: a threshold, or an offset per class."""

    variant: str
    seed: str
    task: str | None
    n: int  # validation rows
    n_positive: int | None  # of two classes: k
    positive: str | None
    threshold: float | None  # of two classes; predict positive above it
    offsets: dict[str, float] = field(default_factory=dict)
    status: str = "ok"  # else nothing was fitted, and answers stay as they are


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of all members and tasks, and on which rows they were fitted."""

    smooth: bool
    members: tuple[MemberRule, ...]
    fitted_on: RowsSeen

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "kind": KIND,
            "smooth": self.smooth,
            "members": [dict(vars(member)) for member in self.members],
            "fitted_on": self.fitted_on.as_json(),
        }

    @classmethod
    def from_json(cls, held: dict[str, Any]) -> Thresholds:
        return cls(
            bool(held["smooth"]),
            tuple(MemberRule(**member) for member in held["members"]),
            RowsSeen.from_json(held["fitted_on"]),
        )


def kth_largest(scores: NDArray[np.float32], k: int) -> float:
    """The k-th largest score: predicting above it gives k − 1 positives (fewer with ties).

    >>> kth_largest(np.array([0.9, 0.2, 0.6, 0.4], np.float32), 2)
    0.6000000238418579
    """
    return float(np.partition(scores, len(scores) - k)[len(scores) - k])


def smoothed(scores: NDArray[np.float32], k: int) -> float:
    """A threshold that leans on many scores near the k-th largest, not on a single one.

    Harrell and Davis' quantile at 1 − k / n, of logits: a mean of all order statistics with the
    weights of a beta distribution. Needs 0 < k < n.
    """
    n = len(scores)
    limit = np.finfo(np.float32).eps
    ordered = logit(np.clip(np.sort(scores).astype(np.float64), limit, 1 - limit))
    return float(expit(quantile_weights(n, 1 - k / n) @ ordered))


def fit_thresholds(
    tasks: Sequence[Answers], variants: Sequence[str], *, smooth: bool = False
) -> Thresholds:
    """Fit every member of these variants on validation rows.

    Parameters
    ----------
    tasks
        Answers on the validation rows, one per task.
    smooth
        Harrell and Davis' quantile instead of the k-th largest score.
    """
    if not tasks or not tasks[0].n_examples:
        raise InputError("There are no validation rows; thresholds cannot be fitted without any.")
    fitted: list[MemberRule] = []
    for answers, variant in product(tasks, variants):
        seeds = [member.seed for member in answers.members[answers.rows(variant)]]
        n, task = answers.n_examples, answers.task
        if answers.n_label_classes < 2:
            status = "not_estimable: all validation labels are alike"
            fitted += [
                MemberRule(variant, seed, task, n, None, None, None, status=status)
                for seed in seeds
            ]
        elif answers.n_label_classes > 2:
            names = answers.classes[: answers.n_label_classes]
            vectors = class_scores(answers, variant, names)
            for seed, vector in zip(seeds, vectors, strict=True):
                found = fit_offsets(vector, answers.label, smooth=smooth).tolist()
                offsets = dict(zip(names, found, strict=True))
                fitted.append(MemberRule(variant, seed, task, n, None, None, None, offsets))
        else:
            scores = positive_scores(answers, variant)
            assert answers.positive is not None
            k = int(np.count_nonzero(answers.label == answers.positive))
            positive = answers.classes[answers.positive]
            find = smoothed if smooth else kth_largest
            fitted += [
                MemberRule(variant, seed, task, n, k, positive, find(score, k))
                for seed, score in zip(seeds, scores, strict=True)
            ]
    return Thresholds(smooth, tuple(fitted), rows_seen(tasks))


def apply_thresholds(rule: Thresholds, answers: Answers, variant: str) -> NewVariant:
    """The answers of a variant's members with their thresholds.

    Where nothing was fitted, or all labels of these rows are alike, answers stay as they are;
    `left_alone` says where.
    """
    known = {(m.variant, m.seed, m.task): m for m in rule.members}
    members = answers.members[answers.rows(variant)]
    fitted = []
    for member in members:
        own = known.get((member.variant, member.seed, answers.task))
        if own is None:
            where = "" if answers.task is None else f" and the task '{answers.task}'"
            raise InputError(
                f"No threshold was fitted for '{member.variant}' (seed {member.seed}){where}; fit "
                "on a validation table that has the same variants, seeds and tasks."
            )
        fitted.append(own)
    prediction = answers.of(variant).copy()
    if answers.n_label_classes < 2 or any(own.status != "ok" for own in fitted):
        held = None if answers.score is None else answers.score[answers.rows(variant)]
        return NewVariant(variant + SUFFIX, variant, prediction, held)
    if fitted[0].threshold is not None:
        if answers.n_label_classes > 2:
            raise InputError(
                "The thresholds were fitted on two classes, but these rows have "
                f"{answers.n_label_classes}; fit on validation rows with all of them."
            )
        score = positive_scores(answers, variant)
        positive = answers.positive
        assert positive is not None
        for row, own in enumerate(fitted):
            if own.positive != answers.classes[positive]:
                raise InputError(
                    f"The thresholds were fitted for the positive class '{own.positive}', here it "
                    f"is '{answers.classes[positive]}'; name the same one (--positive)."
                )
            above = score[row].astype(np.float64) > own.threshold
            prediction[row] = np.where(above, positive, 1 - positive)
        return NewVariant(variant + SUFFIX, variant, prediction, score)
    names = tuple(fitted[0].offsets)
    labels = answers.classes[: answers.n_label_classes]
    new = next((name for name in labels if name not in names), None)
    if new is not None:
        raise InputError(
            f"The offsets have no class '{new}'; they were fitted on rows without that label."
        )
    gone = next((name for name in names if name not in answers.classes), None)
    if gone is not None:
        raise InputError(
            f"The offsets have a class '{gone}' that is neither a label nor an answer in these "
            "rows; give rows with all classes."
        )
    places = np.array([answers.classes.index(name) for name in names], dtype=prediction.dtype)
    vectors = class_scores(answers, variant, names)
    score = np.empty(prediction.shape, dtype=np.float32)
    for row, own in enumerate(fitted):
        answer, score[row] = with_offsets(vectors[row], np.array(list(own.offsets.values())))
        prediction[row] = places[answer]
    return NewVariant(variant + SUFFIX, variant, prediction, score)


def left_alone(rule: Thresholds, tasks: Sequence[Answers]) -> list[str]:
    """A sentence for everything to which no threshold was applied."""
    told = [
        f"No threshold was fitted for {own.variant} (seed {own.seed}){in_task(own.task)}: "
        f"{own.status}."
        for own in rule.members
        if own.status != "ok"
    ]
    return told + [
        f"No threshold was applied{in_task(answers.task)}: all labels of these rows are alike, so "
        "nothing could be judged."
        for answers in tasks
        if answers.n_label_classes < 2
    ]
