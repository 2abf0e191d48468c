"""Work in processes of their own, which all end when one of them fails or Ctrl-C is pressed."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from tempfile import TemporaryDirectory
from typing import TypeVar

from fairweight.errors import FairweightError

Result = TypeVar("Result")


def in_processes(
    jobs: Sequence[Callable[[], Result]],
    workers: int,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """What every job returns, in their order.

    When this returns or raises, none of its processes is left, nor any temporary file of theirs.

    Parameters
    ----------
    jobs
        Functions that can be pickled.
    progress
        Called with the number of jobs that are done, and of all.
    """
    others = active_children()
    # Forking a process that has threads (DuckDB's, a progress bar's) can hang the copy.
    context = get_context("spawn")
    # Processes that are ended cannot tidy up: what they keep in a temporary folder is in ours.
    with (
        TemporaryDirectory(prefix="fairweight-") as room,
        ProcessPoolExecutor(
            min(workers, len(jobs)), mp_context=context, initializer=_keep_in, initargs=(room,)
        ) as pool,
    ):
        with _ignoring_interrupts():
            futures: list[Future[Result]] = [pool.submit(job) for job in jobs]
        try:
            for done, future in enumerate(as_completed(futures), start=1):
                future.result()
                if progress is not None:
                    progress(done, len(jobs))
        except BaseException as error:
            # Nobody waits any more for what is being made.
            pool.shutdown(wait=False, cancel_futures=True)
            ours = [process for process in active_children() if process not in others]
            for process in ours:
                process.terminate()
            for process in ours:
                process.join()
            if isinstance(error, BrokenProcessPool):
                raise FairweightError(
                    "A process ended in the midst of its work: somebody killed it, or the machine "
                    "ran out of memory; nothing was written. Try again with more memory free."
                ) from error
            raise
    return [future.result() for future in futures]


def _keep_in(room: str) -> None:
    tempfile.tempdir = room


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes started meanwhile go on ignoring them.

    Ctrl-C reaches every process of a terminal, and only one of them should speak.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may change what signals do
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
