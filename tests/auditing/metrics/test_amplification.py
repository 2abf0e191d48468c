"""Bias amplification and threshold bias: sign, skip rules and values by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairweight import metrics
from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.metrics.amplification import (
    bias,
    bias_amplification,
    rarer_value,
    sides_of,
    tcb,
    worst_case,
)
from fairweight.errors import InputError


def labels(*levels: tuple[float, float], positive: int | None = 1) -> Counts:
    """Counts of labels only: (negatives, positives) of each level."""
    label = np.array(levels)
    zero = np.zeros_like(label)
    return Counts(label, zero, zero, zero[:, 0], ("0", "1"), positive)


def with_predictions(counts: Counts, positives: list[float]) -> Counts:
    predicted = np.stack([counts.n - positives, np.array(positives)], axis=-1)
    return replace(counts, predicted=predicted)


TEST = labels((60, 40), (80, 20))


def test_the_sign_comes_from_training() -> None:
    train = labels((90, 10), (70, 30))  # 10 % against 30 %: toward the second level
    sides = sides_of(TEST, train)
    assert sides.toward.tolist() == [False, True]
    assert sides.from_training
    # labels: 20 of 60 positives on that side; predictions: 30 of 60
    values = bias_amplification(with_predictions(TEST, [30, 30]), sides)
    np.testing.assert_allclose(values, [30 / 60 - 20 / 60] * 2)
    np.testing.assert_allclose(bias(with_predictions(TEST, [30, 30]), sides), [0.5, 0.5])


def test_without_training_data_the_test_labels_decide_and_it_is_said() -> None:
    sides = sides_of(TEST, None)
    assert sides.toward.tolist() == [True, False]
    assert not sides.from_training
    values = bias_amplification(with_predictions(TEST, [45, 15]), sides)
    np.testing.assert_allclose(values, [45 / 60 - 40 / 60] * 2)


@pytest.mark.parametrize(
    ("test", "train", "reason"),
    [
        (labels((60, 9), (80, 20)), None, "fewer than 10 positive examples in the level"),
        (labels((60, 40), (80, 9)), None, "fewer than 10 positive examples in the rest"),
        # .30 against .32: |difference| / lower = .067 < .1
        (TEST, labels((70, 30), (68, 32)), "within 10 % of each other in the training data"),
        (TEST, labels((70, 0), (68, 0)), "within 10 % of each other in the training data"),
        (labels((70, 30), (69, 31)), None, "within 10 % of each other in the test labels"),
        (TEST, labels((0, 0), (68, 32)), "absent from the training data"),
        (labels((60, 40), (80, 20), positive=None), None, "no positive class"),
    ],
)
def test_skip_rules(test: Counts, train: Counts | None, reason: str) -> None:
    sides = sides_of(test, train)
    assert not sides.estimable[0]
    assert reason in sides.reason[0]
    assert np.isnan(bias_amplification(with_predictions(test, [10, 10]), sides)[0])


def test_ten_positives_and_ten_percent_are_enough() -> None:
    # exactly 10 positives on both sides; rates .2 against .25: |.05| / .2 = .25
    assert sides_of(labels((40, 10), (30, 10)), None).estimable.all()
    # .50 against .55: relative difference exactly .1 is not less than .1
    assert sides_of(TEST, labels((500, 500), (450, 550))).estimable.all()


def test_no_positives_on_one_side_counts_as_biased() -> None:
    sides = sides_of(TEST, labels((100, 0), (95, 5)))
    assert sides.estimable.all()
    assert sides.toward.tolist() == [False, True]


def test_several_levels_are_one_against_the_rest() -> None:
    test = labels((50, 50), (70, 30), (80, 20))
    sides = sides_of(test, None)
    # .5 against 50/200; .3 against 70/200; .2 against 80/200
    assert sides.toward.tolist() == [True, False, False]
    values = bias(with_predictions(test, [60, 30, 10]), sides)
    np.testing.assert_allclose(values, [60 / 100, (60 + 10) / 100, (60 + 30) / 100])


def test_backdoor_has_a_fixed_side_and_no_filters() -> None:
    test = labels((50, 5), (50, 5))  # balanced and small: nothing to see without the fixed side
    assert not sides_of(test, None).estimable.any()
    sides = sides_of(test, None, filters=False, fixed_side=1)
    assert sides.toward.tolist() == [False, True]
    np.testing.assert_allclose(
        bias_amplification(with_predictions(test, [2, 8]), sides), [0.8 - 0.5] * 2
    )
    three = labels((50, 5), (50, 5), (50, 5))
    assert sides_of(three, None, filters=False, fixed_side=1).estimable.tolist() == [
        False,
        True,
        False,
    ]


def test_no_positive_predictions_is_undefined() -> None:
    values = bias_amplification(with_predictions(TEST, [0, 0]), sides_of(TEST, None))
    assert np.isnan(values).all()


def test_sides_are_held_in_replicates() -> None:
    sides = sides_of(TEST, None)
    swapped = with_predictions(labels((80, 20), (60, 40)), [20, 40])
    both = replace(
        swapped,
        label=np.stack([TEST.label, swapped.label]),
        predicted=np.stack([with_predictions(TEST, [40, 20]).predicted, swapped.predicted]),
    )
    np.testing.assert_allclose(bias(both, sides), [[40 / 60] * 2, [20 / 60] * 2])


def test_worst_case_is_the_signed_maximum() -> None:
    sides = sides_of(labels((60, 40), (80, 20), (90, 30)), None)
    assert worst_case(np.array([-0.3, -0.1, -0.2]), sides) == -0.1
    none = replace(sides, estimable=np.zeros(3, dtype=bool))
    assert np.isnan(worst_case(np.array([0.1, 0.2, 0.3]), none))


def test_tcb_and_its_rarer_value() -> None:
    counts = with_predictions(labels((70, 30)), [15])
    assert rarer_value(counts) == (1, False)
    np.testing.assert_allclose(tcb(counts, 1), [15 / 30])
    # training mean above one half: value 0 is the rarer, whatever the test labels say
    assert rarer_value(labels((30, 70))) == (0, False)
    np.testing.assert_allclose(tcb(counts, 0), [85 / 70])
    # a mean of exactly one half: value 1
    assert rarer_value(labels((50, 50))) == (1, True)
    assert rarer_value(labels((50, 50), positive=0)) == (0, True)
    assert np.isnan(tcb(with_predictions(labels((70, 0)), [15]), 1)).all()
    with pytest.raises(InputError, match="3 classes"):
        rarer_value(Counts(np.ones(3), np.ones(3), np.ones(3), np.array(0.0), ("a", "b", "c")))


def test_the_public_functions_match_training_data_by_name() -> None:
    """Training levels and classes come in another order and with one more level."""
    y_true = [1] * 40 + [0] * 60 + [1] * 20 + [0] * 80
    y_pred = [1] * 30 + [0] * 70 + [1] * 30 + [0] * 70
    sex = ["f"] * 100 + ["m"] * 100
    y_train = [0] * 70 + [1] * 30 + [0] * 90 + [1] * 10 + [1] * 5
    train_sex = ["m"] * 100 + ["f"] * 100 + ["x"] * 5
    train = {"y_train": y_train, "train_sensitive_features": train_sex}
    ours = metrics.bias_amplification(y_true, y_pred, sensitive_features=sex, **train)
    assert ours.to_dict() == pytest.approx({"f": 30 / 60 - 20 / 60, "m": 30 / 60 - 20 / 60})
    worst = metrics.worst_case_bias_amplification(y_true, y_pred, sensitive_features=sex, **train)
    assert worst == pytest.approx(1 / 6)
    fixed = metrics.bias(y_true, y_pred, sensitive_features=sex, fixed_side="f", filters=False)
    assert fixed.to_dict() == pytest.approx({"f": 0.5, "m": 0.5})
    assert metrics.tcb(y_true, y_pred, y_train=[1, 1, 0]) == pytest.approx(140 / 140)
    with pytest.raises(InputError, match="belong together"):
        metrics.bias(y_true, y_pred, sensitive_features=sex, y_train=y_train)
    with pytest.raises(InputError, match="fixed_side='q'"):
        metrics.bias(y_true, y_pred, sensitive_features=sex, fixed_side="q")
