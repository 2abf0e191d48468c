"""Risk scores of the dense model alone, and how well they find exemplars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fairweight.auditing.exemplars.risk import (
    DISAGREEMENT,
    ENTROPY,
    LOW_CONFIDENCE,
    risk,
    risk_scores,
)
from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.auditing.schema import column_names

SMALL = ("small", "modal", None)


def binary(score: dict[str, list[float]] | None = None) -> Answers:
    label = np.array([0, 1, 1, 0])
    dense = np.array([[0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 0]])
    return from_arrays(label, {"dense": dense, "small": label}, score=score)


def test_disagreement_by_hand() -> None:
    assert risk_scores(binary())[DISAGREEMENT] == pytest.approx([0, 1 / 3, 0, 1 / 3])


def test_auc_with_ties_by_hand() -> None:
    """Exemplars are 1 and 2, at 1/3 and 0; others at 0 and 1/3: (½ + 1 + 0 + ½) / 4 = ½."""
    frame = risk(binary(), {SMALL: np.array([False, True, True, False])}, fewest=1)
    assert tuple(frame.columns) == column_names("risk")
    (found,) = frame.to_dict("records")
    assert found["auc"] == pytest.approx(0.5)
    assert (found["n"], found["n_exemplars"], found["status"]) == (4, 2, "ok")
    assert found["auc_low"] < 0.5 < found["auc_high"]


def test_confidence_of_two_classes_is_that_of_the_likelier() -> None:
    one = from_arrays(
        [0, 1, 1], {"dense": [0, 1, 1], "small": [0, 1, 1]},
        score={"dense": [0.1, 0.6, 0.95], "small": [0.1, 0.6, 0.95]},
    )  # fmt: skip
    assert list(risk_scores(one)) == [LOW_CONFIDENCE]
    assert risk_scores(one)[LOW_CONFIDENCE] == pytest.approx([0.1, 0.4, 0.05], abs=1e-6)


def test_entropy_needs_all_probabilities_of_more_than_two_classes() -> None:
    label = [0, 1, 2]
    answers = from_arrays(label, {"dense": label, "small": label})
    vectors = np.array([[[1, 0, 0], [1 / 3] * 3, [0, 0.5, 0.5]]], dtype=np.float32)
    answers = replace(answers, scores=np.concatenate([vectors] * 2), score_classes=("0", "1", "2"))
    found = risk_scores(answers)
    assert found[ENTROPY] == pytest.approx([0, 1, np.log(2) / np.log(3)], abs=1e-6)
    assert found[LOW_CONFIDENCE] == pytest.approx([0, 2 / 3, 0.5], abs=1e-6)


def test_one_member_and_no_scores_cannot_tell() -> None:
    answers = from_arrays([0, 1], {"dense": [0, 1], "small": [1, 1]})
    (found,) = risk(answers, {SMALL: np.array([True, False])}, fewest=1).to_dict("records")
    assert found["status"] == "cannot tell: one dense member and no scores"
    assert np.isnan(found["auc"])


def test_no_exemplars_and_nothing_else() -> None:
    for mask, told in ((np.zeros(4, bool), "no exemplars"), (np.ones(4, bool), "every example")):
        (found,) = risk(binary(), {SMALL: mask}, fewest=1).to_dict("records")
        assert told in found["status"]


def test_perfectly_apart_has_no_interval() -> None:
    (found,) = risk(binary(), {SMALL: np.array([False, True, False, True])}, fewest=1).to_dict(
        "records"
    )
    assert found["auc"] == 1
    assert found["status"] == "no interval: perfectly apart"
    assert np.isnan(found["auc_low"])


def test_auc_equals_scikit_learn_where_scores_are_missing() -> None:
    rng = np.random.default_rng(0)
    n = 200
    label = rng.integers(0, 2, n)
    score = rng.random((n, 1)).round(1)
    score[::9] = np.nan
    answers = from_arrays(
        label, {"dense": label[:, None], "small": label}, score={"dense": score, "small": score}
    )
    mask = rng.random(n) < 0.3
    (found,) = risk(answers, {SMALL: mask}, fewest=1).to_dict("records")
    known = ~np.isnan(score[:, 0])
    doubt = np.minimum(score, 1 - score)[known, 0]
    assert found["n"] == known.sum()
    assert found["auc"] == pytest.approx(roc_auc_score(mask[known], doubt.round(6)))


def test_no_auc_from_a_handful_of_exemplars() -> None:
    (found,) = risk(binary(), {SMALL: np.array([False, True, False, True])}).to_dict("records")
    assert found["status"] == "not_estimable: 2 exemplars, 20 are needed"
    assert np.isnan(found["auc"])
    assert found["n_exemplars"] == 2
