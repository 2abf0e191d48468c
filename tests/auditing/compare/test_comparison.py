"""Examples that are not single independent trials: clusters and weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairweight as fw

from ..strategies import keyed, random_table, row


def arrays(seed: int = 20, n: int = 400) -> dict[str, Any]:
    rng = np.random.default_rng(1000 + seed)  # not the table's: persons would follow labels
    table = random_table(seed, n)
    person = rng.integers(0, 40, n)
    return {
        "label": np.array(table.label),
        "dense": np.array(table.dense),
        "small": np.array(table.small),
        "sex": np.array(table.groups["sex"]),
        "person": person,
        "weight": rng.choice([0.5, 1.0, 4.0], n),
    }


def audit(t: dict[str, Any], **options: Any) -> pd.DataFrame:
    return fw.audit(
        t["label"], {"dense": t["dense"], "small": t["small"]},
        sensitive_features={"sex": t["sex"]}, **{"n_boot": 100, **options},
    ).results  # fmt: skip


def linearised_by_hand(difference: Any, size: Any, unit: Any) -> tuple[float, float, float, int]:
    """Ratio, t limits and number of units, straight from the definition."""
    units = np.unique(unit)
    a = np.array([difference[unit == u].sum() for u in units])
    d = np.array([size[unit == u].sum() for u in units])
    ratio = a.sum() / d.sum()
    g = len(units)
    variance = g / (g - 1) * ((a - ratio * d) ** 2).sum() / d.sum() ** 2
    reach = stats.t.ppf(0.975, g - 1) * math.sqrt(variance)
    return ratio, ratio - reach, ratio + reach, g


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_cluster_intervals_by_hand(weighted: bool) -> None:
    t = arrays()
    weight = t["weight"] if weighted else np.ones(400)
    results = audit(t, cluster=t["person"], sample_weight=t["weight"] if weighted else None)
    change = ((t["small"] == t["label"]) * 1.0 - (t["dense"] == t["label"])) * weight
    for group in (None, "F", "M"):
        here = np.ones(400, bool) if group is None else t["sex"] == group
        expected = linearised_by_hand(change[here], weight[here], t["person"][here])
        found = (
            row(results, "accuracy")
            if group is None
            else row(results, "accuracy", "group", group=f"sex={group}")
        )
        # the limits themselves, wider of these and Tango's: test_linear.py
        assert found["shift"] == pytest.approx(expected[0], abs=1e-12)
        assert found["ci_low"] <= expected[1] + 1e-12
        assert found["ci_high"] >= expected[2] - 1e-12
        assert found["n_clusters"] == expected[3]
        assert found["n"] == here.sum()
        assert found["interval"] == "wider of linearised t over clusters and Tango on n_eff"
    # one side's own rate: recall of class 0
    here = t["label"] == "0"
    right = (t["small"] == t["label"]) * weight
    expected = linearised_by_hand(right[here], weight[here], t["person"][here])
    found = row(results, "recall", "class", cls="0")
    limits = [found["compressed"], found["compressed_low"], found["compressed_high"]]
    np.testing.assert_allclose(limits, [expected[0], *np.clip(expected[1:3], 0, 1)], atol=1e-12)


def test_cluster_excess_against_a_cluster_bootstrap() -> None:
    """The linearised standard error of the excess, against plain resampling of clusters."""
    t = arrays(21, 600)
    results = audit(t, cluster=t["person"])
    found = row(results, "accuracy", "group", group="sex=F")
    change = (t["small"] == t["label"]) * 1.0 - (t["dense"] == t["label"])
    women = t["sex"] == "F"

    def excess(rows: Any) -> float:
        return float(change[rows][women[rows]].mean() - change[rows][~women[rows]].mean())

    assert found["excess_shift"] == pytest.approx(excess(np.arange(600)), abs=1e-12)
    rng = np.random.default_rng(0)
    members = [np.flatnonzero(t["person"] == k) for k in range(40)]
    draws = [
        excess(np.concatenate([members[k] for k in rng.integers(0, 40, 40)])) for _ in range(1_000)
    ]
    reach = (found["excess_high"] - found["excess_low"]) / 2
    # standard error of a bootstrap standard error of 1,000 draws: 2 %; t against z: 3 %; the
    # two differ by O(1/clusters) besides, and MOVER's limits may be the wider ones
    assert 0.88 < reach / (1.96 * np.std(draws)) < 1.2


def test_cluster_shift_against_a_cluster_bootstrap() -> None:
    t = arrays(22, 600)
    found = row(audit(t, cluster=t["person"]), "accuracy")
    change = (t["small"] == t["label"]) * 1.0 - (t["dense"] == t["label"])
    rng = np.random.default_rng(1)
    members = [change[t["person"] == k] for k in range(40)]
    draws = [
        np.concatenate([members[k] for k in rng.integers(0, 40, 40)]).mean() for _ in range(1_000)
    ]
    reach = (found["ci_high"] - found["ci_low"]) / 2
    assert reach / (1.96 * np.std(draws)) == pytest.approx(1.0, abs=0.12)


def test_few_clusters_are_not_estimable() -> None:
    t = arrays()
    results = audit(t, cluster=t["person"] % 12)
    for metric in ("accuracy", "precision", "kappa"):
        found = row(results, metric)
        assert found["status"] == "not_estimable: 12 clusters"
        assert found["n_clusters"] == 12
        assert math.isnan(found["ci_low"])
        assert math.isnan(found["p_value"])
        assert math.isfinite(found["shift"])  # the estimate itself needs no clusters
        assert pd.isna(found["family"])
    found = row(results, "heterogeneity", "grouping", group="sex")
    assert found["status"] == "not_estimable: 12 clusters"


def test_clusters_of_one_example_give_nearly_the_plain_answer() -> None:
    t = arrays(23, 600)
    alone, plain = audit(t, cluster=np.arange(600)), audit(t)
    for metric in ("accuracy", "error_rate"):
        a, b = row(alone, metric), row(plain, metric)
        assert a["shift"] == pytest.approx(b["shift"], abs=1e-12)
        assert a["ci_low"] == pytest.approx(b["ci_low"], abs=0.004)
        # every difference is −1, 0 or 1: sign flips of units are the mid-p McNemar test
        assert a["p_value"] == pytest.approx(b["p_value"], rel=1e-9)


def test_equal_weights_change_no_estimate() -> None:
    t = arrays(24, 200)
    plain, weighted = (
        keyed(audit(t, sample_weight=w)) for w in (None, np.full(200, 2.5))
    )  # fmt: skip
    assert list(plain.index) == list(weighted.index)
    columns = ["n", "baseline", "compressed", "shift", "excess_shift"]
    keep = plain.index.get_level_values("metric") != "heterogeneity"
    np.testing.assert_allclose(
        plain.loc[keep, columns].astype(float), weighted.loc[keep, columns].astype(float),
        rtol=1e-12, atol=1e-12,
    )  # fmt: skip


def test_weights_count_like_copies() -> None:
    """Whole-number weights give the estimates of a table with that many copies of each row."""
    t = arrays(25, 120)
    weight = np.random.default_rng(0).integers(1, 4, 120)
    copies = {name: np.repeat(values, weight) for name, values in t.items()}
    weighted, copied = keyed(audit(t, sample_weight=weight * 1.0)), keyed(audit(copies))
    skipped = {"heterogeneity", "heterogeneity_within_classes", "bias", "bias_amplification",
               "worst_case_bias_amplification"}  # fmt: skip
    both = weighted.index.intersection(copied.index)
    keep = [k for k in both if k[1] not in skipped]
    ok = (weighted.loc[keep, "status"] == "ok") & (copied.loc[keep, "status"] == "ok")
    columns = ["baseline", "compressed", "shift", "excess_shift"]
    mine, theirs = (frame.loc[keep, columns][ok] for frame in (weighted, copied))
    different = (mine - theirs).abs().max(axis=1) > 1e-12
    assert not different.any(), sorted(set(mine.index[different].get_level_values("metric")))


def test_weighted_flips_add_up_to_the_weighted_shift() -> None:
    t = arrays(26, 200)
    results = audit(t, sample_weight=t["weight"])
    for by, where in (("overall", {}), ("group", {"group": "sex=F"}), ("class", {"cls": "1"})):
        shift = row(results, "accuracy", by, **where)["shift"]
        helpful = row(results, "helpful_flips", by, **where)["compressed"]
        harmful = row(results, "harmful_flips", by, **where)["compressed"]
        assert shift == pytest.approx(helpful - harmful, abs=1e-12)


def test_weighted_intervals_say_what_they_are() -> None:
    t = arrays(27, 200)
    results = audit(t, sample_weight=t["weight"])
    rates = results[results["metric"].isin(["accuracy", "recall", "fpr"])]
    name = "wider of linearised t over examples and Tango on n_eff"
    assert set(rates["interval"].dropna()) <= {
        name, "percentile bootstrap (100 replicates)", "none: too few changes",
    }  # fmt: skip
    found = row(results, "accuracy")
    change = ((t["small"] == t["label"]) * 1.0 - (t["dense"] == t["label"])) * t["weight"]
    expected = linearised_by_hand(change, t["weight"], np.arange(200))
    assert found["shift"] == pytest.approx(expected[0], abs=1e-12)
    assert found["ci_low"] <= expected[1] + 1e-12
    assert found["ci_high"] >= expected[2] - 1e-12


def test_n_counts_examples_not_weight() -> None:
    t = arrays(28, 200)
    made = fw.audit(
        t["label"], {"dense": t["dense"], "small": t["small"]},
        sensitive_features={"sex": t["sex"]}, sample_weight=t["weight"], n_boot=20,
    )  # fmt: skip
    women = int((t["sex"] == "F").sum())
    assert row(made.results, "accuracy", "group", group="sex=F")["n"] == women
    members = made.per_seed
    found = members[
        (members["group"] == "sex=F")
        & (members["variant"] == "small")
        & (members["metric"] == "accuracy")
    ]
    assert found["n"].item() == women
    right = (t["small"] == t["label"])[t["sex"] == "F"]
    expected = np.average(right, weights=t["weight"][t["sex"] == "F"])
    assert found["value"].item() == pytest.approx(expected, abs=1e-12)
