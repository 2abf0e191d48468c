"""What the runner asks of those that run stages, be it this process, others, or a cluster."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from fairweight.runs.result import Result
from fairweight.runs.stage import Stage
from fairweight.runs.store import Store

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
        Modules that cards and specs may name (`fairweight.trust`).
    """

    store: Store
    data: Path | None = None
    deadline: float | None = None
    modules: tuple[str, ...] = ()


class Executor(Protocol):
    """Runs stages, some at a time."""

    @property
    def free(self) -> int:
        """How many stages it would take now."""

    def submit(self, stage: Stage) -> None:
        """Take a stage; only while something is free."""

    def finished(self, wait: float) -> list[Result]:
        """What ended since the last call; waits so many seconds for something to end."""

    def interrupt(self) -> None:
        """Ask running stages to stop where they can go on."""

    def stop(self) -> None:
        """End whatever still runs; nothing is left of it but half-done work in the store."""
