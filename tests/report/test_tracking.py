"""Audits in experiment trackers; the real MLflow is tried in `tests/installs` (slow)."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fairweight as fw
from fairweight.errors import InputError
from fairweight.report.tracking import tracked_numbers, tracked_tags


@pytest.fixture(scope="module")
def audit() -> fw.Audit:
    """Of 40 examples of `sex=a/b` int8 loses 4; a group of 5 has too few."""
    n = 145
    y = np.arange(n) % 2
    sex = np.repeat(["F", "a/b", "few"], [100, 40, 5])
    int8 = np.where((np.arange(n) >= 100) & (np.arange(n) < 104), 1 - y, y)
    return fw.audit(y, {"dense": y, "int8": int8}, sensitive_features={"sex": sex}, n_boot=20)


def test_numbers_have_names_that_a_tracker_takes(audit: fw.Audit) -> None:
    found = tracked_numbers(audit.result)
    assert found["fairweight/int8/accuracy/shift"] == pytest.approx(-4 / 145)
    assert found["fairweight/int8/accuracy/sex_a_b/shift"] == pytest.approx(-0.1)
    assert found["fairweight/int8/accuracy/sex_a_b/baseline"] == 1
    assert found["fairweight/int8/accuracy/sex_a_b/shift_low"] < -0.1
    assert "fairweight/int8/recall/1/shift" in found
    assert not any("few" in name for name in found)
    assert all(np.isfinite(value) for value in found.values())


def test_names_that_differ_in_forbidden_characters_alone_stay_apart() -> None:
    y = np.arange(80) % 2
    sex = np.repeat(["a/b", "a:b"], 40)
    made = fw.audit(y, {"dense": y, "int8": y}, sensitive_features={"sex": sex}, n_boot=20)
    names = [
        name for name in tracked_numbers(made.result) if "sex" in name and name.endswith("shift")
    ]
    assert names == [f"fairweight/int8/accuracy/sex_a_b{k}/shift" for k in ("", "_2")]


def test_the_verdict_becomes_tags(audit: fw.Audit) -> None:
    verdict = audit.gate({"rule": [{"metric": "accuracy", "by": "overall", "margin": 0.2}]})
    tags = tracked_tags(audit.result, verdict)
    assert tags["fairweight.verdict"] == tags["fairweight.verdict.int8"] == "pass"
    assert tags["fairweight.baseline"] == "dense"


def test_weights_and_biases(audit: fw.Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with the four calls that are made; the package itself needs a server to log to."""
    seen: dict[str, Any] = {"files": []}

    class Artifact:
        def __init__(self, name: str, type: str, metadata: dict[str, str]) -> None:
            seen["artifact"] = (name, type, metadata)

        def add_dir(self, folder: str) -> None:
            seen["files"] = sorted(path.name for path in Path(folder).iterdir())

    class Run:
        id, summary = "r1", dict[str, str]()

        def log(self, numbers: dict[str, float]) -> None:
            seen["numbers"] = numbers

        def log_artifact(self, artifact: Artifact) -> None:
            seen["logged"] = artifact

    module = ModuleType("wandb")
    module.Artifact = Artifact  # type: ignore[attr-defined]
    Run.__module__ = "wandb.sdk.wandb_run"
    monkeypatch.setitem(sys.modules, "wandb", module)
    monkeypatch.setattr("fairweight.report.html.render", lambda *_: "<!doctype html>")
    run = Run()
    audit.log_to(run)
    assert seen["numbers"] == tracked_numbers(audit.result)
    assert seen["artifact"][:2] == ("fairweight-r1", "fairweight-audit")
    assert {"audit.json", "report.html", "tables"} <= set(seen["files"])
    assert run.summary["fairweight.baseline"] == "dense"


def test_what_is_no_run_is_refused(audit: fw.Audit) -> None:
    with pytest.raises(InputError, match=r"mlflow\.active_run\(\).*wandb\.init\(\)"):
        audit.log_to(None)
