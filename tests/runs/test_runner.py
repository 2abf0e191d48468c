"""Stages run once, failures stay alone, and what was interrupted goes on where it was."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_stages import diamond, outputs_of, runs_of, stage

from fairweight.errors import FairweightError, InputError, OutputError
from fairweight.runs import runner, store_layout
from fairweight.runs.runner import News, run
from fairweight.runs.store import Store

EVERYWHERE = pytest.mark.parametrize("workers", [0, 2])


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Where the stages leave their traces."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is heard, also where a shell made its children deaf to it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_when(data: Path, lines: int, *, times: int = 1, apart: float = 0.5) -> None:
    """Ctrl-C, once the stages have left some lines."""

    def press() -> None:
        while len(runs_of(data)) < lines:
            time.sleep(0.01)
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(apart)

    threading.Thread(target=press, daemon=True).start()


@EVERYWHERE
def test_every_stage_is_done_once_after_its_inputs(store: Store, data: Path, workers: int) -> None:
    stages = diamond()
    news: list[News] = []
    outcome = run(stages, store, workers=workers, data=data, progress=news.append)
    assert outcome.complete
    assert set(outcome.done) == {s.key for s in stages}
    assert not outcome.cached
    names = runs_of(data)
    assert sorted(names) == ["bottom", "left", "right", "top"]
    assert (names[0], names[-1]) == ("top", "bottom")
    ended = [(n.stage.label, n.finished, n.stages) for n in news if n.event == "done"]
    assert [e[1:] for e in ended] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert next(n.stage.label for n in news if n.event == "started") == "top"
    assert ("top", "step 1", 1, 1) in [
        (n.stage.label, n.words, n.done, n.total) for n in news if n.event == "running"
    ]

    again = run(stages, store, workers=workers, data=data)
    assert set(again.cached) == {s.key for s in stages}
    assert not again.done
    assert runs_of(data) == names


@EVERYWHERE
def test_a_failure_leaves_its_dependants_and_nothing_else(
    store: Store, data: Path, workers: int
) -> None:
    bad = stage("bad", function="fails")
    below = stage("below", [bad])
    good = diamond()
    outcome = run([bad, below, *good], store, workers=workers, data=data)
    assert outcome.failed == (bad.key,)
    assert outcome.left == (below.key,)
    assert set(outcome.done) == {s.key for s in good}
    assert outcome.stopped == ""
    record = store.failed()[bad.key]
    assert "ZeroDivisionError: bad cannot be divided" in record["traceback"]
    assert record["label"] == "bad"

    again = run([bad, below, *good], store, workers=workers, data=data)
    assert again.failed == (bad.key,)
    assert runs_of(data).count("bad") == 1
    store.forget_failures([bad.key])
    run([bad, below], store, workers=workers, data=data)
    assert runs_of(data).count("bad") == 2


def test_a_stage_that_leaves_python_has_failed(store: Store) -> None:
    left = stage("left", function="leaves")
    assert run([left], store, workers=0).failed == (left.key,)
    assert "SystemExit: 3" in store.failed()[left.key]["traceback"]


def test_a_stage_whose_process_was_killed_is_tried_again(store: Store, data: Path) -> None:
    twice = stage("twice", function="killed", times=2)
    outcome = run([twice, stage("other")], store, workers=2, data=data)
    assert outcome.complete
    assert runs_of(data).count("twice") == 3
    assert outputs_of(store.root, [twice]) == {"twice": "survived"}


def test_a_stage_that_kills_its_process_each_time_fails_with_a_sentence(
    store: Store, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runner.RETRIES == 3
    monkeypatch.setattr(runner, "RETRIES", 1)
    always = stage("always", function="killed", times=99)
    below = stage("below", [always])
    outcome = run([always, below, stage("other")], store, workers=1, data=data)
    assert (outcome.failed, outcome.left) == ((always.key,), (below.key,))
    assert runs_of(data).count("always") == 2
    told = store.failed()[always.key]["traceback"]
    assert "died in the midst of it, 2 times" in told
    assert "signal 9 (SIGKILL)" in told


def test_processes_have_one_thread_and_are_deaf_to_the_terminal(store: Store, capfd: Any) -> None:
    seen = stage("seen", function="facts")
    run([seen], store, workers=1)
    # Ctrl-C in a terminal reaches the processes of its session only.
    assert outputs_of(store.root, [seen]) == {"seen": "1 True"}  # threads, own session
    assert capfd.readouterr() == ("", "")


def test_a_process_that_cannot_start_is_told(store: Store, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "path", ["nowhere"])
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(FairweightError, match="process for the stages could not start"):
        run([stage("a")], store, workers=1)


@EVERYWHERE
def test_a_budget_stops_in_time_and_the_next_run_goes_on(
    store: Store, data: Path, workers: int
) -> None:
    budget = 3.0 if workers else 1.0  # a process must have begun by then, on a busy machine too
    long = stage("long", steps=60, pause=budget / 20)
    later = stage("later", [long])
    outcome = run([long, later], store, workers=workers, data=data, budget=budget)
    assert outcome.stopped == "budget"
    assert outcome.left == (long.key, later.key)
    assert outcome.seconds < budget + 1.5
    assert store.work(long.key).joinpath("step").exists()

    (store.work(long.key) / "step").write_text("58")  # as if it had come further
    done = len((data / "steps").read_text().splitlines())
    assert 1 <= done < 58
    assert run([long, later], store, workers=workers, data=data).complete
    steps = (data / "steps").read_text().splitlines()[done:]
    assert steps == ["long 58", "long 59", "later 0"]


def test_after_the_budget_no_stage_begins(store: Store, data: Path) -> None:
    stages = [stage(f"{i}", pause=0.15) for i in range(20)]
    outcome = run(stages, store, workers=0, data=data, budget=0.3)
    assert 1 <= len(runs_of(data)) <= 4
    assert outcome.stopped == "budget"
    assert len(outcome.done) + len(outcome.left) == 20


def test_a_stage_that_does_not_look_at_the_clock_is_ended_after_a_grace(
    store: Store, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "GRACE", 0.3)
    slow = stage("slow", function="unhurried")
    outcome = run([slow], store, workers=1, data=data, budget=1.0)
    assert outcome.left == (slow.key,)
    assert outcome.seconds < 5
    assert store.running() == set()


@pytest.mark.usefixtures("heard")
@EVERYWHERE
def test_ctrl_c_stops_where_it_can_go_on(store: Store, data: Path, workers: int) -> None:
    long = stage("long", steps=1000, pause=0.02)
    press_when(data, lines=1)
    begun = time.monotonic()
    outcome = run([long], store, workers=workers, data=data)
    assert (outcome.stopped, outcome.left) == ("interrupt", (long.key,))
    assert time.monotonic() - begun < 10
    assert store.running() == set()
    assert int((store.work(long.key) / "step").read_text()) >= 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("heard")
def test_ctrl_c_twice_ends_everything(store: Store, data: Path) -> None:
    press_when(data, lines=1, times=2)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run([stage("slow", function="unhurried")], store, workers=1, data=data)
    assert time.monotonic() - begun < 15
    assert store.running() == set()


# Sizes are compared whenever a stage is read, checksums once in each process.
@pytest.mark.parametrize(("workers", "content"), [(0, ""), (1, "?" * 32)])
def test_a_damaged_input_is_done_again_before_it_is_used(
    store: Store, data: Path, workers: int, content: str
) -> None:
    *above, bottom = diamond()
    run(above, store, workers=0, data=data)
    whole = outputs_of(store.root, above)
    assert len(whole["left"]) == 32
    damaged = store.folder(above[1].key) / "out.txt"
    damaged.chmod(0o644)
    damaged.write_text(content)
    news: list[News] = []
    outcome = run([*above, bottom], store, workers=workers, data=data, progress=news.append)
    assert outcome.done == (above[1].key, bottom.key)
    assert outcome.cached == (above[0].key, above[2].key)
    assert outputs_of(store.root, above) == whole
    assert [n.finished for n in news if n.event in ("again", "done")] == [2, 3, 4]


def test_a_stage_that_is_damaged_again_and_again_ends_in_a_failure(
    store: Store, data: Path
) -> None:
    top = stage("top")
    below = stage("below", [top])

    def spoil(news: News) -> None:
        if (news.stage, news.event) == (top, "done"):
            (store.folder(top.key) / "out.txt").unlink()

    outcome = run([top, below], store, workers=0, data=data, progress=spoil)
    assert outcome.failed == (below.key,)
    assert runs_of(data) == ["top"] * 4
    assert "done again 3 times" in store.failed()[below.key]["traceback"]


def test_a_full_disk_stops_the_run_and_is_no_failure(store: Store, data: Path) -> None:
    full = stage("full", function="full_disk")
    with pytest.raises(OutputError, match="no space left"):
        run([full, *(stage(f"{i}", pause=0.3) for i in range(9))], store, workers=1, data=data)
    assert store.failed() == {}
    assert len(runs_of(data)) <= 1


def test_a_stage_of_another_runner_is_waited_for(store: Store, data: Path) -> None:
    """And what the other does not finish is taken over."""
    theirs, abandoned, ours = stage("theirs"), stage("abandoned"), stage("ours")
    others = Store(store.root)
    news: list[News] = []
    with others.claim(abandoned.key), others.claim(theirs.key):

        def finish() -> None:
            while not any(n.event == "done" for n in news):
                time.sleep(0.01)
            others.write(theirs, lambda room: None)

        thread = threading.Thread(target=finish)
        thread.start()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(runner, "LOOK_AGAIN", 0.05)
            outcome = run(
                [theirs, abandoned, ours], store, workers=0, data=data, budget=1.0,
                progress=news.append,
            )  # fmt: skip
        thread.join()
    assert outcome.done == (ours.key,)
    assert outcome.cached == (theirs.key,)
    assert outcome.left == (abandoned.key,)
    assert run([theirs, abandoned, ours], store, workers=0, data=data).done == (abandoned.key,)


def test_arguments_are_checked(store: Store) -> None:
    with pytest.raises(InputError, match="workers is -1"):
        run([], store, workers=-1)
    with pytest.raises(InputError, match="budget is 0"):
        run([], store, budget=0)
    assert run([], store).complete
    assert not (store.root / store_layout.ABOUT).exists()
