"""What a worker says about a stage: a few facts, never the outputs, which are in the store."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
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
    status: Status
    seconds: float = 0.0
    words: str = ""
    damaged: str = ""
