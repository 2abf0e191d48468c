"""Indexes are built beside the pages, one after the other; meanwhile a page says how far it is."""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path

from fairweight.web.index_process import built_apart
from fairweight.web.item import Item
from fairweight.web.votes.build import index_folder
from fairweight.web.votes.write import INDEX

LEAVING = 3.0  # seconds that a server which ends waits for a build to clear up


class NotReadyError(Exception):
    """An index that is still being built."""

    def __init__(self, job: _Job) -> None:
        super().__init__(job.sentence())
        self._job = job

    def wait(self, seconds: float) -> bool:
        """Whether it is built within so many seconds, or cannot be."""
        return self._job.finished.wait(seconds)


class _StoppedError(Exception):
    """The server ends."""


class _Job:
    """The building of one index."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.finished = threading.Event()
        self.error: Exception | None = None
        self._at = "waiting for others"

    def told(self, what: str, done: int, total: int) -> None:
        self._at = f"{what}, {done} of {total}" if total > 1 else what

    def sentence(self) -> str:
        return (
            f"The answers of '{self.item.title}' are opened for the first time and are being "
            f"indexed ({self._at}); this page comes back by itself, and later openings are quick."
        )


class Builder:
    """Builds in one thread: several indexes at once would need the memory of all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._waiting: deque[_Job] = deque()
        self._worker: threading.Thread | None = None
        self._ends = False

    def folder(self, item: Item) -> Path:
        """Where an item's index is; `NotReadyError` at once where it has to be built first."""
        with self._lock:
            job = self._jobs.get(item.key)
            if job is not None and job.finished.is_set():
                # Forgotten when it is told: whoever asks again after an error tries again.
                del self._jobs[item.key]
                if job.error is not None:
                    raise job.error
                job = None
            if job is None:
                folder = index_folder(item)
                if (folder / INDEX).is_file():
                    return folder
                job = self._begin(item)
        raise NotReadyError(job)

    def close(self) -> None:
        """Leave the rest; what is half-written is removed."""
        with self._lock:
            self._ends = True
            self._waiting.clear()
            worker = self._worker
        if worker is not None:
            worker.join(LEAVING)

    def _begin(self, item: Item) -> _Job:
        job = self._jobs[item.key] = _Job(item)
        self._waiting.append(job)
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="indexes", daemon=True)
            self._worker.start()
        return job

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._worker = None
                    return
                job = self._waiting.popleft()
            try:
                built_apart(job.item, lambda *words, job=job: self._tell(job, *words))
            except Exception as error:  # whoever asks is told
                job.error = error
            finally:
                job.finished.set()

    def _tell(self, job: _Job, what: str, done: int, total: int) -> None:
        if self._ends:
            raise _StoppedError
        job.told(what, done, total)
