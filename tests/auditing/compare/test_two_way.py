"""Scope `method`: members are sampled too. The two-way t by a textbook, and identities."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from fairweight.auditing.metrics.registry import register, unregister
from fairweight.auditing.result import RESULT_COLUMNS

from ..strategies import row
from .made_populations import (
    Population,
    audit,
    audit_with_seeds,
    independent_population,
    paired_population,
    population,
)
from .scope_rows import CLOSED, ESTIMATES, KEYS, LIMITS, rates, same
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

    monkeypatch.setattr("fairweight.auditing.compare.bootstrap.inflated_limits", reached)
    rng = np.random.default_rng(8)
    label = np.repeat([0, 1], 1000)  # fewer of a class, and there are no limits
    dense, small = (np.where(rng.random((3, 2000)) < e, 1 - label, label).T for e in (0.1, 0.2))
    results = audit(Population(label, dense, small, {})).results
    for scope, reach in (("model", 1.0), ("method", 2.0)):
        found = row(results, "sde_pp", scope=scope)
        assert found["ci_high"] - found["compressed"] == pytest.approx(reach)


def test_members_in_another_order_change_nothing() -> None:
    made, audited = paired_population()
    order = [3, 1, 4, 0, 2]
    other = audit(made.of(order, order))
    for scope in ("model", "method"):
        same(
            rates(audited.results, scope),
            rates(other.results, scope),
            [*CLOSED, "noise_floor", "p_retraining"],
        )


def test_swapping_the_sides_negates_shifts() -> None:
    made, audited = independent_population()
    swapped = rates(audit(replace(made, dense=made.small, small=made.dense)).results)
    mine = rates(audited.results)
    mirrored = swapped.assign(
        shift=-swapped["shift"],
        excess_shift=-swapped["excess_shift"],
        ci_low=-swapped["ci_high"],
        ci_high=-swapped["ci_low"],
        sim_low=-swapped["sim_high"],
        sim_high=-swapped["sim_low"],
        excess_low=-swapped["excess_high"],
        excess_high=-swapped["excess_low"],
        baseline=swapped["compressed"],
        compressed=swapped["baseline"],
        baseline_low=swapped["compressed_low"],
        baseline_high=swapped["compressed_high"],
        compressed_low=swapped["baseline_low"],
        compressed_high=swapped["baseline_high"],
    )
    same(mine, mirrored, CLOSED)


def test_other_names_of_groups_change_nothing() -> None:
    made, audited = independent_population()
    names = {"x": "zz", "y": "aa", "z": "m"}  # in another alphabetical order
    renamed = replace(
        made, groups={"site": np.array([names[value] for value in made.groups["site"]])}
    )
    back = {f"site={new}": f"site={old}" for old, new in names.items()}
    other = audit(renamed).results
    other = other.assign(group=other["group"].replace(back))
    # Names order the cells, and the order decides which sign a cell gets (scope `model`).
    plain = [column for column in CLOSED if not column.startswith("sim_")]
    for scope, columns in (("model", plain), ("method", CLOSED)):
        same(rates(audited.results, scope), rates(other, scope), columns)


def test_every_example_twice() -> None:
    """Estimates stay; members vary as before and examples by half, so limits narrow by less.

    By how much less depends on the degrees of freedom too: more of them where examples vary less.
    """
    made, audited = paired_population()
    twice = audit(made.examples(np.tile(np.arange(90), 2)), sample_id=np.arange(180))
    same(
        rates(audited.results),
        rates(twice.results),
        ["baseline", "compressed", "shift", "excess_shift", "p_retraining", "noise_floor"],
    )
    found, before = (
        row(results, "accuracy", scope="method") for results in (twice.results, audited.results)
    )
    width, was = (one["ci_high"] - one["ci_low"] for one in (found, before))
    assert 0.6 * was < width < was
    assert found["n"] == 180


@pytest.mark.parametrize("which", [paired_population, independent_population])
def test_clusters_of_one_example_are_examples(which: Any) -> None:
    made, audited = which()
    clustered = audit(made, cluster=np.arange(len(made.label))).results
    mine, other = rates(audited.results), rates(clustered)
    enough = other["n_clusters"] >= 20
    assert enough.sum() > 20
    name = "wider of two-way t over members and clusters and Tango on n_eff"
    assert other["interval"].str.startswith(name).all()
    mine, other = mine[enough.to_numpy()], other[enough]
    same(mine, other, [*ESTIMATES, "baseline_low", "baseline_high"])
    # Tango's quantile is normal for members, and of t with n − 1 degrees of freedom for clusters
    for column in ("ci_low", "ci_high"):
        reach, wider = ((frame[column] - frame["shift"]).abs() for frame in (mine, other))
        assert (wider >= reach - 1e-12).all()
        assert (wider <= 1.15 * reach + 1e-12).all()  # (t(19) / z)² = 1.14
    # below 20 clusters nothing is said about precision, flips included
    few = clustered[clustered["status"].str.contains("clusters")]
    assert len(few)
    assert few[LIMITS].isna().all(axis=None)


def test_weights_of_one_are_no_weights() -> None:
    """Every row and column of a population's audit, drawn ones included."""
    made, audited = independent_population()
    weighted = audit(made, sample_weight=np.ones(len(made.label))).results
    columns = [c for c in RESULT_COLUMNS if c != "interval"]
    pd.testing.assert_frame_equal(
        audited.results[columns], weighted[columns], check_exact=False, rtol=1e-9, atol=1e-12
    )


