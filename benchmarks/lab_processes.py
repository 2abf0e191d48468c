"""Two training runs at once, as two processes of one thread each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import IO, cast

from benchmarks.lines import Line
from benchmarks.measure import ROOT, Settings, seconds

TITLE = "Two training runs at once"
SETTING = (
    "LeNet on MNIST as above, in two processes of one thread each: both at once beside one after "
    "the other, medians of wall time in turns. It needs two cores that nothing else uses: on a "
    "busy machine the processor time beside it tells whether the runs hinder each other."
)
NEEDS = ("torch", "PIL")
BATCH = 32
WORKER = ("-m", "benchmarks.lab_worker")
FULL_ROUNDS = 7

Process = subprocess.Popen[str]


def run(settings: Settings) -> list[Line]:
    batches, rounds = (500, FULL_ROUNDS) if settings.full_size else (2, settings.rounds)
    together: list[float] = []
    in_turn: list[float] = []
    processor: dict[str, list[float]] = {"together": [], "in turn": []}
    with ExitStack() as stack:
        both = [stack.enter_context(_worker(batches)) for _ in range(2)]
        for worker in both:
            _answer(worker)  # it is ready

        def one_after_the_other() -> None:
            processor["in turn"] += [taken for worker in both for taken in _trained([worker])]

        def at_once() -> None:
            processor["together"] += _trained(both)

        for _ in range(rounds):
            in_turn.append(seconds(one_after_the_other))
            together.append(seconds(at_once))
    what = f"two runs of {batches * BATCH:,} examples at once"
    return [
        Line(what, median(together), "one after the other", median(in_turn), target=1.8,
             faster=True),
        Line(f"{what}: processor time of each", median(processor["together"]),
             "one after the other", median(processor["in turn"])),
    ]  # fmt: skip


def _trained(workers: Sequence[Process]) -> list[float]:
    """Start all, wait for all; the processor time of each."""
    for worker in workers:
        stream = cast("IO[str]", worker.stdin)
        stream.write("go\n")
        stream.flush()
    return [float(_answer(worker)) for worker in workers]


@contextmanager
def _worker(batches: int) -> Iterator[Process]:
    command = [sys.executable, *WORKER, str(batches), str(BATCH)]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=one_thread,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def _answer(worker: Process) -> str:
    line = cast("IO[str]", worker.stdout).readline()
    if not line:
        raise RuntimeError("A training process ended; its error is above.")
    return line
