"""Several members per variant: rates are means over members, CEV comes from mean rates.

Rows of scope `model` (what `row` looks up): these members are fixed. Scope `method`:
test_method_scope.py.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairweight as fw
from fairweight.auditing.intervals.proportion import tango

from ..strategies import row


def audit(label: Any, dense: Any, small: Any, **options: Any) -> fw.Audit:
    return fw.audit(label, {"dense": np.array(dense), "small": np.array(small)},
                    **{"n_boot": 50, **options})  # fmt: skip


# Twenty examples, ten per class; two dense and two small members.
#            right of class a     of class b
# dense 0          8                 10
# dense 1          6                  8
# small 0          7                  6
# small 1          5                  6
LABEL = ["a"] * 10 + ["b"] * 10


def answers(right_a: int, right_b: int) -> list[str]:
    """The first of each class are right, the last wrong."""
    return ["a"] * right_a + ["b"] * (10 - right_a) + ["b"] * right_b + ["a"] * (10 - right_b)


DENSE = np.array([answers(8, 10), answers(6, 8)]).T
SMALL = np.array([answers(7, 6), answers(5, 6)]).T
GROUPS = {"g": ["x", "y"] * 10}


@pytest.fixture(scope="module")
def population() -> fw.Audit:
    return audit(LABEL, DENSE, SMALL, sensitive_features=GROUPS, positive="a")


def test_rates_are_means_over_members(population: fw.Audit) -> None:
    found = row(population.results, "accuracy")
    assert found["baseline"] == pytest.approx((18 / 20 + 14 / 20) / 2, abs=1e-12)
    assert found["compressed"] == pytest.approx((13 / 20 + 11 / 20) / 2, abs=1e-12)
    assert found["shift"] == pytest.approx(12 / 20 - 16 / 20, abs=1e-12)
    assert (found["n_seeds_baseline"], found["n_seeds_compressed"]) == (2, 2)
    assert found["n"] == 20  # distinct examples, not examples × members
    assert row(population.results, "recall", "class", cls="a")["baseline"] == pytest.approx(0.7)
    # FPR of a = wrong b: dense 0 and 2 of 10, small 4 and 4 of 10
    found = row(population.results, "fpr", "class", cls="a")
    assert (found["baseline"], found["compressed"]) == pytest.approx((0.1, 0.4))


def test_prediction_denominators_are_per_member_then_mean(population: fw.Audit) -> None:
    # precision of a: dense 8/8 and 6/8; small 7/11 and 5/9
    found = row(population.results, "precision", "class", cls="a")
    assert found["baseline"] == pytest.approx((8 / 8 + 6 / 8) / 2, abs=1e-12)
    assert found["compressed"] == pytest.approx((7 / 11 + 5 / 9) / 2, abs=1e-12)
    # kappa at equal label shares is 2 · accuracy − 1
    found = row(population.results, "kappa")
    assert found["baseline"] == pytest.approx(2 * 16 / 20 - 1, abs=1e-12)


def test_gaps_are_per_member_then_mean(population: fw.Audit) -> None:
    right = np.array(LABEL)[:, None] == DENSE
    x = np.array(GROUPS["g"]) == "x"
    gaps = [abs(right[x, m].mean() - right[~x, m].mean()) for m in (0, 1)]
    found = row(population.results, "group_gap", "grouping", group="g")
    assert found["baseline"] == pytest.approx(np.mean(gaps), abs=1e-12)
    # |a − b| first and mean after; the gap of the mean rates is another number if signs differ
    gap = row(population.results, "class_gap")
    assert gap["baseline"] == pytest.approx((0.2 + 0.2) / 2, abs=1e-12)
    assert gap["compressed"] == pytest.approx((0.1 + 0.1) / 2, abs=1e-12)  # b worse, then a worse
    assert gap["aggregation"] == "seeds_first"


def test_cev_comes_from_the_mean_rates(population: fw.Audit) -> None:
    # mean FNR: a .3 → .4, b .1 → .4; FPR of a is the FNR of b and the reverse
    # relative: FNR a +33.3, b +300; FPR a +300, b +33.3; both variances (133.3)²
    low, high = 100 * (0.4 - 0.3) / 0.3, 100 * (0.4 - 0.1) / 0.1
    expected = ((high - low) / 2) ** 2
    found = row(population.results, "cev")
    assert found["compressed"] == pytest.approx(expected, rel=1e-12)
    assert found["aggregation"] == "rates_first"
    # mean of the two members' own CEVs would be another number: dense 0 makes no error in b
    assert row(population.results, "sde")["compressed"] == pytest.approx(
        (high - low) / math.sqrt(2)
    )
    assert row(population.results, "cev_pp")["compressed"] == pytest.approx(10.0**2)
    # errors .2 → .4
    assert row(population.results, "normalized_error_change")["compressed"] == pytest.approx(100.0)


def test_a_class_is_left_out_only_if_the_mean_rate_is_0(population: fw.Audit) -> None:
    """Dense 0 makes no error in b, dense 1 makes two: the population makes some."""
    assert not any("leave out classes" in note for note in population.notes)
    assert row(population.results, "cev")["status"] != "not_estimable: zero baseline in b"


def test_flips_are_means_over_pairs_of_equal_seeds(population: fw.Audit) -> None:
    # pair 0: of a the 8th is lost, of b the 7th–10th; pair 1: a 6th, b 7th and 8th
    # nothing is gained; changed predictions are the lost ones
    results = population.results
    assert row(results, "harmful_flips")["compressed"] == pytest.approx((5 + 3) / 2 / 20)
    assert row(results, "helpful_flips")["compressed"] == 0.0
    assert row(results, "flips")["compressed"] == pytest.approx(4 / 20)
    assert row(results, "accuracy")["shift"] == pytest.approx(-4 / 20, abs=1e-12)


def test_flips_without_equal_seeds_are_means_over_all_pairs() -> None:
    results = audit(LABEL, DENSE, SMALL[:, :1], positive="a").results
    # dense 0 → small 0: 5 lost; dense 1 → small 0: a +1 gained, b 2 lost
    assert row(results, "harmful_flips")["compressed"] == pytest.approx((5 + 2) / 2 / 20)
    assert row(results, "helpful_flips")["compressed"] == pytest.approx((0 + 1) / 2 / 20)
    assert row(results, "flips")["compressed"] == pytest.approx((5 + 3) / 2 / 20)
    assert row(results, "accuracy")["shift"] == pytest.approx((1 - 7) / 2 / 20, abs=1e-12)


def test_every_member_is_listed(population: fw.Audit) -> None:
    frame = population.per_seed
    overall = frame[(frame["metric"] == "accuracy") & (frame["by"] == "overall")]
    found = overall.set_index(["variant", "seed"])["value"].to_dict()
    expected = {
        ("dense", "0"): 0.9,
        ("dense", "1"): 0.7,
        ("small", "0"): 0.65,
        ("small", "1"): 0.55,
    }
    assert found == pytest.approx(expected)


def test_members_in_another_order_change_no_estimate() -> None:
    first, second = (
        audit(LABEL, DENSE[:, order], SMALL[:, order], positive="a").results
        for order in ([0, 1], [1, 0])
    )
    columns = ["metric", "by", "class", "baseline", "compressed", "shift", "status"]
    pd.testing.assert_frame_equal(first[columns], second[columns], rtol=1e-12)


def test_copies_of_one_model_are_that_model() -> None:
    """Two equal members on each side tell what one pair tells."""
    one = audit(LABEL, DENSE[:, :1], SMALL[:, :1], positive="a").results
    two = audit(LABEL, DENSE[:, [0, 0]], SMALL[:, [0, 0]], positive="a").results
    for metric in ("accuracy", "recall", "precision", "kappa", "flips", "cev_pp", "class_gap"):
        a, b = row(one, metric), row(two, metric)
        for name in ("baseline", "compressed", "shift"):
            assert a[name] == pytest.approx(b[name], abs=1e-12, nan_ok=True)


def test_intervals_of_mean_rates_are_the_wider_of_two(population: fw.Audit) -> None:
    """Scope model: members are fixed, examples are sampled. Linearised t, or Tango on n_eff."""
    right = [(p == np.array(LABEL)[:, None]).mean(axis=1) for p in (DENSE, SMALL)]
    difference = right[1] - right[0]
    reach = stats.t.ppf(0.975, 19) * difference.std(ddof=1) / math.sqrt(20)
    # Pair 0 loses 5 of 20, pair 1 loses 3, nothing is gained. Fewer than ten examples changed, so
    # n_eff is at most 20.
    found = row(population.results, "accuracy")
    lost, gained = (5 + 3) / 40, 0.0
    n_eff = min(20, (lost + gained - 0.2**2) / difference.var(ddof=1) * 20)
    low, high = tango(n_eff, n_eff * lost, n_eff * gained)
    assert found["ci_low"] == pytest.approx(min(difference.mean() - reach, low), abs=1e-12)
    assert found["ci_high"] == pytest.approx(max(difference.mean() + reach, high), abs=1e-12)
    assert found["scope"] == "model"


def test_class_impact_is_welchs_test() -> None:
    rng = np.random.default_rng(1)
    label = np.repeat(["a", "b", "c"], 30)

    def member(rate: float) -> Any:
        wrong = rng.random(90) < rate
        return np.where(wrong, rng.choice(["a", "b", "c"], 90), label)

    dense = np.stack([member(0.1) for _ in range(5)], axis=1)
    small = np.stack([member(0.3) for _ in range(4)], axis=1)
    results = audit(label, dense, small).results
    for cls in "abc":
        sides = []
        for population in (dense, small):
            right = population == label[:, None]
            # recall of each member − mean accuracy of the population, as in the authors' code
            sides.append(right[label == cls].mean(axis=0) - right.mean())
        expected = stats.ttest_ind(sides[1], sides[0], equal_var=False)
        found = row(results, "class_impact", "class", cls=cls, scope="method")
        assert found["compressed"] == pytest.approx(sides[1].mean() - sides[0].mean(), abs=1e-12)
        assert found["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)
