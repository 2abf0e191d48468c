"""Runners that are killed at any moment, and two at once: nothing is lost, nothing done twice."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_stages import outputs_of, runs_of, study

from fairweight.runs.runner import run
from fairweight.runs.store import Store

HERE = Path(__file__).parent


def runner(store: Path, data: Path, chains: int, *, waiting: bool = False) -> subprocess.Popen[str]:
    """A process that runs the study; it prints how many stages it did and how many it found."""
    return subprocess.Popen(
        [sys.executable, str(HERE / "run_study.py"), str(store), str(data), str(chains),
         "2"],
        env=os.environ | {"PYTHONPATH": str(HERE)},
        stdin=subprocess.PIPE if waiting else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


def told(process: subprocess.Popen[str]) -> list[int]:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return [int(word) for word in out.split()[-3:-1]]


def undisturbed(folder: Path, chains: int) -> dict[str, str]:
    """The outputs of the same study, run in this process by nobody's leave."""
    folder.mkdir()
    assert run(study(chains, pause=0), Store(folder / "store"), workers=0, data=folder).complete
    return outputs_of(folder / "store", study(chains, pause=0))


def killed_at_random(store: Path, data: Path, chains: int, kills: int, seed: int) -> int:
    """Start and kill runners; how many were killed before the study was complete."""
    random_moment = random.Random(seed)
    count = 0
    for number in range(kills):
        before = len(runs_of(data))
        with runner(store, data, chains) as process:
            # Every fourth is killed while it starts, the others while stages run.
            if number % 4 == 0:
                time.sleep(random_moment.uniform(0, 0.5))
            else:
                while process.poll() is None and len(runs_of(data)) == before:
                    time.sleep(0.002)
                time.sleep(random_moment.uniform(0, 0.15))
            count += process.poll() is None
            process.kill()
    return count


@pytest.mark.parametrize(
    ("kills", "chains"),
    [
        pytest.param(10, 12, id="10 kills"),
        pytest.param(100, 120, id="100 kills", marks=pytest.mark.slow),
    ],
)
def test_a_study_survives_that_its_runner_is_killed(
    tmp_path: Path, kills: int, chains: int
) -> None:
    store, data = tmp_path / "store", tmp_path / "data"
    data.mkdir()
    count = killed_at_random(store, data, chains, kills, seed=5)
    assert count > kills / 2  # most were in the midst of it
    stages = study(chains)
    with runner(store, data, chains) as process:
        done, cached = told(process)
    assert done + cached == len(stages)
    assert cached > 0
    runs = runs_of(data)
    assert set(runs) == {s.label for s in stages}  # never "though it was done"
    # What was run more than once was in the midst of it in one of two processes of a killed runner.
    assert len(runs) <= len(stages) + 2 * count
    kept = Store(store)
    assert kept.done() == {s.key for s in stages}
    assert kept.failed() == {}
    for s in stages:
        kept.read(s.key)  # checksums
    assert outputs_of(store, stages) == undisturbed(tmp_path / "other", chains)


def test_two_runners_at_once_do_every_stage_once(tmp_path: Path) -> None:
    store, data, chains = tmp_path / "store", tmp_path / "data", 10
    data.mkdir()
    stages = study(chains)
    with (
        runner(store, data, chains, waiting=True) as one,
        runner(store, data, chains, waiting=True) as other,
    ):
        for process in (one, other):
            assert process.stdout is not None
            process.stdout.readline()
        for process in (one, other):
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        found = [told(one), told(other)]
    assert sum(done for done, _ in found) == len(stages)
    assert all(sum(both) == len(stages) for both in found)
    assert all(done > 0 for done, _ in found)
    assert sorted(runs_of(data)) == sorted(s.label for s in stages)
    assert outputs_of(store, stages) == undisturbed(tmp_path / "other", chains)
