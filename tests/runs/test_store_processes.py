"""Several processes on one store, and processes that are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from stored_stages import is_whole, numbered, writer

from fairweight.base import locks
from fairweight.runs import store_layout
from fairweight.runs.store import Store

# Does the stages that are left, in an order of its own, and notes which functions it has called.
RUNNER = """
import random, sys
sys.path.insert(0, sys.argv[1])
from stored_stages import numbered, writer
from fairweight.runs.store import Store
root, log, number, seed = sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
store, stages = Store(root), [numbered(n) for n in range(number)]
random.Random(seed).shuffle(stages)
print("ready", flush=True)
sys.stdin.readline()
with open(log, "a", buffering=1) as calls:
    for stage in stages:
        with store.claim(stage.key) as ours:
            if ours and not store.is_done(stage.key):
                def noted(room):
                    calls.write(stage.key + "\\n")
                    writer(stage.key)(room)
                store.write(stage, noted)
"""

HOLDER = """
import sys, time
from fairweight.runs.store import Store
with Store(sys.argv[1]).claim("ab") as ours:
    print(ours, flush=True)
    time.sleep(60)
"""


def start(root: Path, log: Path, number: int, seed: int) -> subprocess.Popen[str]:
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", RUNNER, here, str(root), str(log), str(number), str(seed)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("go\n")
    process.stdin.flush()


def calls(log: Path) -> list[str]:
    return log.read_text().split() if log.exists() else []


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_killed_at_any_moment_nothing_half_is_seen_and_nothing_is_done_again(
    tmp_path: Path, kills: int
) -> None:
    store, number, rng = Store(tmp_path / "s"), 4 * kills, random.Random(1)
    halves = 0
    for kill in range(kills):
        before, log = store.done(), tmp_path / f"{kill}.log"
        process = start(store.root, log, number, kill)
        go(process)
        stages = rng.randint(0, 3)
        while len(calls(log)) < stages and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.01))
        process.kill()
        process.communicate()
        assert not before & set(calls(log))
        done = store.done()
        assert before <= done
        halves += len(calls(log)) - len(done - before)
        assert all(store.is_done(key) and is_whole(store.read(key), key) for key in done)
    assert halves > 0  # else no kill came in the middle of a stage
    process = start(store.root, tmp_path / "last.log", number, 99)
    go(process)
    process.communicate()
    assert process.returncode == 0
    assert store.done() == {numbered(n).key for n in range(number)}
    assert all(is_whole(store.read(key), key) for key in store.done())
    assert store.running() == set()
    store.write(numbered(-1), writer(numbered(-1).key))
    assert os.listdir(store.root / store_layout.ROOMS) == []


def test_two_runners_do_each_stage_once(tmp_path: Path) -> None:
    store, number = Store(tmp_path / "s"), 40
    processes = [start(store.root, tmp_path / f"{n}.log", number, n) for n in (1, 2)]
    for process in processes:
        go(process)
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    both = [calls(tmp_path / f"{n}.log") for n in (1, 2)]
    assert Counter(both[0] + both[1]) == Counter(numbered(n).key for n in range(number))
    assert store.done() == set(both[0] + both[1])


def test_a_claim_dies_with_its_process(tmp_path: Path) -> None:
    store = Store(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    with store.claim("ab") as ours:
        assert not ours
    assert store.running() == {"ab"}
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert store.running() == set()
    with store.claim("ab") as ours:
        assert ours


def test_a_claim_is_for_one_within_a_process_too(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.claim("ab") as first, store.claim("ab") as second, store.claim("cd") as other:
        assert (first, second, other) == (True, False, True)
        assert store.running() == {"ab", "cd"}
    with pytest.raises(OSError, match="of the block"), store.claim("ab"):
        raise OSError("of the block")
    with store.claim("ab") as again:
        assert again
    assert os.listdir(store.root / store_layout.LOCKS) == []


def test_locks_hold_while_their_files_come_and_go(tmp_path: Path) -> None:
    inside, most, turns = 0, 0, 0

    def work() -> None:
        nonlocal inside, most, turns
        for _ in range(100):
            with locks.held(tmp_path / "lock", wait=True) as ours:
                assert ours
                inside += 1
                most = max(most, inside)
                turns += 1
                time.sleep(0)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, turns) == (1, 400)
