"""Sample sizes: against enumeration, against the spec's figures, and through the gate itself."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import fairweight as fw
from fairweight.auditing.gate.sample_size import MARGINS, PlanRequest, plan_of, planned
from fairweight.auditing.intervals.power import (
    examples_to_pass,
    least_n,
    margin_to_pass,
    pass_chance,
)
from fairweight.auditing.intervals.proportion import tango
from fairweight.auditing.result import GATE_ALPHA
from fairweight.errors import InputError

from .made_bounds import TWO_SIDED, line, made_audit


@pytest.mark.parametrize(("churn", "loss"), [(0.2, 0.0), (0.3, 0.1), (0.05, 0.05)])
@pytest.mark.parametrize("n", [1, 12, 25])
def test_the_chance_is_the_sum_over_all_tables(n: int, churn: float, loss: float) -> None:
    """Every (lost, gained) with its trinomial probability, and Tango's limit of each."""
    expected, margin = 0.0, 0.21
    for lost, gained in product(range(n + 1), repeat=2):
        if lost + gained > n:
            continue
        low, _ = tango(n, lost, gained, 2 * GATE_ALPHA)
        if low > -margin:
            ways = math.comb(n, lost) * math.comb(n - lost, gained)
            shares = ((churn + loss) / 2) ** lost * ((churn - loss) / 2) ** gained
            expected += ways * shares * (1 - churn) ** (n - lost - gained)
    assert pass_chance([n], margin, churn, loss)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("loss", [0.0, 0.01])
def test_the_normal_formula_goes_on_where_the_sum_ends(loss: float) -> None:
    """n ψ = 5,000 is the border; beside it both agree to half a percent."""
    margin = 0.02 if loss == 0 else 0.016
    below, above = pass_chance([49_990, 50_010], margin / 8 + loss, 0.1, loss)
    assert above == pytest.approx(below, abs=0.005)
    assert 0.2 < below < 0.99


@pytest.mark.parametrize("margin", MARGINS)
def test_identical_predictions_pass_from_the_least_n_on(margin: float) -> None:
    n = least_n(margin)
    limits = [tango(size, 0, 0, 2 * GATE_ALPHA)[0] for size in (n - 1, n)]
    assert limits[0] <= -margin < limits[1]
    assert examples_to_pass(margin, 0.0) == n


def test_two_points_need_133() -> None:
    """z² = 1.6449² = 2.7055; 2.7055 × (1 / 0.02 − 1) = 132.57."""
    assert least_n(0.02) == 133


@pytest.mark.parametrize(("margin", "churn"), [(0.02, 0.01), (0.05, 0.03), (0.1, 0.3)])
def test_from_there_on_the_power_never_falls_below(margin: float, churn: float) -> None:
    n = examples_to_pass(margin, churn)
    assert pass_chance([n - 1], margin, churn)[0] < 0.8
    assert (pass_chance(np.arange(n, 3 * n), margin, churn) >= 0.8).all()


@pytest.mark.parametrize(
    ("margin", "churn", "expected"),
    [
        (0.02, 0.01, 600), (0.02, 0.03, 1300), (0.02, 0.06, 2300),
        (0.05, 0.01, 160), (0.05, 0.03, 260), (0.05, 0.06, 400),
    ],
)  # fmt: skip
def test_seventeen_groups_that_all_pass(margin: float, churn: float, expected: int) -> None:
    """The figures of the statistics page, which are rounded from the normal formula."""
    n = examples_to_pass(margin, churn, rows=17)
    assert n == pytest.approx(expected, rel=0.09)
    assert pass_chance([n], margin, churn)[0] ** 17 >= 0.8


@pytest.mark.parametrize(("n", "churn"), [(90, 0.0), (300, 0.03), (5000, 0.06)])
def test_the_margin_that_a_group_can_certify_is_the_inverse(n: int, churn: float) -> None:
    margin = margin_to_pass(n, churn)
    assert pass_chance([n], margin, churn)[0] >= 0.8
    assert pass_chance([n], margin * 0.999, churn)[0] < 0.8


def shares_of_passes(groups: int, n: int, margin: float, churn: float, loss: float) -> float:
    """Of 400 audits with these counts, in how many the gate itself passes."""
    from fairweight.auditing.gate.verdict import decide
    from fairweight.specs.policy import read_policy

    rng = np.random.default_rng([groups, n, round(1000 * loss)])
    lost, gained = (churn + loss) / 2, (churn - loss) / 2
    drawn = rng.multinomial(n, [lost, gained, 1 - churn], size=(400, groups))
    low, high = tango(n, drawn[..., :1], drawn[..., 1:2], TWO_SIDED)
    shift = (drawn[..., 1] - drawn[..., 0]) / n
    rows = [
        line("shift", shift[a, g], low[a, g], high[a, g], n=n, variant=f"v{a}", group=f"age={g}")
        for a in range(400)
        for g in range(groups)
    ]
    policy = read_policy({"rule": [{"metric": "accuracy", "by": "group", "margin": margin}]})
    found = list(decide(made_audit(rows), policy).variants.values())
    return found.count("pass") / 400


