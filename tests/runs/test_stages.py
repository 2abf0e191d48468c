"""What stages leave behind when they are stopped."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

pytest.importorskip("torch")

from fairweight.runs.executor import Context, OutOfTime
from fairweight.runs.stages import train
from fairweight.specs.data import Data
from fairweight.specs.training import Model, Training

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
        train(SPEC, {}, room, Context(data=None, work=work, report=report))
    state = json.loads((work / "training" / "state.json").read_text())
    return state["epoch"], state["step"]


def test_a_stopped_training_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rooms are thrown away; the checkpoint must lie in the stage's work."""
    monkeypatch.setattr("fairweight.lab.training.SAVE_EVERY", 0.0)
    work = tmp_path / "work"
    work.mkdir()
    first = stopped_after(3, tmp_path / "room", work)
    second = stopped_after(3, tmp_path / "another room", work)
    assert (0, 0) < first < second
