"""Thresholds: the k-th largest score, strictly above it; and never judged where it was fitted."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fairweight.auditing.mitigate.mitigation import refuse_overlap, rows_seen, some_rows, two_parts
from fairweight.auditing.mitigate.thresholds import (
    Thresholds,
    apply_thresholds,
    fit_offsets,
    fit_thresholds,
    kth_largest,
    left_alone,
    smoothed,
    with_offsets,
)
from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.errors import InputError

from .made_pairs import pair


def few(label: list[int], score: list[float], first: int = 0) -> Answers:
    answer = [int(s > 0.5) for s in score]
    return from_arrays(
        label,
        {"dense": answer, "small": answer},
        score={"dense": score, "small": score},
        ids=list(range(first, first + len(label))),
    )


def test_the_kth_largest_score_by_hand() -> None:
    """Three positives: the third largest of .9 .7 .6 .4 .2 is .6, and two lie above it."""
    answers = few([1, 0, 1, 0, 1], [0.9, 0.2, 0.7, 0.4, 0.6])
    rule = fit_thresholds([answers], ["small"])
    (member,) = rule.members
    assert member.threshold == float(np.float32(0.6))
    assert (member.n, member.n_positive, member.positive) == (5, 3, "1")
    applied = apply_thresholds(rule, answers, "small")
    assert applied.name == "small+thresholds"
    assert applied.prediction.tolist() == [[1, 0, 1, 0, 0]]  # k − 1 = 2 positives: strictly above


def test_it_is_what_the_papers_code_does() -> None:
    """sorted(scores)[-k], then score > threshold, on random scores without ties."""
    answers = pair(300)
    rule = fit_thresholds([answers], ["small"])
    score = answers.score[1]
    k = int((answers.label == 1).sum())
    assert rule.members[0].threshold == float(np.sort(score)[-k])
    found = apply_thresholds(rule, answers, "small").prediction[0]
    assert int((found == 1).sum()) == k - 1
    assert (found == (score > np.sort(score)[-k])).all()


def test_ties_are_not_above_their_own_value() -> None:
    assert kth_largest(np.array([0.9, 0.5, 0.5, 0.5], np.float32), 2) == 0.5
    answers = few([1, 1, 0, 0], [0.9, 0.5, 0.5, 0.5])
    applied = apply_thresholds(fit_thresholds([answers], ["small"]), answers, "small")
    assert applied.prediction.tolist() == [[1, 0, 0, 0]]


def test_groups_do_not_matter() -> None:
    answers = pair(200)
    swapped = replace(answers, columns=())
    assert fit_thresholds([answers], ["small"]) == fit_thresholds([swapped], ["small"])


def test_the_smoothed_threshold_is_near_and_steadier() -> None:
    rng = np.random.default_rng(3)
    draws = [rng.beta(2, 3, 60).astype(np.float32) for _ in range(300)]
    plain = [kth_largest(d, 20) for d in draws]
    steady = [smoothed(d, 20) for d in draws]
    assert np.std(steady) < np.std(plain)
    assert np.mean(steady) == pytest.approx(np.mean(plain), abs=0.01)


def test_a_rule_is_the_same_after_json() -> None:
    rule = fit_thresholds([pair(100, clusters=True)], ["small"], smooth=True)
    again = Thresholds.from_json(json.loads(json.dumps(rule.as_json(), allow_nan=False)))
    assert again == rule


def test_labels_that_are_all_alike_leave_answers_as_they_are() -> None:
    alike = few([0, 0, 0], [0.9, 0.2, 0.7])
    rule = fit_thresholds([alike], ["small"])
    assert rule.members[0].status.startswith("not_estimable")
    judged = few([1, 0, 1], [0.9, 0.2, 0.3], first=10)
    assert (apply_thresholds(rule, judged, "small").prediction == judged.of("small")).all()


def test_bad_input_says_what_to_do() -> None:
    bare = replace(pair(50), score=None)
    with pytest.raises(InputError, match="Scores of 'small' are missing"):
        fit_thresholds([bare], ["small"])
    with pytest.raises(InputError, match="no validation rows"):
        fit_thresholds([], ["small"])
    holes = pair(50)
    score = holes.score.copy()
    score[1, :3] = np.nan
    with pytest.raises(InputError, match="3 of 50 examples have no score of 'small'"):
        fit_thresholds([replace(holes, score=score)], ["small"])
    vectors = np.full((*bare.prediction.shape, 2), 0.5, dtype=np.float32)
    strange = replace(bare, scores=vectors, score_classes=("x", "y"))
    with pytest.raises(InputError, match="no entry for the class '1'"):
        fit_thresholds([strange], ["small"])
    other = replace(pair(50), task="hat")
    with pytest.raises(InputError, match="No threshold was fitted for 'small'"):
        apply_thresholds(fit_thresholds([pair(50)], ["small"]), other, "small")


# --- rows apart ----------------------------------------------------------------------------------


def test_two_parts_share_no_cluster_and_lose_nobody() -> None:
    answers = pair(202, clusters=True)
    first, second = two_parts([answers], 0)
    held = [set(part[0].example_id.tolist()) for part in (first, second)]
    assert held[0] | held[1] == set(range(202))
    assert refuse_overlap(rows_seen(first), rows_seen(second), "Wrong") == []
    assert abs(len(held[0]) - len(held[1])) <= 8
    with pytest.raises(InputError, match="one cluster only"):
        two_parts([some_rows(answers, answers.cluster == 0)], 0)


# --- more than two classes -----------------------------------------------------------------------


def many(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    label = rng.choice(4, n, p=[0.5, 0.3, 0.15, 0.05])
    logits = rng.normal(size=(n, 4)) + 1.2 * np.eye(4)[label] - np.array([0, 0.5, 1.0, 1.5])
    chance = np.exp(logits)
    return label.astype(np.uint8), (chance / chance.sum(1, keepdims=True)).astype(np.float32)


def off(answer: np.ndarray, label: np.ndarray) -> np.ndarray:
    """How far numbers of answers are from those of labels, in standard deviations of the latter."""
    wanted = np.bincount(label, minlength=4)
    deviation = np.sqrt(wanted * (1 - wanted / len(label)))
    return np.abs(np.bincount(answer, minlength=4) - wanted) / deviation


@pytest.mark.parametrize(("smooth", "most"), [(False, 0.2), (True, 0.5)])
def test_offsets_make_classes_as_frequent_as_they_are(smooth: bool, most: float) -> None:
    """A smoothed quantile differs from the plain one by less than chance moves either."""
    label, chance = many()
    answer, score = with_offsets(chance, fit_offsets(chance, label, smooth=smooth))
    assert off(chance.argmax(1), label).max() > 4
    assert off(answer, label).max() < most
    assert (score == chance[np.arange(len(label)), answer]).all()


def test_smoothed_offsets_are_steadier_and_as_good_on_other_rows() -> None:
    other_label, other = many(20_000, seed=99)
    offsets: dict[bool, list[np.ndarray]] = {False: [], True: []}
    for seed in range(60):
        label, chance = many(150, seed)
        if np.unique(label).size == 4:
            for smooth, found in offsets.items():
                found.append(fit_offsets(chance, label, smooth=smooth))
    assert len(offsets[True]) > 50
    spread = {smooth: np.std(found, axis=0) for smooth, found in offsets.items()}
    assert spread[True].sum() < spread[False].sum()
    rare = {
        smooth: np.mean([(with_offsets(other, o)[0] == 3).mean() for o in found])
        for smooth, found in offsets.items()
    }
    assert rare[True] == pytest.approx((other_label == 3).mean(), abs=0.01)
    assert rare[True] == pytest.approx(rare[False], abs=0.01)


def test_with_two_classes_smoothed_offsets_are_the_smoothed_threshold() -> None:
    rng = np.random.default_rng(5)
    positive = rng.beta(2, 3, 80).astype(np.float32)
    chance = np.stack([1 - positive, positive], axis=1)
    label = (np.arange(80) < 30).astype(np.uint8)
    first, second = fit_offsets(chance, label, smooth=True)
    # Positive where log p + b > log (1 − p) + a: where p exceeds 1 / (1 + e^(b − a)).
    assert 1 / (1 + np.exp(second - first)) == pytest.approx(smoothed(positive, 30), abs=1e-4)


def test_several_classes_are_calibrated_by_offsets() -> None:
    label, chance = many()
    made = from_arrays(label, {"dense": chance.argmax(1), "small": chance.argmax(1)})
    made = replace(made, scores=np.stack([chance, chance]), score_classes=made.classes)
    rule = fit_thresholds([made], ["small"])
    assert set(rule.members[0].offsets) == {"0", "1", "2", "3"}
    found = apply_thresholds(rule, made, "small")
    numbers = np.bincount(found.prediction[0], minlength=4)
    assert np.abs(numbers - np.bincount(label, minlength=4)).max() <= 1


def test_offsets_are_for_the_classes_that_they_were_fitted_on() -> None:
    def answers(label: np.ndarray, chance: np.ndarray) -> Answers:
        made = from_arrays(label, {"dense": chance.argmax(1), "small": chance.argmax(1)})
        names = ("0", "1", "2", "3")
        return replace(made, scores=np.stack([chance, chance]), score_classes=names)

    label, chance = many()
    rule = fit_thresholds([answers(label, chance)], ["small"])
    # Two labels only, but all four among the answers: the rule still says what to do.
    fewer = answers(np.minimum(label, 1), chance)
    assert (fewer.n_label_classes, len(fewer.classes)) == (2, 4)
    found = apply_thresholds(rule, fewer, "small").prediction[0]
    whole = apply_thresholds(rule, answers(label, chance), "small").prediction[0]
    assert (found == whole).all()
    assert (found != fewer.of("small")[0]).any()
    three = fit_thresholds([answers(np.minimum(label, 2), chance)], ["small"])
    with pytest.raises(InputError, match="no class '3'"):
        apply_thresholds(three, answers(label, chance), "small")
    sure = np.eye(4, dtype=np.float32)[np.minimum(label, 2)]
    with pytest.raises(InputError, match="'3' that is neither a label nor an answer"):
        apply_thresholds(rule, answers(np.minimum(label, 2), sure), "small")
    with pytest.raises(InputError, match="fitted on two classes, but these rows have 4"):
        apply_thresholds(fit_thresholds([fewer_binary()], ["small"]), answers(label, chance),
                         "small")  # fmt: skip


def fewer_binary() -> Answers:
    return few([1, 0, 1], [0.9, 0.2, 0.7])


def test_what_was_left_alone_is_told() -> None:
    alike = few([0, 0, 0], [0.9, 0.2, 0.7])
    rule = fit_thresholds([few([1, 0, 1], [0.9, 0.2, 0.7])], ["small"])
    assert left_alone(rule, [few([1, 0, 1], [0.9, 0.2, 0.7])]) == []
    assert "all labels of these rows are alike" in left_alone(rule, [alike])[0]
    assert "(seed 0)" in left_alone(fit_thresholds([alike], ["small"]), [])[0]
    assert (apply_thresholds(rule, alike, "small").prediction == alike.of("small")).all()
