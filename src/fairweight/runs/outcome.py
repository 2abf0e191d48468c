"""What a run of a study came to, and what it tells meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from fairweight.runs.stage import Stage

Event: TypeAlias = Literal["started", "running", "done", "cached", "failed", "stopped", "again"]


@dataclass(frozen=True)
class Outcome:
    """Keys of all stages, by what became of them.

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
    """Something happened to a stage, for progress bars.

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
