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
    """A working folder with predictions of two models on two groups."""
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
        "worse": np.where(lost, other, rows["label"]),
    }.items():
        rows.assign(prediction=prediction).to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "policy.toml").write_text(POLICY)
    return tmp_path


def ends_with(job: Path, audit: int, gate: int = 0) -> Path:
    """A stand-in for the program, whose two commands end with these codes and write nothing."""
    program = job / "bin" / "fairweight"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$1" = audit ] && exit {audit}\nexit {gate}\n')
    program.chmod(0o755)
    return program.parent


def run(job: Path, programs: Path | None = None, **given: str) -> tuple[int, dict[str, str], str]:
    """The gate step with its inputs: exit code, outputs and summary."""
    step = next(one for one in ACTION["runs"]["steps"] if one.get("id") == "gate")
    inputs = {name: str(one.get("default", "")) for name, one in ACTION["inputs"].items()} | given
    env = dict(os.environ)
    for name, value in step["env"].items():
        key = value.removeprefix("${{ inputs.").removesuffix(" }}")
        env[name] = inputs[key]
    outputs, summary = job / "outputs.txt", job / "summary.txt"
    env |= {"GITHUB_OUTPUT": str(outputs), "GITHUB_STEP_SUMMARY": str(summary)}
    first = Path(sys.executable).parent if programs is None else programs
    env["PATH"] = f"{first}{os.pathsep}{env['PATH']}"
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


def test_the_verdict_is_an_output_and_the_summary_is_shown(job: Path) -> None:
    """With the program itself; what it makes of other tables is in tests/cli."""
    given = {"baseline": "dense.csv", "compressed": "int8=worse.csv", "policy": "policy.toml"}
    ended, outputs, summary = run(job, **given, groups="sex", options="--n-boot\n40")
    assert (ended, outputs["verdict"], outputs["exit-code"]) == (1, "fail", "1")
    assert "int8" in summary
    assert summary == (job / outputs["comment"]).read_text() == outputs["comment-body"]
    assert (job / outputs["report"]).read_text().lower().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("audit", "gate", "allow", "ended", "verdict"),
    [
        (0, 0, "false", 0, "pass"),
        (0, 1, "true", 1, "fail"),
        (0, 3, "false", 3, "cannot tell"),
        (0, 3, "true", 0, "cannot tell"),
        (2, 0, "true", 2, "bad input"),
        (0, 2, "true", 2, "bad input"),
    ],
)
def test_codes_become_verdicts(
    job: Path, audit: int, gate: int, allow: str, ended: int, verdict: str
) -> None:
    given = {"baseline": "dense.csv", "compressed": "worse.csv", "policy": "policy.toml"}
    programs = ends_with(job, audit, gate)
    code, outputs, _ = run(job, programs, **given, **{"allow-cannot-tell": allow})
    assert (code, outputs["verdict"]) == (ended, verdict)
    assert outputs["exit-code"] == str(audit or gate)


def test_inputs_never_stand_in_the_script() -> None:
    """What a pull request can set reaches the shell through variables, not as code."""
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_every_input_is_described() -> None:
    for kind in ("inputs", "outputs"):
        assert all(one["description"].endswith(".") for one in ACTION[kind].values())
