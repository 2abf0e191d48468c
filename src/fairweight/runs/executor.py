"""Executors run stages for the runner: in this process, in others, or on a cluster."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Protocol, TypeAlias

from fairweight.base.trust import trusting
from fairweight.errors import OutputError
from fairweight.runs.manifest import Damaged
from fairweight.runs.stage import Stage
from fairweight.runs.store import Store


class Ending(Enum):
    """How an attempt at a stage ended."""

    DONE = "done"
    CACHED = "cached"  # it was there already
    BUSY = "busy"  # another runner works on it
    FAILED = "failed"  # recorded in the store
    OUT_OF_TIME = "out of time"  # stopped where it can go on
    DAMAGED = "damaged"  # an input must be done again
    DIED = "died"  # the process ended in the midst of it
    UNWRITABLE = "unwritable"  # the disk is full, or refuses
    UNSHARED = "unshared"  # the node does not see the store


@dataclass(frozen=True, slots=True)
class Result:
    """The end of one attempt.

    Parameters
    ----------
    words
        The traceback of a failure, the last words of a process, or a sentence.
    damaged
        The input that must be done again.
    """

    key: str
    status: Ending
    seconds: float = 0.0
    words: str = ""
    damaged: str = ""


# Called with done, total and words; raises `OutOfTime` to stop the stage.
Report: TypeAlias = Callable[[int, int, str], None]
# Called with key, done, total and words.
Tell: TypeAlias = Callable[[str, int, int, str], None]


@dataclass(frozen=True)
class Job:
    """What all stages of a run have in common.

    Parameters
    ----------
    data
        The folder with data sets.
    deadline
        When stages are to stop (`time.time()`).
    modules
        Modules that cards and specs may name (`fairweight.base.trust`).
    weights
        Files of pretrained weights, which specs name by their digests.
    """

    store: Store
    data: Path | None = None
    deadline: float | None = None
    modules: tuple[str, ...] = ()
    weights: tuple[Path, ...] = ()


class Executor(Protocol):
    """Runs stages, some at a time."""

    @property
    def free(self) -> int:
        """How many more stages it can accept now."""

    def submit(self, stage: Stage) -> None:
        """Accept a stage; call it only while `free` is above 0."""

    def finished(self, wait: float) -> list[Result]:
        """Attempts that ended since the last call; sleeps at most `wait` seconds for one."""

    def interrupt(self) -> None:
        """Ask running stages to stop at their next checkpoint."""

    def stop(self) -> None:
        """Kill whatever still runs; only its unfinished work in the store remains."""


class OutOfTime(Exception):  # noqa: N818  a signal, not an error
    """The time budget is used up: the stage stops at a checkpoint from which it can continue."""


@dataclass(frozen=True)
class StageContext:
    """Where and how a stage runs; nothing here changes its result.

    Parameters
    ----------
    data
        The folder with data sets.
    work
        A folder of the stage's own that survives an interruption (checkpoints).
    deadline
        When to stop (`time.time()`); None: never.
    report
        Called with (done, total, words) while the stage runs.
    weights
        Files of pretrained weights, which specs name by their digests.
    """

    data: Path | None
    work: Path
    deadline: float | None = None
    report: Report | None = None
    weights: tuple[Path, ...] = ()

    def progress(self, done: int, total: int, words: str = "") -> None:
        """Say how far the stage has come; raises `OutOfTime` once the deadline has passed."""
        if self.report is not None:
            self.report(done, total, words)
        if self.deadline is not None and time.time() > self.deadline:
            raise OutOfTime


def attempt(stage: Stage, job: Job, report: Report | None = None) -> Result:
    """Claim a stage, run its function and store the outputs, in whatever process.

    Nothing is done if it is done already, or somebody else is at it. Errors become a result.
    """
    begun = time.monotonic()

    def result(status: Ending, words: str = "", damaged: str = "") -> Result:
        return Result(stage.key, status, time.monotonic() - begun, words, damaged)

    try:
        with job.store.claim(stage.key) as ours:
            if not ours:
                return result(Ending.BUSY)
            if job.store.is_done(stage.key):
                return result(Ending.CACHED)
            if job.deadline is not None and time.time() > job.deadline:
                return result(Ending.OUT_OF_TIME)
            try:
                inputs = {key: job.store.read(key) for key in stage.inputs}
                module, _, name = stage.function.partition(":")
                function: Callable[..., None] = getattr(import_module(module), name)
                work = job.store.work(stage.key)
                context = StageContext(job.data, work, job.deadline, report, job.weights)
                with trusting(modules=job.modules):
                    job.store.write(
                        stage, lambda folder: function(dict(stage.spec), inputs, folder, context)
                    )
            except OutOfTime:
                return result(Ending.OUT_OF_TIME)
            except Damaged as error:
                return result(Ending.DAMAGED, str(error), damaged=error.key)
            except OutputError:
                raise
            except (Exception, SystemExit):
                words = traceback.format_exc()
                job.store.fail(stage.key, words, stage.label)
                return result(Ending.FAILED, words)
            return result(Ending.DONE)
    except OutputError as error:
        # No fault of the stage: the next one would not be written either.
        return result(Ending.UNWRITABLE, str(error))


def throttled(tell: Report, every: float, stopping: Callable[[], bool]) -> Report:
    """Pass on what a stage reports at most once in `every` seconds, and stop it when asked to."""
    last = 0.0

    def report(done: int, total: int, words: str) -> None:
        nonlocal last
        if stopping():
            raise OutOfTime
        now = time.monotonic()
        if now - last >= every:
            last = now
            tell(done, total, words)

    return report


NEWS_EVERY = 0.2  # seconds


class InProcess:
    """Runs each stage in this very process while it is submitted.

    A stage that never reports how far it is cannot be stopped before its end.

    Parameters
    ----------
    stopping
        Whether the running stage should stop where it can go on.
    """

    def __init__(self, job: Job, tell: Tell, stopping: Callable[[], bool]) -> None:
        self._job, self._tell, self._stopping = job, tell, stopping
        self._results: list[Result] = []

    @property
    def free(self) -> int:
        return 0 if self._results else 1

    def submit(self, stage: Stage) -> None:
        report = throttled(partial(self._tell, stage.key), NEWS_EVERY, self._stopping)
        self._results.append(attempt(stage, self._job, report))

    def finished(self, wait: float) -> list[Result]:
        if not self._results:
            time.sleep(wait)
        results, self._results = self._results, []
        return results

    def interrupt(self) -> None:
        """Does nothing: a stage has ended before this can be called."""

    def stop(self) -> None:
        """Does nothing: a stage has ended before this can be called."""
