"""How harm is spread: worst shift, standardised excess, heterogeneity, concentration, impact."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from fairweight import metrics
from fairweight.auditing.counts.counts import Counts
from fairweight.auditing.metrics import gaps, harm, metric
from fairweight.auditing.metrics.arrays import count_arrays
from fairweight.auditing.metrics.gaps import ppv_ratios, worst_level
from fairweight.auditing.metrics.harm import class_impact


def levels(correct: list[list[float]], n: float = 100) -> Counts:
    """Levels x classes, `n` examples in each cell."""
    right = np.array(correct)
    label = np.full(right.shape, n)
    return Counts(label, label, right, np.zeros(len(right)), ("a", "b"), None)


def test_worst_group_shift_names_its_level() -> None:
    base, after = levels([[90, 90], [80, 80]]), levels([[88, 90], [80, 70]])
    # shifts: -2/200 and -10/200
    assert harm.worst_group_shift(base, after) == pytest.approx(-0.05)
    entry = metric("worst_group_shift")
    assert entry.level is not None
    assert entry.level(base, after) == 1


def test_worst_group_names_its_level_whatever_the_order() -> None:
    counts = levels([[90, 90], [80, 70], [85, 85]])
    assert gaps.worst_group(counts) == pytest.approx(0.75)
    assert worst_level(counts) == 1
    assert worst_level(levels([[80, 70], [90, 90]])) == 0
    assert worst_level(levels([[80, 70]])) == -1


def test_standardised_excess_undoes_simpson() -> None:
    """Every b is lost more often than every a, in both groups alike; one group has more b's."""
    label = np.array([[900.0, 100.0], [100.0, 900.0]])
    lost = np.array([[0.01, 0.2]])
    base = Counts(label, label, label, np.zeros(2), ("a", "b"))
    after = Counts(label, label, label * (1 - lost), np.zeros(2), ("a", "b"))
    shift = (after.correct.sum(1) - base.correct.sum(1)) / label.sum(1)
    assert shift[1] - shift[0] == pytest.approx(-0.152)  # the plain excess blames the group
    np.testing.assert_allclose(harm.excess_shift_standardised(base, after), 0, atol=1e-12)


def test_standardised_excess_by_hand() -> None:
    base, after = levels([[90, 90], [80, 80]]), levels([[88, 90], [80, 70]])
    # label a: -2/100 against 0; label b: 0 against -10/100
    expected = (-0.02 + 0.10) / 2
    np.testing.assert_allclose(harm.excess_shift_standardised(base, after), [expected, -expected])


def test_labels_on_one_side_only_are_left_out_of_the_standardised_excess() -> None:
    label = np.array([[10.0, 0.0], [10.0, 10.0]])
    base = Counts(label, label, label, np.zeros(2), ("a", "b"))
    after = Counts(label, label, np.array([[5.0, 0.0], [10.0, 0.0]]), np.zeros(2), ("a", "b"))
    np.testing.assert_allclose(harm.excess_shift_standardised(base, after), [-0.5, 0.5])
    apart = np.array([[10.0, 0.0], [0.0, 10.0]])
    base = Counts(apart, apart, apart, np.zeros(2), ("a", "b"))
    assert np.isnan(harm.excess_shift_standardised(base, base)).all()


def test_heterogeneity_and_concentration() -> None:
    assert harm.heterogeneity(np.array([0.3173105, 0.8])) == pytest.approx(1, abs=1e-6)
    assert np.isnan(harm.heterogeneity(np.array([np.nan, np.nan])))
    assert harm.heterogeneity_within_classes(np.array([-3.0, 2.0, np.nan])) == 3.0
    assert np.isnan(harm.heterogeneity_within_classes(np.zeros(0)))
    assert harm.concentration(np.array([[3.0, 1.0]])).tolist() == [[0.75, 0.25]]
    assert np.isnan(harm.concentration(np.zeros(2))).all()


def test_concentration_of_rows() -> None:
    label, before, after = [0, 1, 1, 1], [0, 1, 1, 1], [1, 0, 0, 1]
    shares = metrics.concentration(label, before, after, sensitive_features=["f", "f", "m", "m"])
    assert shares.to_dict() == pytest.approx({"f": 2 / 3, "m": 1 / 3})


@pytest.mark.parametrize("sizes", [(5, 5), (3, 8), (2, 2)])
def test_class_impact_is_welchs_test(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(sizes[0])
    recalls = [rng.random((k, 4)) for k in sizes]
    accuracies = [rng.random(k) for k in sizes]
    impact = class_impact(recalls[0], accuracies[0], recalls[1], accuracies[1])
    oracle = scipy.stats.ttest_ind(
        recalls[1] - accuracies[1].mean(), recalls[0] - accuracies[0].mean(), equal_var=False
    )
    np.testing.assert_allclose(impact.statistic, oracle.statistic, rtol=1e-10)
    np.testing.assert_allclose(impact.p_value, oracle.pvalue, rtol=1e-10)
    np.testing.assert_allclose(impact.degrees_of_freedom, oracle.df, rtol=1e-10)


def test_class_impact_without_variation_is_undefined() -> None:
    same = np.full((3, 1), 0.9)
    impact = class_impact(same, same[:, 0], same - 0.1, same[:, 0])
    assert impact.difference[0] == pytest.approx(-0.1)
    assert np.isnan(impact.p_value).all()
    one = class_impact(np.array([[0.9]]), np.array([0.9]), np.array([[0.8], [0.7]]), np.ones(2))
    assert np.isnan(one.p_value).all()


def test_ppv_ratios_by_hand() -> None:
    label = [1, 0, 1, 1, 0, 1]
    pred = [1, 1, 1, 1, 1, 0]
    group = ["a", "a", "b", "b", "c", "c"]
    counts = count_arrays(label, pred, sensitive_features=group)  # PPV 1/2, 2/2, 0/1
    np.testing.assert_allclose(ppv_ratios(counts), [0.5, 1, 0])
    never = count_arrays(label, [0, 0, 1, 1, 1, 0], sensitive_features=group)
    assert np.isnan(ppv_ratios(never)).all()  # "a" is never selected: it could be the highest
