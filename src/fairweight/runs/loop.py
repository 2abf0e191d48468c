"""Between the schedule and whoever runs the stages: give out, listen, take note, stop in time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Literal, TypeAlias

from fairweight.errors import FairweightError, InputError, OutputError
from fairweight.runs.executor import Executor, Job
from fairweight.runs.interrupts import Interrupts
from fairweight.runs.outcome import Event, News, Outcome
from fairweight.runs.result import Result, Status
from fairweight.runs.schedule import Schedule, State

RETRIES = 3  # of a stage whose process died, or that is found damaged again
LOOK_AGAIN = 0.5  # seconds, at a stage that another runner works on
LISTEN = 0.25  # seconds at most before the clock and Ctrl-C are looked at
GRACE = 30.0  # seconds for stages that do not look at the clock

Progress: TypeAlias = Callable[[News], None]


class Loop:
    """One run of the stages of a schedule."""

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
        """Until nothing is left that can be done, or it is time to stop.

        Raises
        ------
        OutputError, InputError
            No stage can be written.
        """
        while True:
            self._look_at_the_clock(executor)
            if self._stopping:
                if not self._running or time.monotonic() > self._patience:
                    break
            else:
                self._look_elsewhere()
                self._give_out(executor)
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
        """Pass on what a running stage says."""
        self._news(key, "running", done=done, total=total, words=words)

    @property
    def _stopping(self) -> bool:
        return bool(self._stopped) or self._error is not None

    def _look_at_the_clock(self, executor: Executor) -> None:
        if not self._stopped:
            if self._interrupts.asked:
                self._stopped = "interrupt"
            elif self._job.deadline is not None and time.time() > self._job.deadline:
                self._stopped = "budget"
        if self._stopping and not self._patience:
            self._patience = time.monotonic() + GRACE
            executor.interrupt()

    def _look_elsewhere(self) -> None:
        now = time.monotonic()
        for key, when in list(self._elsewhere.items()):
            if now < when:
                continue
            del self._elsewhere[key]
            if self._job.store.is_done(key):
                self._take_note(Result(key, Status.CACHED))
            else:  # perhaps the other one has given up: a worker finds out
                self._schedule.again(key)

    def _give_out(self, executor: Executor) -> None:
        while executor.free and (stage := self._schedule.next()) is not None:
            self._running.add(stage.key)
            self._news(stage.key, "started")
            executor.submit(stage)

    def _take_note(self, result: Result) -> None:
        event = self._event(result)
        last_line = result.words.strip().rpartition("\n")[-1]
        self._news(result.key, event, words=last_line, seconds=result.seconds)

    def _event(self, result: Result) -> Event:
        """Change the state of a stage to what became of it."""
        key, schedule = result.key, self._schedule
        match result.status:
            case Status.DONE:
                self._done.append(key)
                schedule.finish(key)
                return "done"
            case Status.CACHED:
                self._cached.append(key)
                schedule.finish(key)
                return "cached"
            case Status.FAILED:
                schedule.fail(key)
                return "failed"
            case Status.OUT_OF_TIME:
                schedule.leave(key)
                return "stopped"
            case Status.BUSY:
                self._elsewhere[key] = time.monotonic() + LOOK_AGAIN
                return "again"
            case Status.DAMAGED:
                return self._without_input(key, result.damaged, result.words)
            case Status.DIED:
                return self._without_process(key, result.words)
            case Status.UNWRITABLE:
                self._error = OutputError(result.words)
            case Status.UNSHARED:
                self._error = InputError(result.words)
        schedule.leave(key)
        return "stopped"

    def _without_input(self, key: str, damaged: str, words: str) -> Event:
        if damaged not in self._schedule:
            return self._failed(key, f"{words} It is not a stage of this study.")
        if self._accidents[damaged] == RETRIES:
            return self._failed(
                key, f"{words} It was done again {RETRIES} times: look after the disk."
            )
        self._accidents[damaged] += 1
        for made in (self._done, self._cached):
            if damaged in made:
                made.remove(damaged)
        self._schedule.redo(damaged)
        self._schedule.again(key)
        return "again"

    def _without_process(self, key: str, words: str) -> Event:
        if self._accidents[key] == RETRIES:
            return self._failed(
                key,
                f"The process of this stage died in the midst of it, {RETRIES + 1} times: somebody "
                f"killed it, or the machine ran out of memory. Its end: {words}",
            )
        self._accidents[key] += 1
        self._schedule.again(key)
        return "again"

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
