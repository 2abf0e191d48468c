"""Run the stages of a study, here or on a cluster, and report how each ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Literal, TypeAlias

from fairweight.base.trust import trusted_modules
from fairweight.errors import FairweightError, InputError, OutputError
from fairweight.runs.executor import Ending, Executor, InProcess, Job, Result
from fairweight.runs.pool import Pool
from fairweight.runs.ray_pool import RayPool
from fairweight.runs.schedule import Schedule, State
from fairweight.runs.stage import Stage
from fairweight.runs.store import Store

Event: TypeAlias = Literal["started", "running", "done", "cached", "failed", "stopped", "again"]


@dataclass(frozen=True)
class Outcome:
    """Keys of all stages, by how they ended.

    Parameters
    ----------
    done
        Made by this run, in the order in which they ended.
    cached
        There already, or made meanwhile by another runner.
    failed
        Failed now or earlier; they are tried again once their failures are forgotten.
    left
        Not done: they wait for a failed stage, or the run was stopped.
    stopped
        Why the run ended early: its budget was used up, or Ctrl-C was pressed.
    """

    done: tuple[str, ...]
    cached: tuple[str, ...]
    failed: tuple[str, ...]
    left: tuple[str, ...]
    seconds: float
    stopped: Literal["", "budget", "interrupt"] = ""

    @property
    def complete(self) -> bool:
        """Whether every stage is in the store now."""
        return not self.failed and not self.left


@dataclass(frozen=True, slots=True)
class News:
    """A change in a stage's state, for progress bars.

    Parameters
    ----------
    event
        `started`; `running` (then `done` of `total` are made); `done`, `cached`, `failed`;
        `stopped` where it can go on; `again` where it was put back, because another runner is at
        it, its process died, or an input was damaged.
    words
        What a running stage says, or the last line of a traceback.
    seconds
        How long the attempt took.
    finished, stages
        How many stages of the study are done, and how many there are.
    """

    stage: Stage
    event: Event
    finished: int
    stages: int
    done: int = 0
    total: int = 0
    words: str = ""
    seconds: float = 0.0


class Interrupts:
    """While entered, the first Ctrl-C is only noted; the second raises `KeyboardInterrupt`."""

    def __init__(self) -> None:
        self.asked = False
        self._before: signal.Handlers | object = None

    def __enter__(self) -> Interrupts:
        # Only the main thread may say what signals do; who ignores Ctrl-C goes on ignoring it.
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        ):
            self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


RETRIES = 3  # of a stage whose process died, or that is found damaged again
LOOK_AGAIN = 0.5  # seconds, at a stage that another runner works on
LISTEN = 0.25  # seconds at most before the clock and Ctrl-C are looked at
GRACE = 30.0  # seconds for stages that do not look at the clock

Progress: TypeAlias = Callable[[News], None]


class Loop:
    """One run of a schedule's stages: submit, collect results, record failures, stop in time."""

    def __init__(
        self, schedule: Schedule, job: Job, interrupts: Interrupts, progress: Progress | None
    ) -> None:
        self._schedule, self._job, self._interrupts = schedule, job, interrupts
        self._progress = progress
        self._done: list[str] = []
        self._cached = schedule.keys(State.DONE)
        self._running: set[str] = set()
        self._elsewhere: dict[str, float] = {}  # with other runners, and when to look again
        self._accidents: Counter[str] = Counter()
        self._stopped: Literal["", "budget", "interrupt"] = ""
        self._error: FairweightError | None = None
        self._patience = 0.0  # until when running stages are waited for, once we stop

    def run(self, executor: Executor) -> None:
        """Run until no stage is left that can run, or it is time to stop.

        Raises
        ------
        OutputError, InputError
            No stage can be written.
        """
        while True:
            if not self._stopped:
                if self._interrupts.asked:
                    self._stopped = "interrupt"
                elif self._job.deadline is not None and time.time() > self._job.deadline:
                    self._stopped = "budget"
            if self._stopped or self._error is not None:
                if not self._patience:
                    self._patience = time.monotonic() + GRACE
                    executor.interrupt()
                if not self._running or time.monotonic() > self._patience:
                    break
            else:
                for key, when in list(self._elsewhere.items()):
                    if time.monotonic() < when:
                        continue
                    del self._elsewhere[key]
                    if self._job.store.is_done(key):
                        self._take_note(Result(key, Ending.CACHED))
                    else:  # perhaps the other one has given up: a worker finds out
                        self._schedule.again(key)
                while executor.free and (stage := self._schedule.next()) is not None:
                    self._running.add(stage.key)
                    self._news(stage.key, "started")
                    executor.submit(stage)
                if not self._running and not self._elsewhere:
                    break
            for result in executor.finished(LISTEN):
                self._running.discard(result.key)
                self._take_note(result)
        if self._error is not None:
            raise self._error

    def outcome(self, seconds: float) -> Outcome:
        left = self._schedule.keys(State.WAITING, State.READY, State.RUNNING, State.LEFT)
        return Outcome(
            tuple(self._done),
            tuple(self._cached),
            tuple(self._schedule.keys(State.FAILED)),
            tuple(left),
            seconds,
            self._stopped if left else "",
        )

    def tell(self, key: str, done: int, total: int, words: str) -> None:
        """Pass on the progress of a running stage."""
        self._news(key, "running", done=done, total=total, words=words)

    def _take_note(self, result: Result) -> None:
        event = self._event(result)
        last_line = result.words.strip().rpartition("\n")[-1]
        self._news(result.key, event, words=last_line, seconds=result.seconds)

    def _event(self, result: Result) -> Event:
        """Update the state of a stage after an attempt at it."""
        key, schedule = result.key, self._schedule
        match result.status:
            case Ending.DONE:
                self._done.append(key)
                schedule.finish(key)
                return "done"
            case Ending.CACHED:
                self._cached.append(key)
                schedule.finish(key)
                return "cached"
            case Ending.FAILED:
                schedule.fail(key)
                return "failed"
            case Ending.OUT_OF_TIME:
                schedule.leave(key)
                return "stopped"
            case Ending.BUSY:
                self._elsewhere[key] = time.monotonic() + LOOK_AGAIN
                return "again"
            case Ending.DAMAGED:
                damaged = result.damaged
                if damaged not in schedule:
                    return self._failed(key, f"{result.words} It is not a stage of this study.")
                if self._accidents[damaged] == RETRIES:
                    again = f"It was done again {RETRIES} times: look after the disk."
                    return self._failed(key, f"{result.words} {again}")
                self._accidents[damaged] += 1
                for made in (self._done, self._cached):
                    if damaged in made:
                        made.remove(damaged)
                schedule.redo(damaged)
                schedule.again(key)
                return "again"
            case Ending.DIED:
                if self._accidents[key] == RETRIES:
                    return self._failed(
                        key,
                        f"The process of this stage died in the midst of it, {RETRIES + 1} times: "
                        "somebody killed it, or the machine ran out of memory. Its end: "
                        f"{result.words}",
                    )
                self._accidents[key] += 1
                schedule.again(key)
                return "again"
            case Ending.UNWRITABLE:
                self._error = OutputError(result.words)
            case Ending.UNSHARED:
                self._error = InputError(result.words)
        schedule.leave(key)
        return "stopped"

    def _failed(self, key: str, sentence: str) -> Event:
        self._job.store.fail(key, sentence, self._schedule[key].label)
        self._schedule.fail(key)
        return "failed"

    def _news(
        self,
        key: str,
        event: Event,
        *,
        done: int = 0,
        total: int = 0,
        words: str = "",
        seconds: float = 0.0,
    ) -> None:
        if self._progress is not None:
            finished, stages = len(self._done) + len(self._cached), len(self._schedule)
            stage = self._schedule[key]
            self._progress(News(stage, event, finished, stages, done, total, words, seconds))


