"""What stages leave behind when they are stopped."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

pytest.importorskip("torch")

import fairweight.runs
from fairweight.errors import UnknownNameError
from fairweight.runs.executor import OutOfTime, StageContext
from fairweight.runs.plan import StudyPlan, plan
from fairweight.runs.stage import STAGES
from fairweight.runs.stages import train
from fairweight.specs.data import Data
from fairweight.specs.toml import read_study
from fairweight.specs.training import Model, Training
from fairweight.studies import library as _library  # noqa: F401  registers those of audits

SPEC = {
    "data": asdict(Data(name="digits")),
    "model": asdict(Model(architecture="lenet", width=0.5)),
    "training": asdict(Training(epochs=4, batch_size=256)),
    "pruning": None,
}


def stopped_after(calls: int, room: Path, work: Path) -> tuple[int, int]:
    """Epoch and step at which a training that is stopped goes on."""
    left = iter(range(calls))

    def report(done: int, total: int, words: str) -> None:
        if next(left, None) is None:
            raise OutOfTime

    room.mkdir()
    with pytest.raises(OutOfTime):
        train(SPEC, {}, room, StageContext(data=None, work=work, report=report))
    state = json.loads((work / "training" / "state.json").read_text())
    return state["epoch"], state["step"]


def test_a_stopped_training_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders of half-done stages are thrown away; the checkpoint must lie in the stage's work."""
    monkeypatch.setattr("fairweight.lab.training.SAVE_EVERY", 0.0)
    work = tmp_path / "work"
    work.mkdir()
    first = stopped_after(3, tmp_path / "folder", work)
    second = stopped_after(3, tmp_path / "another folder", work)
    assert (0, 0) < first < second


def test_kinds_say_what_they_do_and_read() -> None:
    assert {name: kind.reads for name, kind in STAGES.items()} == {
        "train": ("train", "compress"),
        "compress": ("train", "compress"),
        "predict": ("train", "compress"),
        "similarity": ("train", "compress"),
        "audit": ("predict", "similarity"),
        "classes": ("predict",),
        "settings": ("audit",),
    }
    assert STAGES["train"].function == "fairweight.runs.stages:train"
    assert STAGES["audit"].function == "fairweight.studies.stages:audit"


def test_a_stage_reads_only_what_it_can() -> None:
    experiment = {
        "name": "a",
        "data": {"name": "digits"},
        "model": {"architecture": "lenet"},
        "training": {"epochs": 1},
    }
    made: StudyPlan = plan(read_study({"name": "s", "experiment": [experiment]}))
    asked = made.models[0].asked_by
    with pytest.raises(ValueError, match="A stage 'compress' cannot read a 'predict'"):
        made.add("compress", {}, (asked,), "wrong")
    with pytest.raises(UnknownNameError, match="Kind of stage 'tran' does not exist"):
        made.add("tran", {}, (), "wrong")


def test_runs_name_nothing_of_studies() -> None:
    (folder,) = fairweight.runs.__path__
    for file in Path(folder).glob("*.py"):
        assert "fairweight.studies" not in file.read_text(encoding="utf-8"), file.name
