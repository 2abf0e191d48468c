"""Stages in this very process, one after the other."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from fairweight.runs.executor import Job, Tell
from fairweight.runs.result import Result
from fairweight.runs.stage import Stage
from fairweight.runs.throttle import throttled
from fairweight.runs.worker import attempt

NEWS_EVERY = 0.2  # seconds


class InProcess:
    """Runs a stage while it is submitted.

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
        """Nothing runs when this can be called."""

    def stop(self) -> None:
        """Nothing runs when this can be called."""