def run(
    stages: Iterable[Stage],
    store: Store,
    *,
    workers: int | None = None,
    ray: str | None = None,
    gpus: float = 0.0,
    data: str | Path | None = None,
    weights: Iterable[str | Path] = (),
    budget: float | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Do every stage that is not in the store yet.

    A stage that fails is recorded in the store and those that need it are left; the others go
    on. It is not tried again before its failure is forgotten (`store.forget_failures`). A stage
    whose process dies is tried again, at most three times; one whose outputs are damaged is done
    again. Any number of runs may share a store.

    Parameters
    ----------
    stages
        With the stages that they need, in any order.
    workers
        Processes; 0: in this one, where a stage that does not look at the clock cannot be
        stopped; None: one per core. With `ray="local"`: cores of the cluster that is started.
    ray
        `local`, or the address of a Ray cluster whose nodes share the store's folder.
    gpus
        For each stage on Ray; a part of one is allowed.
    data
        The folder with data sets.
    weights
        Files of pretrained weights, beside those of installed packages.
    budget
        Seconds. After them no stage begins, and running ones stop where they can go on; those
        that do not look at the clock have 30 s more. Ctrl-C does the same at once; pressed
        twice, it ends everything and is raised.
    progress
        Called with the news of each stage.

    Raises
    ------
    OutputError
        The store cannot be written; the disk is full, for example.
    InputError
        Ray is not installed or not there, or its nodes do not share the store.
    """
    if workers is not None and workers < 0:
        raise InputError(f"workers is {workers}; give 0 (in this process) or more.")
    if budget is not None and not budget > 0:
        raise InputError(f"budget is {budget}; give seconds, more than 0.")
    begun = time.monotonic()
    deadline = None if budget is None else time.time() + budget
    folder = None if data is None else Path(os.path.abspath(data))
    files = tuple(Path(os.path.abspath(file)) for file in weights)
    job = Job(store, folder, deadline, trusted_modules(), files)
    schedule = Schedule(stages, store.done(), store.failed())
    with Interrupts() as interrupts:
        loop = Loop(schedule, job, interrupts, progress)
        executor: Executor
        if ray is not None:
            executor = RayPool(ray, job, loop.tell, cpus=workers or None, gpus=gpus)
        elif workers == 0:
            executor = InProcess(job, loop.tell, lambda: interrupts.asked)
        else:
            executor = Pool(workers or cores(), job, loop.tell)
        try:
            loop.run(executor)
        finally:
            executor.stop()
    return loop.outcome(time.monotonic() - begun)


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
