"""Audits of small tables whose every number can be worked out on paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import fairweight as fw
from fairweight.auditing.intervals.proportion import tango_at

from ..strategies import row

Cell = tuple[int, Any, Any, Any, dict[str, Any]]


def audit_cells(cells: list[Cell], **options: Any) -> fw.Audit:
    """Audit a table written as (how many, label, dense, small, groups)."""
    rows = [cell[1:] for cell in cells for _ in range(cell[0])]
    columns = list(cells[0][4])
    return fw.audit(
        [r[0] for r in rows],
        {"dense": [r[1] for r in rows], "small": [r[2] for r in rows]},
        sensitive_features={c: [r[3][c] for r in rows] for c in columns} or None,
        **{"n_boot": 100, **options},
    )


# Forty examples, positive class 1, twenty per group.
#
#           label dense small    F  M        F: 10 positives, 10 negatives; M the same
BINARY: list[Cell] = [
    (6, 1, 1, 1, {"sex": "F"}), (9, 1, 1, 1, {"sex": "M"}),  # both right
    (3, 1, 1, 0, {"sex": "F"}), (0, 1, 1, 0, {"sex": "M"}),  # lost positives
    (1, 1, 0, 0, {"sex": "F"}), (1, 1, 0, 1, {"sex": "M"}),  # F: both wrong; M: gained
    (8, 0, 0, 0, {"sex": "F"}), (7, 0, 0, 0, {"sex": "M"}),  # both right
    (1, 0, 0, 1, {"sex": "F"}), (0, 0, 0, 1, {"sex": "M"}),  # a new false positive in F
    (1, 0, 1, 0, {"sex": "F"}), (3, 0, 1, 1, {"sex": "M"}),  # F: gained; M: both wrong
]  # fmt: skip


DRAWN = {"precision", "f1", "balanced_accuracy", "kappa", "class_gap", "class_shortfall", "tcb"}


@pytest.fixture(scope="module")
def binary() -> pd.DataFrame:
    return audit_cells(BINARY).results


@pytest.mark.parametrize(
    ("metric", "baseline", "compressed"),
    [
        # dense: TP 6+9+3 = 18 of 20, FN 2, FP 1+3 = 4 of 20; small: TP 6+9+1 = 16, FP 1+3 = 4
        ("accuracy", (18 + 16) / 40, (16 + 16) / 40),
        ("error_rate", 6 / 40, 8 / 40),
        ("recall", 18 / 20, 16 / 20),
        ("fnr", 2 / 20, 4 / 20),
        ("fpr", 4 / 20, 4 / 20),
        ("selection_rate", 22 / 40, 20 / 40),
        ("precision", 18 / 22, 16 / 20),
        ("f1", 2 * 18 / (20 + 22), 2 * 16 / (20 + 20)),
        ("balanced_accuracy", (18 / 20 + 16 / 20) / 2, (16 / 20 + 16 / 20) / 2),
        # chance agreement: dense .5·22/40 + .5·18/40 = .5; small .5
        ("kappa", (34 / 40 - 0.5) / 0.5, (32 / 40 - 0.5) / 0.5),
        ("class_gap", 18 / 20 - 16 / 20, 0.0),
        ("class_shortfall", (0.9 + 0.8) / 2 - 0.8, 0.0),
        ("abstention_rate", 0.0, 0.0),
        # labels are half and half, so both values are equally rare: 1 by the rule of definitions
        ("tcb", 22 / 20, 20 / 20),
    ],
)
def test_overall_values_of_a_binary_table(
    binary: pd.DataFrame, metric: str, baseline: float, compressed: float
) -> None:
    found = row(binary, metric)
    assert found["baseline"] == pytest.approx(baseline, abs=1e-12)
    assert found["compressed"] == pytest.approx(compressed, abs=1e-12)
    assert found["shift"] == pytest.approx(compressed - baseline, abs=1e-12)
    # six predictions changed: enough for a rate's closed form, too few for drawn limits
    few = "not_estimable: too few changed predictions (6)"
    assert found["status"] == (few if metric in DRAWN else "ok")
    assert math.isnan(found["ci_low"]) == (metric in DRAWN)


@pytest.mark.parametrize(
    ("metric", "women", "men", "n"),
    [
        # (dense, small) in each group, and the denominators' size
        ("accuracy", (18 / 20, 15 / 20), (16 / 20, 17 / 20), 20),
        ("recall", (9 / 10, 6 / 10), (9 / 10, 10 / 10), 10),
        ("fpr", (1 / 10, 1 / 10), (3 / 10, 3 / 10), 10),
        ("fnr", (1 / 10, 4 / 10), (1 / 10, 0 / 10), 10),
        ("selection_rate", (10 / 20, 7 / 20), (12 / 20, 13 / 20), 20),
        ("precision", (9 / 10, 6 / 7), (9 / 12, 10 / 13), 20),
    ],
)
def test_values_by_group(
    binary: pd.DataFrame,
    metric: str,
    women: tuple[float, float],
    men: tuple[float, float],
    n: int,
) -> None:
    for group, other, expected in (("sex=F", men, women), ("sex=M", women, men)):
        found = row(binary, metric, "group", group=group)
        assert found["n"] == n
        np.testing.assert_allclose(
            [found["baseline"], found["compressed"]], expected, rtol=0, atol=1e-12
        )
        # two levels: the others are the other group
        excess = (expected[1] - expected[0]) - (other[1] - other[0])
        assert found["excess_shift"] == pytest.approx(excess, abs=1e-12)


def test_flips_add_up_to_the_shift(binary: pd.DataFrame) -> None:
    # lost: 3 positives and 1 negative of F; gained: 1 negative of F, 1 positive of M
    expected = {"flips": 6 / 40, "harmful_flips": 4 / 40, "helpful_flips": 2 / 40}
    for name, value in expected.items():
        assert row(binary, name)["compressed"] == pytest.approx(value, abs=1e-12)
    assert row(binary, "accuracy")["shift"] == pytest.approx(2 / 40 - 4 / 40, abs=1e-12)
    women = {"flips": 5 / 20, "harmful_flips": 4 / 20, "helpful_flips": 1 / 20}
    for name, value in women.items():
        found = row(binary, name, "group", group="sex=F")
        assert found["compressed"] == pytest.approx(value, abs=1e-12)
    assert row(binary, "harmful_flips", "class", cls="1")["compressed"] == pytest.approx(3 / 20)


@pytest.mark.parametrize(
    ("metric", "baseline", "compressed"),
    [
        ("group_gap", 18 / 20 - 16 / 20, 17 / 20 - 15 / 20),
        ("worst_group", 16 / 20, 15 / 20),
        ("group_std", 1 / 20, 1 / 20),  # two values 2/20 apart: half their distance
        ("recall_group_gap", 0.0, 4 / 10),
        ("fpr_group_gap", 2 / 10, 2 / 10),
        ("demographic_parity_difference", 2 / 20, 6 / 20),
        ("disparate_impact", 10 / 12, 7 / 13),
        ("equal_opportunity_difference", 0.0, 4 / 10),
        ("equalized_odds_difference", 2 / 10, 4 / 10),
        ("predictive_parity_difference", 9 / 10 - 9 / 12, 6 / 7 - 10 / 13),
        ("ppv_ratio", (9 / 12) / (9 / 10), (10 / 13) / (6 / 7)),
    ],
)
def test_gaps(binary: pd.DataFrame, metric: str, baseline: float, compressed: float) -> None:
    found = row(binary, metric, "grouping", group="sex")
    assert found["baseline"] == pytest.approx(baseline, abs=1e-12)
    assert found["compressed"] == pytest.approx(compressed, abs=1e-12)
    assert found["shift"] == pytest.approx(compressed - baseline, abs=1e-12)


def test_the_worst_group_is_named(binary: pd.DataFrame) -> None:
    assert row(binary, "worst_group", "grouping", group="sex")["level"] == "sex=F"
    worst = row(binary, "worst_group_shift", "grouping", group="sex")
    assert worst["compressed"] == pytest.approx(15 / 20 - 18 / 20, abs=1e-12)
    assert worst["level"] == "sex=F"
    assert math.isnan(worst["shift"])
    assert worst["ci_low"] < worst["compressed"] < worst["ci_high"]


def test_concentration_of_lost_answers() -> None:
    audit = audit_cells(BINARY)
    # all 4 lost answers are women's, who are half of the examples; gained: 1 each
    table = audit.concentration.set_index("part")
    women = table.loc["sex=F"]
    assert (women["lost"], women["gained"]) == (4, 1)
    assert (women["share_lost"], women["share_gained"]) == (1.0, 0.5)
    assert women["share_lost_poisson"] == women["share_examples"] == 0.5
    found = row(audit.results, "concentration", "group", group="sex=F")
    assert found["compressed"] == 1.0
    assert found["ci_low"] < 1.0 <= found["ci_high"] + 1e-12


def test_heterogeneity_by_hand() -> None:
    """Two groups are one question: the p of the excess; MOVER with 5 of 20 and 0 of 20 lost."""
    cells: list[Cell] = [
        (5, "a", "a", "b", {"g": "x"}),
        (15, "a", "a", "a", {"g": "x"}),
        (20, "a", "a", "a", {"g": "y"}),
    ]
    results = audit_cells(cells).results
    found = row(results, "heterogeneity", "grouping", group="g")
    # z where 1/4 = hypot(upper Tango distance of −5/20, lower one of 0/20 = z² / (20 + z²)).
    z = found["compressed"]
    _, high = tango_at(20, 5, 0, z)
    assert np.hypot(high + 0.25, z**2 / (20 + z**2)) == pytest.approx(0.25, abs=1e-9)
    assert found["p_value"] == pytest.approx(2 * norm.sf(z), rel=1e-9)
    assert found["p_adjusted"] == found["p_value"]
    assert found["level"] in ("g=x", "g=y")  # two groups: the same z
    one = row(results, "accuracy", "group", group="g=x")
    assert one["excess_p"] == one["excess_p_adjusted"] == found["p_value"]
    assert one["churn"] == 0.25
    within = row(results, "heterogeneity_within_classes", "grouping", group="g")
    assert within["status"] == "not_estimable: one class"


def test_within_classes_by_hand() -> None:
    """Class a: x loses 4 of 8, y 1 of 8; class b: nothing changes.

    D_a = −5/16. Scores in a: α = β = 1/2, so u = ±(x − D_a)/2; Σu of x is
    ½(−4 + 8·5/16) − ½(−1 + 8·5/16) = −3/2. Σu² = ¼ (5·(11/16)² + 11·(5/16)²), divided by
    1 − 1/16 for the observed z.
    """
    cells: list[Cell] = [
        (4, "a", "a", "b", {"g": "x"}), (4, "a", "a", "a", {"g": "x"}),
        (1, "a", "a", "b", {"g": "y"}), (7, "a", "a", "a", {"g": "y"}),
        (6, "b", "b", "b", {"g": "x"}), (4, "b", "b", "b", {"g": "y"}),
    ]  # fmt: skip
    found = row(audit_cells(cells).results, "heterogeneity_within_classes", "grouping", group="g")
    squares = (5 * (11 / 16) ** 2 + 11 * (5 / 16) ** 2) / 4 / (1 - 1 / 16)
    assert found["compressed"] == pytest.approx(1.5 / math.sqrt(squares), rel=1e-6)
    assert 0.05 < found["p_value"] < 0.25


def test_simpson_the_standardised_excess_sees_no_difference() -> None:
    """Both groups lose 1/2 of label a and nothing of b; group x just has more of a."""
    cells: list[Cell] = [
        (8, "a", "a", "a", {"g": "x"}), (8, "a", "a", "b", {"g": "x"}),  # x: 8 of 16 a lost
        (4, "b", "b", "b", {"g": "x"}),
        (2, "a", "a", "a", {"g": "y"}), (2, "a", "a", "b", {"g": "y"}),  # y: 2 of 4 a lost
        (16, "b", "b", "b", {"g": "y"}),
    ]  # fmt: skip
    results = audit_cells(cells).results
    plain = row(results, "accuracy", "group", group="g=x")
    assert plain["excess_shift"] == pytest.approx(-8 / 20 + 2 / 20, abs=1e-12)
    for level in ("g=x", "g=y"):
        found = row(results, "excess_shift_standardised", "group", group=level)
        assert found["compressed"] == pytest.approx(0.0, abs=1e-12)
        assert found["p_value"] > 0.5
    # Who has more of the class that loses does lose more; the class explains it.
    assert row(results, "heterogeneity", "grouping", group="g")["p_value"] < 0.06
    assert row(results, "heterogeneity_within_classes", "grouping", group="g")["p_value"] > 0.5


def test_standardised_excess_by_hand() -> None:
    cells: list[Cell] = [
        (6, "a", "a", "a", {"g": "x"}), (4, "a", "a", "b", {"g": "x"}),  # a: -4/10
        (10, "b", "b", "b", {"g": "x"}),  # b: 0
        (9, "a", "a", "a", {"g": "y"}), (1, "a", "a", "b", {"g": "y"}),  # a: -1/10
        (15, "b", "b", "b", {"g": "y"}), (5, "b", "a", "b", {"g": "y"}),  # b: +5/20
    ]  # fmt: skip
    found = row(audit_cells(cells).results, "excess_shift_standardised", "group", group="g=x")
    # mean over labels of (x − y): a: -.4 + .1, b: 0 − .25
    assert found["compressed"] == pytest.approx((-0.3 - 0.25) / 2, abs=1e-12)


def test_binary_without_a_positive_class_says_so() -> None:
    cells: list[Cell] = [(20, "cat", "cat", "dog", {}), (20, "dog", "dog", "dog", {})]
    audit = audit_cells(cells)
    for metric in ("recall", "fpr", "fnr", "precision", "selection_rate"):
        found = row(audit.results, metric)
        assert math.isnan(found["compressed"])
        assert (
            found["status"] == "not_estimable: no positive class (name it: --positive, positive=)"
        )
    assert any("none is named as positive" in note for note in audit.notes)
    # what needs no positive class is there all the same
    assert row(audit.results, "accuracy")["shift"] == pytest.approx(-0.5)
    assert row(audit.results, "recall", "class", cls="cat")["shift"] == -1.0
    named = audit_cells(cells, positive="cat")
    assert row(named.results, "recall")["compressed"] == 0.0


def test_multiclass_recall_is_the_mean_over_classes() -> None:
    cells: list[Cell] = [
        (10, "a", "a", "a", {}), (10, "a", "a", "b", {}),  # recall of a: 1 → 1/2
        (6, "b", "b", "b", {}), (4, "b", "c", "c", {}),  # of b: .6 → .6
        (10, "c", "c", "a", {}),  # of c: 1 → 0
    ]  # fmt: skip
    results = audit_cells(cells).results
    found = row(results, "recall")
    assert found["baseline"] == pytest.approx((1 + 0.6 + 1) / 3, abs=1e-12)
    assert found["compressed"] == pytest.approx((0.5 + 0.6 + 0) / 3, abs=1e-12)
    # accuracy by class is recall, never (TP + TN) / N
    by_class = row(results, "accuracy", "class", cls="a")
    assert (by_class["baseline"], by_class["compressed"], by_class["n"]) == (1.0, 0.5, 20)
    # all others: 16 of 20 right → 6 of 20
    assert by_class["excess_shift"] == pytest.approx(-0.5 - (6 - 16) / 20, abs=1e-12)
    # precision of c: dense 10 of 14, small 0 of 4; of b: dense 6 of 6, small 6 of 16
    assert row(results, "precision", "class", cls="c")["baseline"] == pytest.approx(10 / 14)
    assert row(results, "precision", "class", cls="c")["compressed"] == 0.0
    assert row(results, "precision", "class", cls="b")["compressed"] == pytest.approx(6 / 16)
    # fpr of a: dense 0 of 20, small 10 of 20
    assert row(results, "fpr", "class", cls="a")["shift"] == pytest.approx(0.5)
    gap = row(results, "class_gap")
    assert (gap["baseline"], gap["compressed"]) == pytest.approx((0.4, 0.6))
    assert "binary" in row(results, "selection_rate")["status"]


def test_abstentions_are_not_right_and_are_counted() -> None:
    cells: list[Cell] = [
        (15, 1, 1, 1, {"g": "x"}), (5, 1, 1, None, {"g": "x"}),
        (10, 0, 0, 0, {"g": "y"}), (6, 0, 0, None, {"g": "y"}), (4, 0, None, 0, {"g": "y"}),
    ]  # fmt: skip
    audit = audit_cells(cells)
    results = audit.results
    found = row(results, "abstention_rate")
    assert (found["baseline"], found["compressed"]) == (4 / 40, 11 / 40)
    assert found["shift"] == pytest.approx(7 / 40)
    assert row(results, "abstention_rate", "group", group="g=y")["compressed"] == 6 / 20
    assert row(results, "accuracy")["compressed"] == pytest.approx(29 / 40)
    # an abstention is nobody's selection: 15 of 40 are called positive
    assert row(results, "selection_rate")["compressed"] == pytest.approx(15 / 40)
    assert row(results, "fpr")["compressed"] == 0.0
    assert row(results, "fnr")["compressed"] == pytest.approx(5 / 20)
    assert row(results, "flips")["compressed"] == pytest.approx(15 / 40)
    assert "'small': 11 missing predictions, counted as wrong." in audit.notes
    spoken = audit.confusion
    silent = spoken[(spoken["variant"] == "small") & (spoken["prediction"] == "(abstained)")]
    assert silent.set_index("label")["count"].to_dict() == {"0": 6, "1": 5}


def test_predictions_outside_the_labels_count_as_wrong() -> None:
    cells: list[Cell] = [
        (18, "a", "a", "a", {}), (2, "a", "a", "zebra", {}), (20, "b", "b", "b", {}),
    ]  # fmt: skip
    audit = audit_cells(cells, positive="a")
    assert row(audit.results, "accuracy")["shift"] == pytest.approx(-2 / 40)
    assert audit.result.classes == ("a", "b")
    assert any("2 predictions of 'small'" in note and "zebra" in note for note in audit.notes)
    assert row(audit.results, "precision")["compressed"] == 1.0  # nobody is wrongly called a
    assert row(audit.results, "selection_rate")["compressed"] == pytest.approx(18 / 40)


def test_missing_group_values_are_a_group_outside_gaps_and_families() -> None:
    cells: list[Cell] = [
        (18, 1, 1, 1, {"g": "x"}), (2, 1, 1, 0, {"g": "x"}),  # -2/20
        (19, 0, 0, 0, {"g": "y"}), (1, 0, 0, 1, {"g": "y"}),  # -1/20
        (5, 0, 0, 0, {"g": None}), (15, 0, 0, 1, {"g": None}),  # -15/20
    ]  # fmt: skip
    audit = audit_cells(cells)
    missing = row(audit.results, "accuracy", "group", group="g=(missing)")
    assert missing["shift"] == pytest.approx(-15 / 20)
    worst = row(audit.results, "worst_group_shift", "grouping", group="g")
    assert worst["compressed"] == pytest.approx(-2 / 20)
    assert row(audit.results, "group_gap", "grouping", group="g")["compressed"] == pytest.approx(
        19 / 20 - 18 / 20
    )
    assert any("20 rows have no value in 'g'" in note for note in audit.notes)
    # x against all others, the missing ones among them: -2/20 − (-16/40)
    found = row(audit.results, "accuracy", "group", group="g=x")
    assert found["excess_shift"] == pytest.approx(-0.1 + 0.4, abs=1e-12)
    assert found["n_family"] == 2
    assert pd.isna(missing["family"])
    assert pd.isna(missing["n_family"])


def test_a_single_class_has_no_false_positives_to_speak_of() -> None:
    cells: list[Cell] = [
        (16, "a", "a", "a", {"g": "x"}), (4, "a", "a", "b", {"g": "x"}),
        (20, "a", "a", "a", {"g": "y"}),
    ]  # fmt: skip
    results = audit_cells(cells).results
    assert row(results, "accuracy")["shift"] == pytest.approx(-0.1)
    fpr = row(results, "fpr", "class", cls="a")
    assert math.isnan(fpr["compressed"])
    assert fpr["status"] == "not_estimable: no examples"
    # kappa of dense is 0 / 0: agreement by chance is certain; of small (.9 − .9) / .1
    kappa = row(results, "kappa")
    assert math.isnan(kappa["baseline"])
    assert kappa["compressed"] == pytest.approx(0.0, abs=1e-12)
    assert math.isnan(kappa["shift"])
    for metric in ("cev_pp", "cev"):
        assert math.isnan(row(results, metric)["compressed"]), metric
    for metric in ("kappa", "cev_pp", "cev"):
        assert row(results, metric)["status"].startswith("not_estimable"), metric


def test_a_group_without_positives_has_no_recall() -> None:
    """As a 0 it would be the worst group."""
    cells: list[Cell] = [
        (10, 1, 1, 1, {"g": "x"}), (10, 0, 0, 0, {"g": "x"}), (20, 0, 0, 0, {"g": "y"}),
    ]  # fmt: skip
    found = row(audit_cells(cells).results, "recall", "group", group="g=y")
    assert math.isnan(found["compressed"])
    assert found["status"] == "not_estimable: no examples"
    assert found["n"] == 0


def test_small_groups_keep_their_numbers_and_stay_outside() -> None:
    cells: list[Cell] = [
        (20, 1, 1, 1, {"g": "x"}), (20, 0, 0, 0, {"g": "y"}), (2, 0, 0, 1, {"g": "z"}),
    ]  # fmt: skip
    results = audit_cells(cells).results
    small = row(results, "accuracy", "group", group="g=z")
    assert small["status"] == "small_group: n < 10"
    assert small["shift"] == -1.0
    assert -1 <= small["ci_low"] <= -1 + 1e-12 < small["ci_high"]  # two of two is no certainty
    assert pd.isna(small["family"])
    worst = row(results, "worst_group_shift", "grouping", group="g")
    assert worst["compressed"] == 0.0


def test_cev_and_sde_by_hand() -> None:
    # Ten of each class. dense: 2 a called b, 2 b called a: FNR .2, FPR .2 in both classes.
    # small: 3 a called b, 1 b called a: FNR a .3, b .1; FPR a .1, b .3.
    cells: list[Cell] = [
        (7, "a", "a", "a", {}), (2, "a", "b", "b", {}), (1, "a", "a", "b", {}),
        (8, "b", "b", "b", {}), (1, "b", "a", "b", {}), (1, "b", "a", "a", {}),
    ]  # fmt: skip
    results = audit_cells(cells).results
    # relative changes: FPR -50, +50; FNR +50, -50 → both variances 2500
    assert row(results, "cev")["compressed"] == pytest.approx(2500.0)
    assert row(results, "sde")["compressed"] == pytest.approx(100 / math.sqrt(2))
    # in points: ±10 → 100 and 20/√2
    assert row(results, "cev_pp")["compressed"] == pytest.approx(100.0)
    assert row(results, "sde_pp")["compressed"] == pytest.approx(20 / math.sqrt(2))
    # errors 4 of 20 before and after
    assert row(results, "normalized_error_change")["compressed"] == pytest.approx(0.0, abs=1e-9)
    assert math.isnan(row(results, "cev")["ci_low"])  # below 1,000 per class: debiased and p only


def test_a_class_that_loses_from_zero_errors_never_vanishes() -> None:
    # class c: 0 errors of 100 → 20 of 100
    cells: list[Cell] = [
        (90, "a", "a", "a", {}), (10, "a", "b", "b", {}),
        (90, "b", "b", "b", {}), (10, "b", "a", "a", {}),
        (80, "c", "c", "c", {}), (20, "c", "c", "a", {}),
    ]  # fmt: skip
    audit = audit_cells(cells)
    for metric in ("cev", "sde"):
        found = row(audit.results, metric)
        assert found["status"] == "not_estimable: zero baseline in c"
        assert math.isnan(found["p_value"])
    assert any("'c' (FNR +20.00" in note for note in audit.notes)
    assert row(audit.results, "cev_pp")["status"] == "ok"