@pytest.mark.parametrize(
    ("groups", "margin", "churn", "loss"), [(1, 0.02, 0.03, 0.0), (6, 0.05, 0.06, 0.01)]
)
def test_the_gate_passes_as_often_as_planned(
    groups: int, margin: float, churn: float, loss: float
) -> None:
    """Three standard errors of .8 among 400 audits are .06; teeth may lift the chance by .03."""
    made = fw.plan(margin=margin, churn=churn, n_groups=groups, expected_loss=loss)
    n = int(made.rows["n_needed"].iloc[0])
    assert 0.74 <= shares_of_passes(groups, n, margin, churn, loss) <= 0.89
    assert shares_of_passes(groups, n // 2, margin, churn, loss) < 0.74


@pytest.fixture(scope="module")
def pilot() -> fw.Audit:
    """1,000 examples; 3 % of predictions change, 10 % of those of a small group."""
    i = np.arange(1000)
    int8 = np.where(i % 100 < 3, 1 - i % 2, i % 2)
    int4 = np.where(i % 100 < 2, 1 - i % 2, i % 2)
    sex = np.where(i % 10 == 0, "Other", "Female")
    return fw.audit(
        i % 2, {"dense": i % 2, "int4": int4, "int8": int8}, sensitive_features={"sex": sex},
        n_boot=20,
    )  # fmt: skip


def test_a_pilot_gives_groups_sizes_and_churn_of_the_variant_that_changes_most(
    pilot: fw.Audit,
) -> None:
    made = fw.plan(pilot, margin=0.05)
    rows = made.rows.set_index("group")
    assert made.pilot is not None
    assert (made.pilot.variant, made.pilot.churn) == ("int8", pytest.approx(0.03))
    # Of the ids 0, 10, …, 990 those with id % 100 = 0 change: 10 of 100; of the others 20 of 900,
    # which is less than the 3 % of all.
    assert rows.loc["sex=Other", "churn"] == pytest.approx(0.1)
    assert rows.loc["sex=Female", "churn"] == pytest.approx(0.03)
    for name, have in (("sex=Other", 100), ("sex=Female", 900)):
        needed = examples_to_pass(0.05, float(rows.loc[name, "churn"]), rows=2)
        assert rows.loc[name, ["n_pilot", "n_needed", "n_missing"]].tolist() == [
            have, needed, max(0, needed - have),
        ]  # fmt: skip
    chances = pass_chance([100], 0.05, 0.1)[0], pass_chance([900], 0.05, 0.03)[0]
    assert made.chance_now == pytest.approx(chances[0] * chances[1])


def test_the_churn_of_one_variant_can_be_asked_for(pilot: fw.Audit) -> None:
    made = fw.plan(pilot, margin=0.05, variant="int4")
    assert made.pilot is not None
    assert made.pilot.churn == pytest.approx(0.02)
    assert set(made.rows["variant"]) == {"int4"}
    with pytest.raises(InputError, match="'int5' does not exist"):
        fw.plan(pilot, variant="int5")
    with pytest.raises(InputError, match="a pilot"):
        fw.plan(variant="int4")


def test_a_plan_does_not_depend_on_whether_the_pilot_passes() -> None:
    """The same churn, once all lost and once all gained."""
    i = np.arange(600)
    worse, right = np.where(i % 20 == 0, 1 - i % 2, i % 2), i % 2
    plans = [
        fw.plan(fw.audit(i % 2, {"dense": a, "int8": b}, n_boot=20))
        for a, b in ((right, worse), (worse, right))
    ]
    assert plans[0].rows.equals(plans[1].rows)


def test_a_policy_says_which_rows_and_what_cannot_be_planned(pilot: fw.Audit) -> None:
    rules = [
        {"metric": "recall", "by": "class", "margin": 0.05},
        {"metric": "accuracy", "by": "overall", "recovery": 0.98},
        {"metric": "group_gap", "by": "grouping", "margin": 0.03},
        {"metric": "accuracy", "by": "overall", "min": 0.8},
    ]
    made = fw.plan(pilot, policy={"min_group_size": 400, "rule": rules})
    assert made.rows["by"].tolist() == ["class", "class", "overall"]
    assert made.rows["margin"].tolist() == pytest.approx([0.05, 0.05, 0.02])
    assert made.rows["n_needed"].min() >= 400
    (note,) = made.notes
    assert "group_gap by grouping (margin)" in note
    assert "accuracy by overall (min)" in note


def test_clusters_make_examples_worth_less() -> None:
    rng = np.random.default_rng(3)
    person = np.repeat(np.arange(100), 20)
    changes = rng.random(100)[person] < 0.05  # whole persons change
    y = np.arange(2000) % 2
    made = [
        fw.plan(
            fw.audit(y, {"dense": y, "int8": np.where(changes, 1 - y, y)}, n_boot=20, cluster=c)
        ).rows.iloc[0]
        for c in (None, person)
    ]
    assert made[0]["design_effect"] == 1
    assert made[1]["design_effect"] > 10
    assert made[1]["n_needed"] == math.ceil(
        examples_to_pass(0.02, float(made[1]["churn"])) * made[1]["design_effect"]
    )


def test_more_looks_and_a_true_loss_need_more_examples() -> None:
    plain, looks, loss = (
        planned(PlanRequest(margin=0.02, churn=(0.03,), **more)).rows["n_needed"].iloc[0]
        for more in ({}, {"looks": 4}, {"expected_loss": 0.005})
    )
    assert plain < looks
    assert plain < loss


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"margin": 2}, "did you mean 0.02"),
        ({"margin": 0.0}, "--margin 0"),
        ({"power": 1.0}, "--power 1"),
        ({"churn": 3}, "did you mean 0.03"),
        ({"churn": -0.1}, "--churn -0.1"),
        ({"n_groups": 0}, "--n-groups 0"),
        ({"looks": 5000}, "--looks 5000"),
        ({"margin": 0.02, "expected_loss": 0.02}, "not below the margin"),
        ({"policy": {"rule": [{"metric": "accuracy", "by": "group", "margin": 0.1}]}}, "a pilot"),
    ],
)
def test_what_cannot_be_planned_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        fw.plan(**given)


def test_a_pilot_counts_its_groups_itself(pilot: fw.Audit) -> None:
    with pytest.raises(InputError, match="--n-groups"):
        plan_of(pilot.result, PlanRequest(n_groups=3))
