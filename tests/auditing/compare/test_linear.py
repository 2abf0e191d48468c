"""Rates with clusters, weights and several members: the wider rule, by hand and by properties."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

import fairweight as fw
from fairweight.auditing.compare.comparison import (
    Comparison,
    Options,
    Outcomes,
    cell_outcomes,
    comparison,
    event_outcomes,
)
from fairweight.auditing.compare.estimate import Estimate, Family
from fairweight.auditing.compare.linear import clumping_of, linear_rates
from fairweight.auditing.compare.rows import scopes
from fairweight.auditing.compare.two_way import method_rates
from fairweight.auditing.counts.cube import Cube, CubeMember, GroupColumn
from fairweight.auditing.intervals.proportion import tango
from fairweight.auditing.metrics.registry import Metric, metric

from ..strategies import row
from .made_populations import Population, audit, audit_with_seeds, population
from .wider_by_hand import Raw, excess_limits, raw_of, shift_limits

pytestmark = pytest.mark.usefixtures("few_metrics")
MORE_METRICS = ("worst_group_shift", "heterogeneity")

NAME = "wider of linearised t over {} and Tango on n_eff"
ELSEWHERE = "; assumes losses clump here as elsewhere"


def assert_rows_by_hand(results: pd.DataFrame, made: Population, raw: Raw, name: str) -> None:
    """Limits and excess of every row of accuracy and recall that is not too small."""
    members = len(raw.pairs) > 1 and len(np.unique(raw.cluster)) == len(raw.cluster)
    everyone = np.ones(len(made.label), dtype=bool)
    rows: list[tuple[str, str, dict[str, Any], Any]] = [("accuracy", "overall", {}, everyone)]
    rows += [("recall", "class", {"cls": c}, made.label == c) for c in np.unique(made.label)]
    rows += [
        ("accuracy", "group", {"group": f"{column}={level}"}, values == level)
        for column, values in made.groups.items()
        for level in np.unique(values)
    ]
    compared = 0
    for metric_name, by, where, here in rows:
        found = row(results, metric_name, by, **where)
        if found["status"] != "ok":
            continue
        low, high = shift_limits(raw, here, 0.05, members=members)
        assert found["shift"] == pytest.approx(raw.shift(here), abs=1e-12)
        assert (found["ci_low"], found["ci_high"]) == pytest.approx((low, high), abs=1e-9)
        assert found["interval"].startswith(name)
        if by != "overall" and np.isfinite(found["excess_low"]):
            limits = excess_limits(raw, here, 0.05)
            assert (found["excess_low"], found["excess_high"]) == pytest.approx(limits, abs=1e-9)
            # p is the smallest level at which the limits exclude 0
            touched = excess_limits(raw, here, found["excess_p"])
            assert min(abs(limit) for limit in touched) == pytest.approx(0, abs=1e-8)
        compared += 1
    assert compared >= 4


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_clusters(weighted: bool) -> None:
    made = population(31, n=400, members=(1, 1), errors=(0.1, 0.15))
    rng = np.random.default_rng(31)
    cluster = rng.choice(60, 400, p=np.arange(1, 61) / 1830)  # unequal clusters
    weight = rng.uniform(0.5, 3, 400) if weighted else None
    results = audit(made, cluster=cluster, sample_weight=weight).results
    raw = raw_of(made, [(0, 0)], cluster=cluster, weight=weight)
    assert_rows_by_hand(results, made, raw, NAME.format("clusters"))


def test_weights() -> None:
    made = population(32, n=300, members=(1, 1), errors=(0.1, 0.15))
    weight = np.random.default_rng(32).lognormal(0, 0.7, 300)
    results = audit(made, sample_weight=weight).results
    assert_rows_by_hand(
        results, made, raw_of(made, [(0, 0)], weight=weight), NAME.format("examples")
    )


def test_members_paired_by_seed() -> None:
    made = population(33, n=120, members=(4, 4), errors=(0.1, 0.15))
    raw = raw_of(made, [(i, i) for i in range(4)])
    assert_rows_by_hand(audit(made).results, made, raw, NAME.format("examples"))


@pytest.mark.parametrize("sides", [(1, 4), (4, 2), (3, 5)], ids=str)
def test_independent_members_are_compared_in_every_pair(sides: tuple[int, int]) -> None:
    made = population(34, n=120, members=sides, errors=(0.1, 0.15))
    raw = raw_of(made, [(i, j) for i in range(sides[0]) for j in range(sides[1])])
    assert_rows_by_hand(audit(made).results, made, raw, NAME.format("examples"))


def test_children_are_compared_with_their_parents() -> None:
    """Parents 0 and 1 with three and one child, 2 with none: four pairs."""
    made = population(35, n=120, members=(3, 4), errors=(0.1, 0.15))
    of = [0, 0, 0, 1]
    results = audit_with_seeds(made, [0, 1, 2], [0, 1, 2, 3], [f"dense:{p}" for p in of]).results
    raw = raw_of(made, [(p, child) for child, p in enumerate(of)])
    assert_rows_by_hand(results, made, raw, NAME.format("examples"))


def test_members_clusters_and_weights_together() -> None:
    made = population(36, n=300, members=(3, 3), errors=(0.1, 0.15))
    rng = np.random.default_rng(36)
    cluster, weight = rng.integers(0, 45, 300), rng.uniform(0.5, 2, 300)
    results = audit(made, cluster=cluster, sample_weight=weight).results
    raw = raw_of(made, [(i, i) for i in range(3)], cluster=cluster, weight=weight)
    assert_rows_by_hand(results, made, raw, NAME.format("clusters"))


# ---------------------------------------------------------------- small numbers


def compared(
    x: Any, *, cluster: Any = None, weight: Any = None, group: Any = None, crossed: bool = False
) -> Comparison:
    """Changes −1, 0 or 1 of every example and pair, (examples, pairs): dense wrong where gained."""
    x = np.asarray(x)
    n, k = x.shape
    first = k if crossed else 0
    group = np.zeros(n, dtype=np.int32) if group is None else np.asarray(group, dtype=np.int32)
    cube = Cube(
        members=(
            *(CubeMember("dense", str(i)) for i in range(k)),
            *(CubeMember("small", str(first + i)) for i in range(k)),
        ),
        label_classes=("0",),
        other_classes=("1",),
        columns=(GroupColumn("g", tuple(str(i) for i in range(group.max() + 1)), group),),
        tasks=(),
        label=np.zeros(n, dtype=np.int32),
        prediction=np.concatenate([x > 0, x < 0], axis=1).astype(np.int32),
        count=np.ones(n, dtype=np.int64),
        n_examples=n,
        weight=weight,
        unit=cluster,
        unit_names=() if cluster is None else tuple(str(i) for i in range(cluster.max() + 1)),
        unit_is_cluster=cluster is not None,
    )
    return comparison(
        cube, baseline="dense", variant="small", task=None, grouping_names=("g",), positive=None,
        options=Options(),
    )  # fmt: skip


def accuracy(c: Comparison, kind: str = "overall", scope: str = "model") -> Family:
    event = metric("accuracy").event
    assert event is not None
    rates = linear_rates if scope == "model" else method_rates
    found = rates(c, metric("accuracy"), event_outcomes(c, event, kind), kind)
    assert found is not None
    return found


def excess(found: Family) -> Estimate:
    assert found.excess is not None
    return found.excess


def test_the_pooled_correlation_by_hand() -> None:
    """Twenty clusters of two in one row (one class, one level, so counted twice alike).

    Ten clusters lose both: mean −1/2, residuals ∓1/2, totals ∓1, between = 20/19 · 20, within =
    40/4, ratio 2.105 = 1 + (2 − 1) ICC, cut to 1. One of two lost in all twenty: totals 0, ICC 0.
    """
    cluster = np.repeat(np.arange(20), 2)
    together = np.repeat(np.arange(20) < 10, 2)
    apart = np.arange(40) % 2 == 0
    for lost, expected in ((together, 1.0), (apart, 0.0)):
        found = clumping_of(compared(-lost.astype(int)[:, None], cluster=cluster))
        assert found.icc == expected
        assert found.changed == (10 if lost is together else 20)


def test_a_correlation_between_0_and_1_by_hand() -> None:
    """Clusters of 4 lose 2, 1, 1 or 0, each kind ten times: mean −1/4.

    Totals of residuals −1, 0, 0, 1: between = 40/39 · 20 = 20.51; within = 160 · (1/4 − 1/16) = 30.
    Ratio .684 < 1: ICC 0. Losing 3, 1, 0, 0: totals −2, 0, 1, 1, between 40/39 · 60 = 61.54, ratio
    2.051 = 1 + 3 ICC: .350.
    """
    cluster = np.repeat(np.arange(40), 4)
    for losses, expected in (((2, 1, 1, 0), 0.0), ((3, 1, 0, 0), (40 / 39 * 60 / 30 - 1) / 3)):
        x = np.concatenate([np.r_[-np.ones(k), np.zeros(4 - k)] for k in losses * 10])
        assert clumping_of(compared(x[:, None].astype(int), cluster=cluster)).icc == pytest.approx(
            expected
        )


def test_columns_inside_clusters_do_not_hide_the_correlation() -> None:
    """Levels of two clusters each: residuals from their own means are too small by half."""
    rng = np.random.default_rng(5)
    cluster = np.repeat(np.arange(400), 10)
    x = -(rng.random(400) < 0.3).astype(int)[cluster][:, None]  # whole clusters
    assert clumping_of(compared(x, cluster=cluster, group=cluster // 2)).icc > 0.9
    x = -(rng.random(4000) < 0.3).astype(int)[:, None]
    assert clumping_of(compared(x, cluster=cluster, group=cluster // 2)).icc < 0.05


def test_identical_predictions_of_clusters_are_worth_one_example_each() -> None:
    """No cluster changed, so nothing is known: 40 clusters of 25 at t(39) = 2.023, 4.09 / 44.09."""
    found = accuracy(compared(np.zeros((1000, 1), int), cluster=np.repeat(np.arange(40), 25)))
    low, high = found.change.limits(0.05)
    assert low[0] == pytest.approx(-(2.0227**2) / (40 + 2.0227**2), abs=1e-4)
    assert high[0] == -low[0]
    assert found.change.p[0] == 1.0
    assert found.interval[0] == NAME.format("clusters")  # nothing is taken from elsewhere


def test_a_row_without_changes_says_what_it_assumes() -> None:
    """Level 1 of 40 clusters of 5 is unchanged; in level 0 whole clusters lose: ICC about 1."""
    cluster, group = np.repeat(np.arange(80), 5), np.repeat([0, 1], 200)
    lost = (cluster < 12) & (group == 0)
    c = compared(-lost.astype(int)[:, None], cluster=cluster, group=group)
    assert clumping_of(c).icc == 1.0
    found = accuracy(c, "group")
    names = list(found.interval)
    assert names == [NAME.format("clusters"), NAME.format("clusters") + ELSEWHERE]
    # n_eff = 200 / (1 + 4) = 40 examples at t(39)
    assert found.change.limits(0.05)[0][1] == pytest.approx(
        -(2.0227**2) / (40 + 2.0227**2), abs=1e-4
    )


def test_the_texts_of_an_audit() -> None:
    made = population(37, n=200, members=(3, 3), errors=(0.1, 0.15))
    quiet = np.where(made.groups["site"] == "x", True, False)
    made = replace(made, small=np.where(quiet[:, None], made.dense, made.small))
    results = audit(made).results
    unchanged = row(results, "accuracy", "group", group="site=x")
    assert unchanged["interval"] == NAME.format("examples") + ELSEWHERE
    assert row(results, "accuracy", "group", group="site=y")["interval"] == NAME.format("examples")
    method = row(results, "accuracy", "group", group="site=x", scope="method")
    assert method["interval"] == (
        "wider of two-way t over members and examples and Tango on n_eff" + ELSEWHERE
    )
    worst = row(results, "worst_group_shift", "grouping", group="site")
    assert worst["interval"] == f"minimum of simultaneous {NAME.format('examples')} limits"


def test_equal_weights_and_no_correlation_are_tango_with_t() -> None:
    """The linearised t is narrower where 3 of 300 are lost; n_eff is 300 · 299/300."""
    x = np.zeros((300, 1), int)
    x[:3] = -1
    low, high = accuracy(compared(x, weight=np.full(300, 2.5))).change.limits(0.05)
    plain = tango(300, 3, 0)
    # t alone: −.01 ± 1.968 · √(.01 · .99 / 299) = −.0213, .0013
    assert (low[0], high[0]) == pytest.approx((plain[0], plain[1]), abs=3e-4)
    assert low[0] <= plain[0] < -0.028
    assert high[0] >= plain[1] > 0.0027


def test_more_members_that_change_at_random_say_more() -> None:
    """Churn 1 % at random in 300 examples, 50 of them in the row: narrower with every member."""
    rng = np.random.default_rng(8)
    x = rng.choice([-1, 0, 1], (300, 12), p=[0.01, 0.98, 0.01])
    group = np.repeat([0, 1], [50, 250])
    x[:50] = 0
    lows = [
        accuracy(compared(x[:, :k], group=group), "group").change.limits(0.1)[0][0]
        for k in (2, 4, 12)
    ]
    assert lows[0] < lows[1] < lows[2] < 0
    # twelve unchanged predictions on each of 50 examples: about 600 / (1 + 11 ICC)
    assert lows[2] > -2.7055 / (300 + 2.7055)


def test_copies_of_one_member_say_nothing_new() -> None:
    """Members that are all alike: ICC 1, so every number of copies has the limits of two."""
    rng = np.random.default_rng(9)
    x = rng.choice([-1, 0, 1], (300, 1), p=[0.03, 0.95, 0.02])
    found = [accuracy(compared(np.repeat(x, k, axis=1))) for k in (2, 3, 8)]
    for one in found[1:]:
        np.testing.assert_allclose(
            one.change.limits(0.05), found[0].change.limits(0.05), atol=1e-12
        )
    low, high = found[0].change.limits(0.05)
    plain = tango(300, (x < 0).sum(), (x > 0).sum())
    assert (low[0], high[0]) == pytest.approx((plain[0], plain[1]), abs=1e-3)


def test_identical_predictions_of_members_are_worth_their_examples() -> None:
    low, _ = accuracy(compared(np.zeros((150, 5), int))).change.limits(0.1)
    assert low[0] == pytest.approx(tango(150, 0, 0, 0.1)[0])


@pytest.mark.parametrize("scope", ["model", "method"])
@pytest.mark.parametrize("crossed", [False, True], ids=["paired", "independent"])
@pytest.mark.parametrize("clustered", [False, True], ids=["examples", "clusters"])
def test_p_is_the_smallest_level_at_which_the_excess_excludes_0(
    scope: str, crossed: bool, clustered: bool
) -> None:
    """From nothing to p = 1e-30: losses of a group from 0 to 60 %, in twelve samples each."""
    smallest = 1.0
    for seed, loss in enumerate(np.repeat([0.02, 0.05, 0.15, 0.6], 3)):
        rng = np.random.default_rng([7, seed])
        n, group = 1200, np.repeat([0, 1, 2], [300, 300, 600])
        lost = np.where(group == 0, loss, 0.02)[:, None]
        u = rng.random((n, 4))
        x = np.where(u < lost, -1, np.where(u < lost + 0.02, 1, 0))
        cluster = np.arange(n) // 4 if clustered else None
        c = compared(x, group=group, cluster=cluster, crossed=crossed)
        found = accuracy(c, "group", scope)
        p = excess(found).p
        inside, outside = excess(found).limits(p * (1 - 1e-6)), excess(found).limits(p * (1 + 1e-6))
        assert ((inside[0] <= 0) & (inside[1] >= 0)).all()
        assert ((outside[0] > 0) | (outside[1] < 0) | (p == 1)).all()
        smallest = min(smallest, float(p.min()))
    assert smallest < (1e-30 if scope == "model" else 1e-4)


@pytest.mark.parametrize("scope", ["model", "method"])
def test_p_of_a_shift_is_the_smallest_level_at_which_the_limits_exclude_0(scope: str) -> None:
    rng = np.random.default_rng(12)
    x = rng.choice([-1, 0, 1], (400, 4), p=[0.06, 0.91, 0.03])
    found = accuracy(compared(x, group=np.arange(400) % 3), "group", scope)
    p = found.change.p
    inside, outside = found.change.limits(p * (1 - 1e-6)), found.change.limits(p * (1 + 1e-6))
    assert ((inside[0] <= 0) & (inside[1] >= 0)).all()
    assert ((outside[0] > 0) | (outside[1] < 0)).all()


def test_a_contrast_of_two_levels_is_one_contrast() -> None:
    """Both rows have the same excess with another sign, the same limits and the same p."""
    rng = np.random.default_rng(13)
    sizes = np.r_[rng.integers(1, 6, 40), rng.integers(5, 40, 30)]
    cluster = np.repeat(np.arange(70), sizes)
    x = rng.choice([-1, 0, 1], (len(cluster), 1), p=[0.06, 0.9, 0.04])
    found = accuracy(compared(x, cluster=cluster, group=(cluster >= 40).astype(int)), "group")
    low, high = excess(found).limits(0.05)
    assert excess(found).p[0] == pytest.approx(excess(found).p[1], rel=1e-9)
    assert (low[0], high[0]) == pytest.approx((-high[1], -low[1]), abs=1e-12)


def test_an_excess_needs_20_clusters_on_both_sides() -> None:
    cluster = np.repeat(np.arange(45), 10)
    x = -(np.arange(450) % 17 == 0).astype(int)[:, None]
    found = accuracy(compared(x, cluster=cluster, group=(cluster >= 30).astype(int)), "group")
    assert np.isnan(excess(found).p).all()
    assert np.isnan(excess(found).limits(0.05)).all()
    assert np.isfinite(found.change.limits(0.05)[0][0])  # the shift of the 30 clusters has limits
    assert np.isnan(found.change.limits(0.05)[0][1])


def test_discordance_and_design_effect_are_of_predictions_not_of_net_changes() -> None:
    """One lost and one gained in every third cluster of four: churn 2/12, and no net change.

    Residual totals are 0, so ICC 0 and n_eff = n: a design effect of 1.
    """
    x = np.zeros((240, 1), int)
    x[0::12], x[1::12] = -1, 1
    found = accuracy(compared(x, cluster=np.arange(240) // 4))
    assert found.sums is not None
    assert found.sums.discordance[0] == pytest.approx(2 / 12)
    assert found.sums is not None
    assert found.sums.design_effect[0] == pytest.approx(1.0)
    # whole clusters of four, a third of them: ICC 1, so 240 predictions are worth 60
    x = -(np.arange(240) // 4 % 3 == 0).astype(int)[:, None]
    found = accuracy(compared(x, cluster=np.arange(240) // 4))
    assert found.sums is not None
    assert found.sums.design_effect[0] == pytest.approx(4.0)


def test_the_gate_sees_the_same_limits() -> None:
    rng = np.random.default_rng(14)
    n = 600
    label, cluster = rng.integers(0, 2, n), np.arange(n) // 6
    small = np.where(rng.random(n) < 0.03, 1 - label, label)
    audited = fw.audit(label, {"dense": label, "small": small}, cluster=cluster, n_boot=20,
                       alpha=0.1)  # fmt: skip
    found = row(audited.results, "accuracy")
    bounds = audited.result.bounds
    here = (bounds["metric"] == "accuracy") & (bounds["by"] == "overall")
    shift = bounds[here & (bounds["quantity"] == "shift")].iloc[0]
    expected = pytest.approx((found["ci_low"], found["ci_high"]), abs=1e-12)
    assert (shift["low_1"], shift["high_1"]) == expected


# ---------------------------------------------------------------- numbers instead of events

WORD_ERRORS = Metric(
    name="word_error_rate", kind="rate", function=lambda counts: counts, by=("overall", "group"),
    better="lower", low=0, high=np.inf, summary="errors per word", formula="errors / words",
    source="test", undefined="no words",
)  # fmt: skip


@dataclass(frozen=True)
class Sentences:
    """Word errors of every sentence and member; sentences have a weight, so each is a cell."""

    c: Comparison
    words: Any
    errors: Any  # (sentences, members)

    def outcomes(self, kind: str) -> list[Outcomes]:
        return list(cell_outcomes(self.c, self.errors, kind, self.words))


def sentences(members: int) -> Sentences:
    rng = np.random.default_rng(6)
    n = 40
    c = compared(
        np.zeros((n, members), int),
        weight=rng.uniform(0.5, 2, n),
        group=np.repeat([0, 1], [15, 25]),
    )
    assert c.cube.n_cells == n
    words = rng.integers(5, 30, n).astype(float)
    rates = np.repeat([0.2, 0.3], members)
    return Sentences(c, words, rng.poisson(rates * words[:, None]).astype(float))


def linearised_by_hand(a: Any, d: Any) -> tuple[float, float]:
    """Ratio of totals over sentences, and its variance G / (G − 1) Σ (a − R d)² / (Σ d)²."""
    value, g = a.sum() / d.sum(), len(a)
    return value, g / (g - 1) * ((a - value * d) ** 2).sum() / d.sum() ** 2


def test_errors_per_word_of_two_models_by_hand() -> None:
    made = sentences(1)
    w = made.c.cube.weight
    assert w is not None
    found = linear_rates(made.c, WORD_ERRORS, made.outcomes("overall"), "overall")
    assert found is not None
    assert found.baseline is not None
    t = scipy.stats.t.ppf(0.975, 39)
    for estimate, errors in (
        (found.baseline, made.errors[:, 0]),
        (found.compressed, made.errors[:, 1]),
        (found.change, made.errors[:, 1] - made.errors[:, 0]),
    ):
        value, variance = linearised_by_hand(w * errors, w * made.words)
        low, high = estimate.limits(0.05)
        assert estimate.value[0] == pytest.approx(value)
        assert (low[0], high[0]) == pytest.approx(
            (value - t * variance**0.5, value + t * variance**0.5)
        )
    assert found.change.p is not None
    assert found.change.p[0] == pytest.approx(2 * scipy.stats.t.sf(value / variance**0.5, 39))
    assert found.interval == "linearised t over examples"
    # above 1 there may be more errors than words: bounds are the metric's, not those of a share
    many = replace(made, errors=made.errors + 2 * made.words[:, None])
    above = linear_rates(many.c, WORD_ERRORS, many.outcomes("overall"), "overall")
    assert above is not None
    assert above.compressed.limits(0.05)[0][0] > 2


def test_numbers_by_group_become_rows_with_excesses_and_limits_for_the_gate() -> None:
    made = sentences(1)
    outcomes = made.outcomes("group")
    family = linear_rates(made.c, WORD_ERRORS, outcomes, "group")
    assert family is not None
    (built,) = scopes(made.c, [(family, outcomes)])
    rows = built.block
    w, here = made.c.cube.weight, made.c.groupings[0].code == 0
    assert w is not None
    shifts = [
        (w * (made.errors[:, 1] - made.errors[:, 0]))[at].sum() / (w * made.words)[at].sum()
        for at in (here, ~here)
    ]
    assert rows["shift"].tolist() == pytest.approx(shifts)
    assert rows["excess_shift"].tolist() == pytest.approx(
        [shifts[0] - shifts[1], shifts[1] - shifts[0]]
    )
    assert (rows["sim_low"] < rows["ci_low"]).all()
    assert (rows["excess_low"] < rows["excess_shift"]).all()
    assert np.isfinite(rows["bounds_shift"]).all()
    assert np.isfinite(rows["p_adjusted"]).all()


def test_numbers_of_several_members_have_a_two_way_t() -> None:
    made = sentences(3)
    w = made.c.cube.weight
    assert w is not None
    found = method_rates(made.c, WORD_ERRORS, made.outcomes("overall"), "overall")
    assert found is not None
    change = w[:, None] * (made.errors[:, 3:] - made.errors[:, :3])
    each = [linearised_by_hand(a, w * made.words) for a in change.T]
    value, together = linearised_by_hand(change.mean(axis=1), w * made.words)
    own = sum(variance for _, variance in each)
    by_member = np.var([v for v, _ in each], ddof=1) / 3
    interaction = max(own - 3 * together, 0.0) / 6
    variance = max(by_member + together - interaction, by_member, together)
    low, high = found.change.limits(0.05)
    assert found.change.value[0] == pytest.approx(value)
    spread = by_member**2 / 2 + together**2 / 39 + interaction**2 / 78
    t = scipy.stats.t.ppf(0.975, max(variance**2 / spread, 1))
    assert high[0] - low[0] == pytest.approx(2 * t * variance**0.5)
    assert found.interval == "two-way t over members and examples"


def test_numbers_that_never_vary_have_no_limits() -> None:
    """Equal differences say nothing about the next sentence; a share would have Tango's limits."""
    made = sentences(1)
    made = replace(made, errors=np.stack([0 * made.words, 0.1 * made.words], axis=1))
    found = linear_rates(made.c, WORD_ERRORS, made.outcomes("overall"), "overall")
    assert found is not None
    assert found.change.value[0] == pytest.approx(0.1)
    assert np.isnan(found.change.limits(0.05)).all()
