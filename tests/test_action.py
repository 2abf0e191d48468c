"""The GitHub action: its steps, run in a shell as the runner runs them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
N = 3000
POLICY = """
[[rule]]
metric = "accuracy"
by = "group"
margin = 0.02
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A working folder with predictions of three models on two groups."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "example_id": np.arange(N),
            "label": rng.choice(["cat", "dog"], N),
            "sex": np.where(np.arange(N) < 1000, "F", "M"),
        }
    )
    other = np.where(rows["label"] == "cat", "dog", "cat")
    lost = np.arange(N) < 200
    for name, prediction in {
        "dense": rows["label"],
        "same": rows["label"],
        "worse": np.where(lost, other, rows["label"]),
    }.items():
        rows.assign(prediction=prediction).to_csv(tmp_path / f"{name}.csv", index=False)
    rows[::50].assign(prediction=rows["label"]).to_csv(tmp_path / "few.csv", index=False)
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def run(job: Path, **given: str) -> tuple[int, dict[str, str], str]:
    """The gate step with its inputs: exit code, outputs and summary."""
    step = next(one for one in ACTION["runs"]["steps"] if one.get("id") == "gate")
    inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()} | given
    env = dict(os.environ)
    for name, value in step["env"].items():
        key = value.removeprefix("${{ inputs.").removesuffix(" }}")
        env[name] = inputs[key]
    outputs, summary = job / "outputs.txt", job / "summary.txt"
    env |= {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary)}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(shell, cwd=job, env=env, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    text = outputs.read_text()
    several = re.compile(r"^comment-body<<(\S+)\n(.*?)\n\1\n", re.MULTILINE | re.DOTALL)
    bodies = several.findall(text)
    found = {"comment-body": bodies[-1][1]} if bodies else {}
    plain = several.sub("", text)
    found |= dict(line.split("=", 1) for line in plain.splitlines())
    return done.returncode, found, summary.read_text() if summary.exists() else ""


@pytest.mark.parametrize(
    ("compressed", "code", "verdict"), [("same.csv", 0, "pass"), ("int8=worse.csv", 1, "fail")]
)
def test_verdicts_are_outputs_and_the_summary_is_shown(
    job: Path, compressed: str, code: int, verdict: str
) -> None:
    given = {"baseline": "dense.csv", "compressed": compressed, "policy": "policy.toml"}
    ended, outputs, summary = run(job, **given, groups="sex")
    assert (ended, outputs["verdict"], outputs["exit-code"]) == (code, verdict, str(code))
    assert summary == (job / outputs["comment"]).read_text() == outputs["comment-body"]
    assert (job / outputs["report"]).read_text().lower().startswith("<!doctype html>")


def test_too_few_examples_stop_the_job_unless_allowed(job: Path) -> None:
    given = {"baseline": "few.csv", "compressed": "int8=few.csv", "policy": "policy.toml"}
    ended, outputs, _ = run(job, **given)
    assert (ended, outputs["verdict"]) == (3, "cannot tell")
    ended, outputs, _ = run(job, **given, **{"allow-cannot-tell": "true", "output": "second"})
    assert (ended, outputs["exit-code"]) == (0, "3")


def test_bad_input_ends_with_2(job: Path) -> None:
    ended, outputs, _ = run(job, baseline="none.csv", compressed="same.csv", policy="policy.toml")
    assert (ended, outputs["verdict"]) == (2, "bad input")


def test_inputs_never_stand_in_the_script() -> None:
    """What a pull request can set reaches the shell through variables, not as code."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_every_input_is_described() -> None:
    for kind in ("inputs", "outputs"):
        assert all(one["description"].endswith(".") for one in ACTION[kind].values())
