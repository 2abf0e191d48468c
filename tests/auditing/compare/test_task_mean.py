"""Several tasks: rows of every task, and the mean over tasks."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fairweight as fw
from fairweight.errors import InputError, UnknownNameError

from ..strategies import closed, keyed, row

# ---------------------------------------------------------------- tasks


pytestmark = pytest.mark.usefixtures("few_metrics")
MORE_METRICS = (
    "bias_amplification",
    "fpr",
    "heterogeneity",
    "kappa",
    "precision",
    "tcb",
    "worst_group_shift",
)


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


@pytest.mark.parametrize("people", [False, True])
def test_tasks_with_examples_of_their_own_are_added_up(people: bool) -> None:
    """150 examples of two tasks and 100 of a third one, as tables of subjects have."""
    frame = task_frame()
    hats, smiles = frame["task"] == "hat", (frame["task"] == "smile") & (frame.index % 3 < 2)
    frame = frame[hats | smiles | (frame["task"] == "young")]
    frame.loc[smiles, "example_id"] += 1000
    frame["person"] = frame["example_id"] % 50  # whose examples are in all tasks, or in one
    frame.loc[smiles, "person"] += 1000
    made = task_audit(frame, cluster="person" if people else None)
    mean = made[made["task"].isna()]
    women = int((frame[frame["task"] != "young"]["sex"] == "F").sum())
    assert row(mean, "accuracy", task=None)["n"] == 250
    assert row(mean, "accuracy", by="group", group="sex=F", task=None)["n"] == women
    gaps = mean[(mean["metric"] == "worst_group_shift")]
    assert gaps["n"].tolist() == [250]


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
    """Examples are drawn with all their tasks: three copies know no more than two."""
    frame = task_frame(copies=True)
    three = task_audit(frame, n_boot=500)
    # the same mean of two of them, with the same units and the same random numbers
    two = frame["task"] != sorted(set(frame["task"]) - {"hat"})[0]
    one = task_audit(frame[two], n_boot=500)
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


def test_the_only_task_is_not_named_and_says_nothing_twice() -> None:
    frame = task_frame()
    hat = frame[frame["task"] == "hat"]
    options = {"baseline": "dense", "predictions": {"dense": "dense", "small": "small"},
               "groups": ["sex"], "n_boot": 20}  # fmt: skip
    named, plain = (fw.audit_table(held, **options) for held in (hat, hat.drop(columns="task")))
    assert named.result.tasks == ()
    pd.testing.assert_frame_equal(named.results, plain.results)
    assert any("one task, 'hat'" in note for note in named.result.notes)
    assert not any("one task" in note for note in plain.result.notes)


def test_a_policy_may_name_the_only_task(tmp_path: Path) -> None:
    frame = task_frame()
    made = fw.audit_table(
        frame[frame["task"] == "hat"], baseline="dense", groups=["sex"], n_boot=20,
        predictions={"dense": "dense", "small": "small"},
    )  # fmt: skip
    made.save(tmp_path / "audit")

    def policy(**more: Any) -> dict[str, Any]:
        rule = {"metric": "accuracy", "by": "group", "margin": 0.05, **more}
        return {"rule": [rule]}

    whole = made.gate(policy()).rows
    for audit in (made, fw.load(tmp_path / "audit")):
        pd.testing.assert_frame_equal(audit.gate(policy(tasks=["hat"])).rows, whole)
        with pytest.raises(InputError, match="the task 'cap' does not exist; there are: 'hat'"):
            audit.gate(policy(tasks=["cap"]))


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


def test_two_tasks_of_two_examples_have_rows() -> None:
    """No group is large enough for a row of its own kind in any task."""
    frame = pd.DataFrame(
        {"example_id": [0, 1, 0, 1], "task": list("aabb"), "label": [0, 1, 1, 0],
         "dense": [0, 0, 1, 0], "small": [0, 1, 1, 0], "sex": None, "region": list("dede"),
         "kind": "dog", "person": 0}
    )  # fmt: skip
    made = task_audit(frame, groups=["sex", "region*kind"], cluster="person")
    assert row(made, "accuracy", task=None)["n"] == 2
