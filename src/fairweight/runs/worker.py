"""One attempt at a stage, in whatever process: claim it, run its function, store the outputs."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

from fairweight.errors import OutputError
from fairweight.runs.context import Context, OutOfTime
from fairweight.runs.damaged import Damaged
from fairweight.runs.executor import Job
from fairweight.runs.result import Result, Status
from fairweight.runs.stage import Stage
from fairweight.trust import trusting

# Called with done, total and words; raises `OutOfTime` to stop the stage.
Report: TypeAlias = Callable[[int, int, str], None]


def attempt(stage: Stage, job: Job, report: Report | None = None) -> Result:
    """Do a stage unless it is done, or somebody else is at it. Errors become a result."""
    begun = time.monotonic()

    def result(status: Status, words: str = "", damaged: str = "") -> Result:
        return Result(stage.key, status, time.monotonic() - begun, words, damaged)

    try:
        with job.store.claim(stage.key) as ours:
            if not ours:
                return result(Status.BUSY)
            if job.store.is_done(stage.key):
                return result(Status.CACHED)
            if job.deadline is not None and time.time() > job.deadline:
                return result(Status.OUT_OF_TIME)
            try:
                _run(stage, job, report)
            except OutOfTime:
                return result(Status.OUT_OF_TIME)
            except Damaged as error:
                return result(Status.DAMAGED, str(error), damaged=error.key)
            except OutputError:
                raise
            except (Exception, SystemExit):
                words = traceback.format_exc()
                job.store.fail(stage.key, words, stage.label)
                return result(Status.FAILED, words)
            return result(Status.DONE)
    except OutputError as error:
        # No fault of the stage: the next one would not be written either.
        return result(Status.UNWRITABLE, str(error))


def _run(stage: Stage, job: Job, report: Report | None) -> None:
    inputs = {key: job.store.read(key) for key in stage.inputs}
    function = _function(stage.function)
    context = Context(job.data, job.store.work(stage.key), job.deadline, report)
    with trusting(modules=job.modules):
        job.store.write(stage, lambda room: function(dict(stage.spec), inputs, room, context))


def _function(name: str) -> Callable[..., Any]:
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
