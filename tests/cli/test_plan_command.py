"""`fairweight plan`: sizes before collecting, with and without a pilot."""

from __future__ import annotations

import json
from pathlib import Path

import fairweight as fw

from .conftest import Run, model_frames


def pilot(folder: Path) -> list[str]:
    for name, frame in model_frames().items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return ["dense.csv", "int8.csv", "--groups", "sex,age"]


def test_without_a_pilot_a_table_of_margins_and_churns(run: Run) -> None:
    said = run("plan", "--n-groups", 17).done().out
    assert "rule out a loss of each margin in all 17 groups, with 80 % power" in said
    (row,) = [line.split() for line in said.splitlines() if line.strip().startswith("2 points")]
    assert row[2:6] == ["133", "574", "1,231", "2,297"]
    assert "passes the gate in 80 % of such tests" in said


def test_a_pilot_says_who_lacks_examples_and_writes_what_python_has(run: Run, folder: Path) -> None:
    words = [*pilot(folder), "--json", "plan.json", "--figure", "plan.svg"]
    said = run("plan", *words).done().out
    assert said.startswith("Pilot: int8 against dense, 240 examples, churn ")
    assert "accuracy of age=old" in said
    document = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    made = fw.plan(fw.audit_table(["dense.csv", "int8.csv"], groups=["sex", "age"], n_boot=20))
    assert [row["n_needed"] for row in document["rows"]] == made.rows["n_needed"].tolist()
    assert document["chance_now"] == made.chance_now
    assert len(document["curve"]) == len(made.curve)
    assert Path("plan.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "'plan.json' exists" in run("plan", *words).refused()
    assert run("plan", *words, "--quiet", "--overwrite").done().out == ""


def test_a_policy_is_planned_as_it_is_gated(run: Run, folder: Path) -> None:
    Path("policy.toml").write_text(
        '[[rule]]\nmetric = "recall"\nby = "class"\nmargin = 0.1\n', encoding="utf-8"
    )
    said = run("plan", *pilot(folder), "--policy", "policy.toml").done().out
    assert "recall of class 1" in said
    assert "in all 2 rows" in said


def test_what_cannot_be_used_is_refused(run: Run, folder: Path) -> None:
    assert "did you mean 0.02" in run("plan", "--margin", 2).refused()
    assert "0.01,0.03" in run("plan", "--churn", "few").refused()
    assert ".svg" in run("plan", "--figure", "curve.pdf").refused()
    assert "pilot" in run("plan", "--n-groups", 3, *pilot(folder)).refused()
    Path("policy.toml").write_text("[[rule]]\n", encoding="utf-8")
    assert "metric" in run("plan", "--policy", "policy.toml").refused()
