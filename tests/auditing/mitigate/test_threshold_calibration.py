"""Thresholds: the k-th largest score, strictly above it; and never judged where it was fitted."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fairweight.auditing.answers import Answers, from_arrays
from fairweight.auditing.mitigate.offsets import fit_offsets, with_offsets
from fairweight.auditing.mitigate.rows_seen import RowsSeen, refuse_overlap, rows_seen
from fairweight.auditing.mitigate.some_rows import some_rows, two_parts
from fairweight.auditing.mitigate.thresholds import (
    Thresholds,
    apply_thresholds,
    fit_thresholds,
    kth_largest,
    smoothed,
)
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
    other = replace(pair(50), task="hat")
    with pytest.raises(InputError, match="No threshold was fitted for 'small'"):
        apply_thresholds(fit_thresholds([pair(50)], ["small"]), other, "small")


# --- rows apart ----------------------------------------------------------------------------------


def test_the_same_rows_are_refused_by_example_and_by_cluster() -> None:
    fitted = rows_seen([pair(40, clusters=True)])
    refuse_overlap(fitted, rows_seen([pair(40, first=1000, clusters=True)]), "The thresholds")
    with pytest.raises(InputError, match="10 examples are in both"):
        refuse_overlap(fitted, rows_seen([pair(40, first=30)]), "The thresholds")
    renamed = replace(pair(40, clusters=True), example_id=np.arange(500, 540))
    with pytest.raises(InputError, match="10 clusters are in both"):
        refuse_overlap(fitted, rows_seen([renamed]), "The thresholds")


def test_one_and_its_text_are_one_example_and_digests_keep_them() -> None:
    numbers = rows_seen([few([1, 0], [0.9, 0.1])])
    texts = rows_seen([replace(few([1, 0], [0.9, 0.1]), example_id=np.array(["0", "7"]))])
    assert len(numbers.examples & texts.examples) == 1
    assert RowsSeen.from_json(numbers.as_json()) == numbers


def test_two_parts_share_no_cluster_and_lose_nobody() -> None:
    answers = pair(202, clusters=True)
    first, second = two_parts([answers], 0)
    held = [set(part[0].example_id.tolist()) for part in (first, second)]
    assert held[0] | held[1] == set(range(202))
    refuse_overlap(rows_seen(first), rows_seen(second), "The thresholds")
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


@pytest.mark.parametrize("smooth", [False, True])
def test_offsets_make_classes_as_frequent_as_they_are(smooth: bool) -> None:
    label, chance = many()
    wanted = np.bincount(label, minlength=4)
    before = np.abs(np.bincount(chance.argmax(1), minlength=4) - wanted).sum()
    answer, score = with_offsets(chance, fit_offsets(chance, label, smooth=smooth))
    after = np.abs(np.bincount(answer, minlength=4) - wanted).sum()
    if smooth:
        offsets = fit_offsets(chance, label, smooth=True)
        shares = np.exp(np.log(chance.astype(float)) + offsets)
        shares /= shares.sum(1, keepdims=True)
        assert shares.sum(0) == pytest.approx(wanted, rel=1e-6)
    else:
        assert after <= 2 < before / 4
    assert after < before
    assert (score == chance[np.arange(len(label)), answer]).all()


def test_several_classes_are_calibrated_by_offsets() -> None:
    label, chance = many()
    made = from_arrays(label, {"dense": chance.argmax(1), "small": chance.argmax(1)})
    made = replace(made, scores=np.stack([chance, chance]), score_classes=made.classes)
    rule = fit_thresholds([made], ["small"])
    assert set(rule.members[0].offsets) == {"0", "1", "2", "3"}
    found = apply_thresholds(rule, made, "small")
    numbers = np.bincount(found.prediction[0], minlength=4)
    assert np.abs(numbers - np.bincount(label, minlength=4)).max() <= 1
