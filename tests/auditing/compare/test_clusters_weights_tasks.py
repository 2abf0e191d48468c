"""Examples that are not single independent trials: clusters, weights, several tasks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import fairweight as fw

from ..strategies import closed, keyed, random_table, row


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


# ---------------------------------------------------------------- tasks


def task_frame(n: int = 150, *, copies: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(30)
    groups = rng.choice(["F", "M"], n)
    parts = []
    for k, task in enumerate(("hat", "smile", "young")):
        if k == 0 or not copies:
            label = rng.integers(0, 2, n)
            dense, small = (
                np.where(rng.random(n) < rate, 1 - label, label) for rate in (0.1, 0.2 + 0.05 * k)
            )
        parts.append(
            pd.DataFrame(
                {"example_id": range(n), "task": task, "label": label, "dense": dense,
                 "small": small, "sex": groups}
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True)


def task_audit(frame: pd.DataFrame, **options: Any) -> pd.DataFrame:
    given = {"task": "task", "groups": ["sex"], "n_boot": 200, **options}
    return fw.audit_table(
        frame, baseline="dense", predictions={"dense": "dense", "small": "small"}, **given
    ).results


@pytest.fixture(scope="module")
def tasks() -> pd.DataFrame:
    return task_audit(task_frame())


def assert_mean_of_tasks(results: pd.DataFrame) -> set[str]:
    """Rows with `task` null are means of the tasks' rows; returns the metrics that were checked."""
    frame = results.assign(level=None)
    mean = frame[frame["task"].isna()]
    checked = set()
    for _, found in mean.iterrows():
        same = frame[frame["task"].notna()]
        for key in ("metric", "by", "group", "class"):
            same = same[same[key].isna() if pd.isna(found[key]) else same[key] == found[key]]
        if found["metric"] in ("worst_group_shift", "heterogeneity"):
            continue  # the least of the mean shifts, a test of the mean change: no means
        if found["status"] != "ok" or len(same) < 3 or same["compressed"].isna().any():
            continue
        for name in ("baseline", "compressed", "shift"):
            assert found[name] == pytest.approx(same[name].mean(), abs=1e-12, nan_ok=True), (
                found["metric"], found["group"], name,
            )  # fmt: skip
        checked.add(found["metric"])
    return checked


def test_rows_without_a_task_are_means_over_tasks(tasks: pd.DataFrame) -> None:
    checked = assert_mean_of_tasks(tasks)
    assert {"accuracy", "recall", "fpr", "precision", "kappa", "group_gap", "cev_pp"} <= checked


def test_the_worst_shift_over_tasks_is_the_least_mean_shift(tasks: pd.DataFrame) -> None:
    worst = row(tasks, "worst_group_shift", "grouping", task=None)
    shifts = {g: row(tasks, "accuracy", "group", group=g, task=None)["shift"]
              for g in ("sex=F", "sex=M")}  # fmt: skip
    assert worst["compressed"] == pytest.approx(min(shifts.values()), abs=1e-12)
    assert worst["level"] == min(shifts, key=lambda g: shifts[g])


def test_the_mean_over_tasks_counts_examples_once(tasks: pd.DataFrame) -> None:
    found = row(tasks, "accuracy", task=None)
    assert found["n"] == 150
    assert row(tasks, "accuracy", task="hat")["n"] == 150
    assert found["status"] == "ok"


def test_training_data_are_of_the_task_itself() -> None:
    """In `hat` 1 is rare in training, in `smile` and `young` it is frequent."""
    frame = task_frame()
    train = pd.DataFrame(
        [
            {"task": task, "label": label, "sex": sex, "n": n}
            for task, ones in (("hat", (1, 4)), ("smile", (30, 20)), ("young", (40, 15)))
            for sex, positives in zip("FM", ones, strict=True)
            for label, n in ((1, positives), (0, 20))
        ]
    )
    train = train.loc[train.index.repeat(train["n"])].drop(columns="n")
    results = task_audit(frame, train=train)
    checked = assert_mean_of_tasks(results)
    assert {"tcb", "bias_amplification"} <= checked


def test_filters_reach_the_mean_over_tasks() -> None:
    results = task_audit(task_frame(), filters=False, fixed_side="sex=F")
    assert "bias_amplification" in assert_mean_of_tasks(results)


def test_copies_of_one_task_have_the_interval_of_that_task() -> None:
    """Examples are drawn with all their tasks: three copies know no more than one."""
    frame = task_frame(copies=True)
    three = task_audit(frame, n_boot=500)
    # the same mean of a single task, with the same units and the same random numbers
    one = task_audit(frame[frame["task"] == "hat"], n_boot=500)
    for metric, by, where in (
        ("accuracy", "overall", {}),
        ("kappa", "overall", {}),
        ("group_gap", "grouping", {"group": "sex"}),
        ("recall", "group", {"group": "sex=F"}),
    ):
        a, b = (row(r, metric, by, task=None, **where) for r in (three, one))
        columns = ["shift", "ci_low", "ci_high", "p_value", "compressed_low", "compressed_high"]
        np.testing.assert_allclose(
            a[columns].astype(float), b[columns].astype(float), rtol=0, atol=1e-12, err_msg=metric
        )
        # and close to the task's own interval, which has other random numbers or a closed form
        own = row(three, metric, by, task="hat", **where)
        width = own["ci_high"] - own["ci_low"]
        assert a["ci_high"] - a["ci_low"] == pytest.approx(width, rel=0.2)


def test_closed_forms_hold_within_a_task(tasks: pd.DataFrame) -> None:
    """Within one task an example is one row: the rows are those of the task alone."""
    frame = task_frame()
    alone = fw.audit_table(
        frame[frame["task"] == "hat"].drop(columns="task"), baseline="dense",
        predictions={"dense": "dense", "small": "small"}, groups=["sex"], n_boot=20,
    ).results  # fmt: skip
    inside = tasks[tasks["task"] == "hat"].assign(task=None).reset_index(drop=True)
    mine, theirs = keyed(closed(inside)), keyed(closed(alone))
    # Signs belong to examples with all their tasks.
    signed = ["sim_low", "sim_high", "excess_sim_low", "excess_sim_high", "excess_p_adjusted",
              "equivalent", "loss_ruled_out"]  # fmt: skip
    worst = mine.index.get_level_values("metric") == "worst_group_shift"
    mine, theirs = (f[~worst].drop(columns=["level", *signed]) for f in (mine, theirs))
    pd.testing.assert_frame_equal(mine, theirs, check_dtype=False)


@pytest.mark.slow
def test_the_mean_over_tasks_covers() -> None:
    """Nominal 95 %: at least 90 % of 100 tables, tasks correlated through their examples."""
    rng = np.random.default_rng(5)
    hits, runs, n = 0, 100, 200
    for _ in range(runs):
        ease = rng.normal(size=n)
        parts = []
        for task in "ab":
            label = rng.integers(0, 2, n)
            harm = (rng.normal(size=n) + ease) / math.sqrt(2) > 1.2816  # 10 % lose their answer
            parts.append(
                pd.DataFrame(
                    {"example_id": range(n), "task": task, "label": label, "dense": label,
                     "small": np.where(harm, 1 - label, label), "sex": rng.choice(["F", "M"], n)}
                )
            )  # fmt: skip
        frame = pd.concat(parts, ignore_index=True)
        found = row(task_audit(frame, groups=[]), "accuracy", task=None)
        hits += found["ci_low"] <= -0.1 <= found["ci_high"]
    assert hits / runs >= 0.90
