"""Run the stages of a study, here or on a cluster, and come back with what became of them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from fairweight.errors import InputError
from fairweight.runs.executor import Executor, Job
from fairweight.runs.in_process import InProcess
from fairweight.runs.interrupts import Interrupts
from fairweight.runs.loop import Loop, Progress
from fairweight.runs.outcome import Outcome
from fairweight.runs.pool import Pool
from fairweight.runs.ray_pool import RayPool
from fairweight.runs.schedule import Schedule
from fairweight.runs.stage import Stage
from fairweight.runs.store import Store
from fairweight.trust import trusted_modules


def run(
    stages: Iterable[Stage],
    store: Store,
    *,
    workers: int | None = None,
    ray: str | None = None,
    gpus: float = 0.0,
    data: str | Path | None = None,
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
    job = Job(store, folder, deadline, trusted_modules())
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
