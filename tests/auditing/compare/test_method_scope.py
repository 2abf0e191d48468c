"""Scope `method`: members are sampled too. The two-way t by a textbook, and what is drawn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from fairweight.auditing.metrics.registry import register, unregister

from ..strategies import row
from .made_populations import (
    Population,
    audit,
    audit_with_seeds,
    independent_population,
    paired_population,
    population,
)
from .wider_by_hand import Raw, raw_of, tango_by_hand

Matrix = NDArray[Any]
NAME = "wider of two-way t over members and examples and Tango on n_eff"


def parts(x: Matrix) -> tuple[float, float, float]:
    """s²(member means)/K, s²(example means)/n and MS_int/(K n) of members × examples."""
    k, n = x.shape
    rest = x - x.mean(axis=1, keepdims=True) - x.mean(axis=0) + x.mean()
    mean_square = (rest**2).sum() / ((k - 1) * (n - 1))
    return (
        x.mean(axis=1).var(ddof=1) / k,
        x.mean(axis=0).var(ddof=1) / n,
        mean_square / (k * n),
    )


@dataclass(frozen=True)
class Student:
    """An estimate, its variance and the degrees of freedom of that."""

    estimate: float
    variance: float
    degrees: float

    def limits(self, alpha: float = 0.05) -> tuple[float, float]:
        reach = stats.t.ppf(1 - alpha / 2, self.degrees) * math.sqrt(self.variance)
        return self.estimate - reach, self.estimate + reach

    @property
    def p(self) -> float:
        return float(2 * stats.t.sf(abs(self.estimate) / math.sqrt(self.variance), self.degrees))


def two_way(
    estimate: float,
    members: Sequence[tuple[float, float]],
    examples: Sequence[tuple[float, float]],
    interactions: Sequence[tuple[float, float]],
) -> Student:
    """Every part with its degrees of freedom."""
    by_member, by_example, shared = (
        sum(part for part, _ in terms) for terms in (members, examples, interactions)
    )
    variance = max(by_member + by_example - shared, by_member, by_example)
    squares = sum(part**2 / degrees for part, degrees in (*members, *examples, *interactions))
    return Student(estimate, variance, max(variance**2 / squares, 1.0))


def of_differences(x: Matrix) -> Student:
    """Paired members: K differences of n examples (or one side's values)."""
    k, n = x.shape
    a, b, c = parts(x)
    return two_way(x.mean(), [(a, k - 1)], [(b, n - 1)], [(c, (k - 1) * (n - 1))])


def of_two_sides(dense: Matrix, small: Matrix) -> Student:
    """Independent members: their parts added, the examples' part of the difference of means."""
    n = dense.shape[1]
    sides = [(len(x), *parts(x)) for x in (dense, small)]
    examples = (small.mean(axis=0) - dense.mean(axis=0)).var(ddof=1) / n
    return two_way(
        small.mean() - dense.mean(),
        [(a, k - 1) for k, a, _, _ in sides],
        [(examples, n - 1)],
        [(c, (k - 1) * (n - 1)) for k, _, _, c in sides],
    )


def wider(t: Student, raw: Raw, here: Matrix, alpha: float = 0.05) -> tuple[float, float, float]:
    """Low, high and p: the wider of the two-way t and Tango's limits on n_eff, with z."""
    n, churn = raw.n_eff(here, t.variance), raw.churn(here)
    low, high = tango_by_hand(n, churn, t.estimate, stats.norm.isf(alpha / 2))
    p = 2 * stats.norm.sf(abs(t.estimate) * math.sqrt(n / churn))
    return min(low, t.limits(alpha)[0]), max(high, t.limits(alpha)[1]), max(p, t.p)


def slices(made: Population) -> dict[tuple[str, str, dict[str, str]] | Any, Matrix]:
    """Rows whose rate is the mean of right answers, and the examples in them."""
    everyone = {("accuracy", "overall", ""): np.ones(len(made.label), dtype=bool)}
    by_class = {("recall", "class", c): made.label == c for c in "abc"}
    by_group = {
        ("accuracy", "group", f"{name}={level}"): column == level
        for name, column in made.groups.items()
        for level in np.unique(column)
    }
    return everyone | by_class | by_group


def find(results: pd.DataFrame, name: str, by: str, what: str, scope: str) -> pd.Series:
    where = {"class": {"cls": what}, "group": {"group": what}, "overall": {}}[by]
    return row(results, name, by, scope=scope, **where)


def test_paired_members_by_the_textbook() -> None:
    made, audited = paired_population()
    dense, small = made.right
    raw = raw_of(made, [(i, i) for i in range(5)])
    for (name, by, what), here in slices(made).items():
        found = find(audited.results, name, by, what, "method")
        low, high, p = wider(of_differences((small - dense)[:, here]), raw, here)
        assert found["shift"] == pytest.approx((small - dense)[:, here].mean(), abs=1e-12)
        assert (found["ci_low"], found["ci_high"]) == pytest.approx((low, high), abs=1e-9)
        assert found["p_value"] == pytest.approx(p, rel=1e-9)
        low, high = of_differences(dense[:, here]).limits()
        assert found["baseline_low"] == pytest.approx(max(low, 0), abs=1e-12)
        assert found["baseline_high"] == pytest.approx(min(high, 1), abs=1e-12)
        assert found["interval"] == NAME
        assert found["status"] == "ok"


def test_independent_members_by_the_textbook() -> None:
    """Three dense against six small ones."""
    made, audited = independent_population()
    dense, small = made.right
    assert audited.result.pairing == {"small": "independent"}
    raw = raw_of(made, [(i, j) for i in range(3) for j in range(6)])
    for (name, by, what), here in slices(made).items():
        found = find(audited.results, name, by, what, "method")
        low, high, p = wider(of_two_sides(dense[:, here], small[:, here]), raw, here)
        assert (found["ci_low"], found["ci_high"]) == pytest.approx((low, high), abs=1e-9)
        assert found["p_value"] == pytest.approx(p, rel=1e-9)
        low, high = of_differences(small[:, here]).limits()
        assert found["compressed_low"] == pytest.approx(max(low, 0), abs=1e-12)
        assert found["compressed_high"] == pytest.approx(min(high, 1), abs=1e-12)
        assert (found["n_seeds_baseline"], found["n_seeds_compressed"]) == (3, 6)


def test_rates_of_other_denominators_by_the_textbook() -> None:
    """FPR of a: share predicted as a among examples of other classes.

    Its own lost and gained predictions; how they clump is taken from right and wrong ones.
    """
    made, audited = paired_population()
    others = made.label != "a"
    dense, small = ((side == "a").astype(float).T for side in (made.dense, made.small))
    clumped = raw_of(made, [(i, i) for i in range(5)]).icc
    raw = replace(raw_of(made, [(i, i) for i in range(5)]), dense=dense, small=small, known=clumped)
    found = row(audited.results, "fpr", "class", cls="a", scope="method")
    low, high, _ = wider(of_differences((small - dense)[:, others]), raw, others)
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((low, high), abs=1e-9)
    assert found["n"] == others.sum()


def test_the_excess_by_the_textbook() -> None:
    """Each pair's excess is its shift in the group minus its shift outside."""
    made, audited = paired_population()
    dense, small = made.right
    x, here = small - dense, made.groups["sex"] == "F"
    k = len(x)
    sides = {name: (mask, *parts(x[:, mask])) for name, mask in (("in", here), ("out", ~here))}
    each = x[:, here].mean(axis=1) - x[:, ~here].mean(axis=1)
    t = two_way(
        each.mean(),
        [(each.var(ddof=1) / k, k - 1)],
        [(b, mask.sum() - 1) for mask, _, b, _ in sides.values()],
        [(c, (k - 1) * (mask.sum() - 1)) for mask, _, _, c in sides.values()],
    )
    raw = raw_of(made, [(i, i) for i in range(5)])

    def limits(alpha: float) -> tuple[float, float]:
        """The wider of it and MOVER on answers / max(1, V_e / (V_iid + V_iid)), with z."""
        inflated = max(1.0, t.variance / (raw.iid(here) + raw.iid(~here)))
        ends = []
        for mask in (here, ~here):
            d, z = raw.shift(mask), stats.norm.isf(alpha / 2)
            low, high = tango_by_hand(raw.answers(mask) / inflated, raw.churn(mask), d, z)
            ends.append((d - low, high - d))
        (down, up), (down_out, up_out) = ends
        low, high = t.limits(alpha)
        return (
            min(low, t.estimate - math.hypot(down, up_out)),
            max(high, t.estimate + math.hypot(up, down_out)),
        )

    found = row(audited.results, "accuracy", "group", group="sex=F", scope="method")
    assert found["excess_shift"] == pytest.approx(each.mean(), abs=1e-12)
    assert (found["excess_low"], found["excess_high"]) == pytest.approx(limits(0.05), abs=1e-9)
    touched = limits(found["excess_p"])
    assert min(abs(limit) for limit in touched) == pytest.approx(0, abs=1e-8)


def test_simultaneous_limits_and_the_worst_group() -> None:
    """Limits at α/m: m = 5 levels of both columns in the family, 3 levels in the column site."""
    made, audited = paired_population()
    x = made.right[1] - made.right[0]
    found = row(audited.results, "accuracy", "group", group="site=x", scope="method")
    assert found["n_family"] == 5
    raw = raw_of(made, [(i, i) for i in range(5)])

    def limits(level: str, m: int) -> tuple[float, float, float]:
        here = made.groups["site"] == level
        return wider(of_differences(x[:, here]), raw, here, 0.05 / m)

    expected = limits("x", 5)[:2]
    assert (found["sim_low"], found["sim_high"]) == pytest.approx(expected, abs=1e-9)
    by_site = [limits(level, 3) for level in "xyz"]
    worst = row(audited.results, "worst_group_shift", "grouping", group="site", scope="method")
    assert worst["ci_low"] == pytest.approx(min(low for low, _, _ in by_site), abs=1e-9)
    assert worst["ci_high"] == pytest.approx(min(high for _, high, _ in by_site), abs=1e-9)


def test_flips_by_the_textbook() -> None:
    made, audited = paired_population()
    flipped = (made.dense != made.small).astype(float).T
    low, high = of_differences(flipped).limits()
    found = row(audited.results, "flips", scope="method")
    assert found["compressed"] == pytest.approx(flipped.mean(), abs=1e-12)
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((low, high), abs=1e-12)


@pytest.mark.parametrize("pairing", ["seed", "independent"])
def test_a_bootstrapped_mean_has_the_limits_of_a_rate(pairing: str) -> None:
    """The share of right answers as a metric of counts is accuracy by another road."""
    made = population(2, n=400, members=(4, 4 if pairing == "seed" else 5))
    register(
        name="test_share_right", kind="value", by=("overall", "group"), better="higher", low=0,
        high=1, summary="share right", formula="right / n", source="test", undefined="never",
    )(lambda counts: counts.correct.sum(-1) / counts.label.sum(-1))  # fmt: skip
    try:
        results = audit(made, n_boot=1000).results
    finally:
        unregister("test_share_right")
    dense, small = made.right
    everyone = np.ones(len(made.label), dtype=bool)
    for by, where, here in (
        ("overall", {}, everyone),
        ("group", {"group": "site=x"}, made.groups["site"] == "x"),
    ):
        drawn = row(results, "test_share_right", by, scope="method", **where)
        closed = row(results, "accuracy", by, scope="method", **where)
        assert drawn["interval"] == "two-way t over members and examples"
        assert drawn["shift"] == pytest.approx(closed["shift"], abs=1e-12)
        x = dense[:, here], small[:, here]
        low, high = (
            of_differences(x[1] - x[0]) if pairing == "seed" else of_two_sides(*x)
        ).limits()
        expected = {
            "ci_low": low,
            "ci_high": high,
            "compressed_low": closed["compressed_low"],
            "compressed_high": closed["compressed_high"],
        }
        # 1,000 draws know a standard error to about 2 %.
        for name, value in expected.items():
            assert drawn[name] == pytest.approx(value, abs=0.05 * (high - low)), name
        if by == "group":
            assert drawn["excess_shift"] == pytest.approx(closed["excess_shift"], abs=1e-12)
            width, wider_width = (r["excess_high"] - r["excess_low"] for r in (drawn, closed))
            assert 0.95 * width < wider_width < 1.6 * width  # the wider of it and MOVER


def test_clusters_and_weights_by_the_textbook() -> None:
    """Ratios of weighted totals per cluster, linearised, in place of examples' means."""
    made = population(4, n=300, members=(4, 4))
    rng = np.random.default_rng(4)
    person, weight = rng.integers(0, 50, 300), rng.uniform(0.5, 2, 300)
    results = audit(made, cluster=person, sample_weight=weight).results
    x, here = made.right[1] - made.right[0], made.groups["site"] == "x"
    raw = raw_of(made, [(i, i) for i in range(4)], cluster=person, weight=weight)
    k, everyone = len(x), len(np.unique(person))

    def influence(values: Matrix, chosen: Matrix) -> tuple[float, Matrix]:
        """The weighted mean, and what each of the 50 clusters adds to its error."""
        used = np.where(chosen, weight, 0.0)
        mean = float((used * values).sum() / used.sum())
        return mean, np.bincount(person, used * (values - mean), 50) / used.sum()

    def own(values: Matrix, chosen: Matrix) -> tuple[float, float]:
        mean, parts_ = influence(values, chosen)
        g = len(np.unique(person[chosen]))
        return mean, g / (g - 1) * float((parts_**2).sum())

    def excess(values: Matrix, chosen: Matrix) -> tuple[float, float]:
        (mean, one), (rest, other) = influence(values, chosen), influence(values, ~chosen)
        return mean - rest, everyone / (everyone - 1) * float(((one - other) ** 2).sum())

    def student(of: Any, chosen: Matrix, g: float) -> Student:
        each = [of(one, chosen) for one in x]
        _, together = of(x.mean(axis=0), chosen)
        means = np.array([mean for mean, _ in each])
        both = sum(variance for _, variance in each)
        shared = max(both - k * together, 0) / (k * (k - 1))
        return two_way(
            means.mean(),
            [(means.var(ddof=1) / k, k - 1)],
            [(together, g - 1)],
            [(shared, (k - 1) * (g - 1))],
        )

    found = row(results, "accuracy", "group", group="site=x", scope="method")
    assert found["n_clusters"] == len(np.unique(person[here]))
    t = student(own, here, len(np.unique(person[here])))
    q = stats.t.isf(0.025, raw.degrees(here))
    low, high = tango_by_hand(raw.n_eff(here, t.variance), raw.churn(here), t.estimate, q)
    expected = min(low, t.limits()[0]), max(high, t.limits()[1])
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(expected, abs=1e-9)
    degrees = min(raw.degrees(here), raw.degrees(~here))
    t, q = student(excess, here, degrees + 1), stats.t.isf(0.025, degrees)
    inflated = t.variance / (raw.iid(here) + raw.iid(~here))
    sides = []
    for side in (here, ~here):
        n = raw.answers(side) / max(1.0, raw.kish(side), inflated)
        sides.append((raw.shift(side), *tango_by_hand(n, raw.churn(side), raw.shift(side), q)))
    (d, low, high), (d_rest, low_rest, high_rest) = sides
    expected = (
        min(t.limits()[0], d - d_rest - math.hypot(d - low, high_rest - d_rest)),
        max(t.limits()[1], d - d_rest + math.hypot(high - d, d_rest - low_rest)),
    )
    assert (found["excess_low"], found["excess_high"]) == pytest.approx(expected, abs=1e-9)


def test_children_of_one_parent_are_averaged() -> None:
    """Parents 0, 1, 2 with three, one and two children: three differences, each counted once."""
    made = replace(population(3, n=70, members=(3, 6)), groups={})
    of = np.array([0, 0, 0, 1, 2, 2])
    parents: list[str | None] = [f"dense:{p}" for p in of]
    results = audit_with_seeds(made, [0, 1, 2], list(range(6)), parents).results
    dense, small = made.right
    x = np.stack([small[of == p].mean(axis=0) - dense[p] for p in range(3)])
    found = row(results, "accuracy", scope="method")
    assert found["shift"] == pytest.approx(x.mean(), abs=1e-12)
    low, high = of_differences(x).limits()
    assert found["ci_low"] <= low + 1e-12  # or Tango's, on six pairs that count unlike units
    assert found["ci_high"] >= high - 1e-12
    # about these models every member counts alike
    found = row(results, "accuracy", scope="model")
    assert found["shift"] == pytest.approx(small.mean() - dense.mean(), abs=1e-12)
    # flips: the mean over parents of their children's shares, and limits about it
    flips = (made.small != made.dense[:, of]).astype(float).T
    x = np.stack([flips[of == p].mean(axis=0) for p in range(3)])
    found = row(results, "flips", scope="method")
    assert found["compressed"] == pytest.approx(x.mean(), abs=1e-12)
    expected = of_differences(x).limits()
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(expected, abs=1e-12)
    # precision of each parent's children averaged first
    found = row(results, "precision", "class", cls="a", scope="method")
    own = [(made.label == "a")[column == "a"].mean() for column in made.small.T]
    expected = np.mean([np.mean(np.array(own)[of == p]) for p in range(3)])
    assert found["compressed"] == pytest.approx(expected, abs=1e-12)


def test_changes_of_mean_rates_draw_members_and_examples() -> None:
    """`normalized_error_change` against a bootstrap written as a loop over members and examples."""
    made = replace(population(6, n=120, members=(4, 4), errors=(0.3, 0.4)), groups={})
    found = row(audit(made, n_boot=1000).results, "normalized_error_change", scope="method")
    dense, small = (1 - right for right in made.right)
    rng = np.random.default_rng(6)
    draws = []
    for _ in range(2000):
        pairs, examples = rng.integers(0, 4, 4), rng.integers(0, 120, 120)
        before, after = (side[pairs][:, examples].mean() for side in (dense, small))
        draws.append(100 * (after - before) / before)
    low, high = np.quantile(draws, [0.025, 0.975])
    assert found["compressed"] == pytest.approx(100 * (small.mean() / dense.mean() - 1), rel=1e-12)
    assert found["ci_low"] == pytest.approx(low, abs=0.08 * (high - low))
    assert found["ci_high"] == pytest.approx(high, abs=0.08 * (high - low))
    # about these models only examples are drawn
    fixed = row(audit(made).results, "normalized_error_change", scope="model")
    assert fixed["ci_high"] - fixed["ci_low"] < high - low


def test_pairs_are_drawn_together() -> None:
    """Children that answer like their parents never differ, whoever is drawn; strangers do."""
    made = population(7, n=60, members=(4, 4), errors=(0.4, 0.4))
    made = replace(made, small=made.dense, groups={})
    one, other = audit(made), audit_with_seeds(made, [0, 1, 2, 3], [4, 5, 6, 7])
    paired, strangers = (
        row(audited.results, "normalized_error_change", scope="method") for audited in (one, other)
    )
    assert not paired["ci_high"] > 0  # 0, or none where every draw is alike
    assert strangers["ci_low"] < 0 < strangers["ci_high"]


def test_the_upper_end_of_sde_reaches_further_about_the_method(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One deviation above the estimate about these models, two about the method."""

    def reached(estimate: Matrix, *_: Any, reach_up: float, **__: Any) -> tuple[Matrix, Matrix]:
        return estimate - reach_up, estimate + reach_up

    monkeypatch.setattr("fairweight.auditing.intervals.bootstrap.inflated_limits", reached)
    rng = np.random.default_rng(8)
    label = np.repeat([0, 1], 1000)  # fewer of a class, and there are no limits
    dense, small = (np.where(rng.random((3, 2000)) < e, 1 - label, label).T for e in (0.1, 0.2))
    results = audit(Population(label, dense, small, {})).results
    for scope, reach in (("model", 1.0), ("method", 2.0)):
        found = row(results, "sde_pp", scope=scope)
        assert found["ci_high"] - found["compressed"] == pytest.approx(reach)
