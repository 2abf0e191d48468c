"""What a stage is given beside its spec: where data are, a place for half-done work, a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


class OutOfTime(Exception):  # noqa: N818  a signal, not an error
    """The budget is used up: the stage stops where it can go on."""


@dataclass(frozen=True)
class Context:
    """Circumstances of a stage; nothing here changes its result.

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
    """

    data: Path | None
    work: Path
    deadline: float | None = None
    report: Callable[[int, int, str], None] | None = None

    def progress(self, done: int, total: int, words: str = "") -> None:
        """Tell how far the stage has come; raises `OutOfTime` once the deadline has passed."""
        if self.report is not None:
            self.report(done, total, words)
        if self.deadline is not None and time.time() > self.deadline:
            raise OutOfTime
