"""Rules of statistics that an earlier version broke without any other test noticing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.errors import InputError, UnknownNameError


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


def test_a_class_harmed_in_any_member_never_vanishes_from_cev() -> None:
    y = np.repeat([0, 1, 2], 100)
    rng = np.random.default_rng(1)
    dense = np.where((y > 0) & (rng.random(300) < 0.1), (y + 1) % 3, y)
    harmed = np.where((y == 0) & (np.arange(300) % 5 < 2), 1, dense)
    audit = fw.audit(
        y,
        {"dense": np.stack([dense] * 3, 1), "small": np.stack([dense, harmed, harmed], 1)},
        n_boot=100,
    )
    assert "zero baseline in 0" in row(audit.results, "cev")["status"]
    assert any("'0' (FNR +26.67" in note for note in audit.notes)


def test_a_positive_class_need_not_exist_in_every_task() -> None:
    rng = np.random.default_rng(2)
    n = 200
    parts = []
    for task, classes in (("two", [0, 1]), ("three", [0, 1, 2])):
        y = rng.choice(classes, n)
        for variant, share in (("dense", 0.95), ("small", 0.9)):
            answer = np.where(rng.random(n) < share, y, rng.choice(classes, n))
            parts.append(
                pd.DataFrame(
                    {"example_id": range(n), "task": task, "variant": variant, "label": y,
                     "prediction": answer}
                )
            )  # fmt: skip
    frame = pd.concat(parts)
    audit = fw.audit_table(frame, positive=1, n_boot=50)
    recall = row(audit.results, "recall", by="overall", task="two")
    assert recall["status"] == "ok"
    assert recall["interval"] == "tango"
    with pytest.raises(UnknownNameError, match="Positive class '7'"):
        fw.audit_table(frame, positive=7, n_boot=50)


def test_an_unstable_row_still_counts_in_its_family() -> None:
    """A class that is hardly ever predicted has no stable precision, and is one of three."""
    y = np.repeat(["a", "b", "c"], 60)
    dense = y.copy()
    dense[y == "c"] = "a"
    dense[-1] = "c"
    small = dense.copy()
    small[:5] = "b"
    results = fw.audit(y, {"dense": dense, "small": small}, n_boot=200).results
    rows = results[(results["metric"] == "precision") & (results["by"] == "class")]
    tested = rows[rows["family"].notna()]
    assert (tested["n_family"] == len(tested)).all()


def test_pandas_objects_are_put_in_one_order_by_their_index() -> None:
    table = pd.DataFrame(
        {"y": ["cat", "dog"] * 50, "p": ["cat", "dog"] * 50, "sex": ["F"] * 50 + ["M"] * 50},
        index=[f"e{i}" for i in range(100)],
    )
    mixed = table.sample(frac=1, random_state=3)
    audit = fw.audit(
        table["y"],
        {"dense": table["p"], "small": mixed["p"]},
        sensitive_features=mixed[["sex"]],
        n_boot=50,
    )
    assert row(audit.results, "accuracy", by="overall")["shift"] == 0
    assert row(audit.results, "accuracy", group="sex=F")["n"] == 50
    with pytest.raises(InputError, match="different indexes"):
        fw.audit(table["y"], {"dense": table["p"], "small": table["p"].reset_index(drop=True)})


def test_scores_of_the_other_class_are_noticed() -> None:
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 300)
    score = np.clip(np.where(y == 1, 0.8, 0.2) + rng.normal(0, 0.2, 300), 0, 1)
    answers = (score > 0.5).astype(int)
    audit = fw.audit(
        y, {"dense": answers, "small": answers}, n_boot=50,
        y_score={"dense": 1 - score, "small": 1 - score},
    )  # fmt: skip
    assert any("rank worse than chance" in note for note in audit.notes)
