"""Who pays differently: heterogeneity, worst shift, excess."""

from __future__ import annotations

import numpy as np
import pandas as pd

import fairweight as fw


def row(results: pd.DataFrame, metric: str, **where: object) -> pd.Series:
    found = results[(results["metric"] == metric) & (results["scope"] == "model")]
    for column, value in where.items():
        same = found[column].isna() if value is None else found[column] == value
        found = found[same]
    assert len(found) == 1, (metric, where, len(found))
    return found.iloc[0]


def test_a_uniform_loss_is_no_heterogeneity_whatever_the_weights() -> None:
    """Both groups lose one answer in five; one of them weighs ten times as much."""
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 400)
        lost = rng.random(400) < 0.2
        group = np.repeat(["heavy", "light"], 200)
        audit = fw.audit(
            y,
            {"dense": y, "small": np.where(lost, 1 - y, y)},
            sensitive_features={"g": group},
            sample_weight=np.where(group == "heavy", 10.0, 1.0),
            n_boot=100,
            random_state=seed,
        )
        found.append(row(audit.results, "heterogeneity")["p_value"])
    assert np.median(found) > 0.1


def test_levels_with_few_clusters_enter_no_gap_and_no_worst() -> None:
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(100), 20)
    group = np.where(person < 5, "few", np.where(person < 50, "some", "many"))
    y = rng.integers(0, 2, 2000)
    lost = rng.random(2000) < np.where(group == "few", 0.7, 0.03)
    audit = fw.audit(
        y,
        {"dense": y, "small": np.where(lost, 1 - y, y)},
        sensitive_features={"g": group},
        cluster=person,
        n_boot=100,
    )
    assert row(audit.results, "accuracy", group="g=few")["status"] == "not_estimable: 5 clusters"
    worst = row(audit.results, "worst_group_shift")
    assert worst["level"] != "g=few"
    assert worst["ci_low"] <= worst["compressed"] <= worst["ci_high"]
    assert row(audit.results, "worst_group")["compressed"] > 0.9


def test_losses_of_examples_without_a_value_are_nobodys_excess() -> None:
    """All losses are among examples without a value: the named groups lose less than the rest."""
    y = np.tile([0, 1], 500)
    group = np.array(["a", "b", "c", None, None] * 200, dtype=object)
    lost = np.array([g is None and i % 3 == 0 for i, g in enumerate(group)])
    audit = fw.audit(
        y,
        {"dense": y, "small": np.where(lost, 1 - y, y)},
        sensitive_features={"g": group},
        n_boot=100,
    )
    groups = audit.by_group.query("metric == 'accuracy'").set_index("group")
    assert pd.isna(groups.loc["g=(missing)", "excess_p_adjusted"])
    assert (groups.loc[["g=a", "g=b", "g=c"], "excess_shift"] > 0).all()
    assert row(audit.results, "heterogeneity")["level"] in ("g=a", "g=b", "g=c")