def test_both_scopes_have_the_same_estimates() -> None:
    """Balanced populations: every parent (member) counts alike in either scope."""
    for _, audited in (paired_population(), independent_population()):
        frame = audited.results.fillna({"group": "", "class": ""})
        model, method = (
            frame[(frame["scope"] == scope) & (frame["metric"] != "class_impact")]
            .set_index(KEYS)
            .sort_index()
            for scope in ("model", "method")
        )
        same(model, method, [*ESTIMATES, "n", "matched", "noise_floor"])
        same(model, method, ["n_seeds_baseline", "n_seeds_compressed", "level"])


def test_the_same_random_state_gives_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    made, audited = independent_population()
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    again = audit(made)
    pd.testing.assert_frame_equal(audited.results, again.results, check_exact=True)
    pd.testing.assert_frame_equal(audited.result.bounds, again.result.bounds, check_exact=True)
    pd.testing.assert_frame_equal(audited.per_seed, again.per_seed, check_exact=True)
    other = audit(made, random_state=1).results
    assert (
        (row(other, "kappa", scope="method")["ci_low"])
        != row(audited.results, "kappa", scope="method")["ci_low"]
    )


@pytest.mark.parametrize("roots", ["dense", "elsewhere"])
def test_copies_of_a_child_are_that_child(roots: str) -> None:
    """Siblings that answer alike add nothing: three lines stay three, paired or independent."""
    made = replace(population(5, n=60, members=(3, 3)), groups={})
    once, twice = (
        audit_with_seeds(
            made.of([0, 1, 2], of), [0, 1, 2], list(range(len(of))), [f"{roots}:{p}" for p in of]
        )
        for of in ([0, 1, 2], [0, 0, 1, 1, 2, 2])
    )
    assert once.result.pairing == {"small": "parent" if roots == "dense" else "independent"}
    same(rates(once.results), rates(twice.results), CLOSED)
    for name in ("flips", "harmful_flips"):
        one, other = (row(a.results, name, scope="method") for a in (once, twice))
        for column in ("compressed", "ci_low", "ci_high"):
            assert one[column] == pytest.approx(other[column], abs=1e-12), (name, column)


def test_where_nothing_changed_nothing_is_found() -> None:
    """Six children per parent, all like it in group v: a shift of 0 and p = 1, whatever rounds."""
    label = np.array(["a", "b"] * 40)
    group = np.repeat(["u", "v"], 40)
    rng = np.random.default_rng(0)
    dense = np.stack([label] * 3, axis=1)
    small = np.stack([label] * 18, axis=1)
    small[:10] = np.where(rng.random((10, 18)) < 0.5, "a", small[:10])
    made = Population(label, dense, small, {"g": group})
    parents: list[str | None] = [f"dense:{i % 3}" for i in range(18)]
    results = audit_with_seeds(made, [0, 1, 2], list(range(18)), parents).results
    for scope in ("model", "method"):
        found = row(results, "accuracy", "group", group="g=v", scope=scope)
        assert found["shift"] == pytest.approx(0, abs=1e-12)
        assert found["p_value"] == 1.0
        assert found["ci_low"] < -0.03 < 0.03 < found["ci_high"]  # 40 examples prove no equality
        assert found["compressed_low"] < 0.95
        found = row(results, "flips", "group", group="g=v", scope=scope)
        assert found["compressed"] == pytest.approx(0, abs=1e-12)
        assert found["ci_high"] > 0.03
