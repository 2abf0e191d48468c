"""The index of an item's votes: built once, found again as long as its files are the same."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import signal
import threading
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fairweight
from fairweight.auditing.prediction_matrix import from_aligned, tasks_of
from fairweight.base.files import cache_folder
from fairweight.base.types import Progress
from fairweight.errors import FairweightError, InputError
from fairweight.tables.align import align
from fairweight.tables.logs import reader_of
from fairweight.tables.sources import find_files
from fairweight.web.items import Item
from fairweight.web.votes.writer import FORMAT, INDEX, write_index

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def indexed(item: Item, progress: Progress | None = None) -> Path:
    """The folder with an item's index, which is built where it is not there yet."""
    folder = index_folder(item)
    if not (folder / INDEX).is_file():
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds all predictions
        build_index(item, folder, progress)
        # Indexes of the same tables as they were before; who has one open keeps it.
        for other in folder.parent.glob(f"{folder.name.partition('-')[0]}-*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
    return folder


def build_index(item: Item, folder: Path, progress: Progress | None = None) -> None:
    """Read an item's predictions and write their index, whole or not at all."""
    if item.tables is None:
        raise InputError(
            f"'{item.title}' has no prediction table, so single examples cannot be shown; put the "
            "tables beside the audit (predictions.parquet), or name them."
        )
    if progress is not None:
        progress("reading predictions", 0, 1)
    with align(item.tables, further=True) as aligned:
        positive = None if aligned.has_task else item.tables.positive
        write_index(
            # Task by task, so that only one of them is in memory.
            (from_aligned(aligned, task, positive=positive) for task in tasks_of(aligned)),
            folder,
            cluster=next(iter(item.tables.clusters), None),
            notes=aligned.notes,
            progress=progress,
        )


def index_folder(item: Item) -> Path:
    """Where the index is kept: named by where the tables are, and by what they were like."""
    paths = [] if item.tables is None else item.tables.paths
    files: list[Path] = []
    for path in map(Path, paths):
        log = path.is_dir() and reader_of(path) is not None
        files += (
            sorted(filter(Path.is_file, path.rglob("*"))) if log else find_files(str(path)).files
        )
    where = [str(file.resolve()) for file in files]
    stats = [Path(name).stat() for name in where]
    facts = [(n, s.st_size, s.st_mtime_ns) for n, s in zip(where, stats, strict=True)]
    asked = None if item.tables is None else item.tables.to_json()
    like = [fairweight.__version__, FORMAT, facts, asked]
    return cache_folder() / "views" / f"{_digest([where, asked])}-{_digest(like)}"


def _digest(held: Any) -> str:
    """A short name of anything that JSON can say."""
    text = json.dumps(held, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# An index built in a process of its own: pages stay quick, and it ends when it is told to.

LISTEN = 0.1  # seconds between two words of progress, at most
CLEAR_UP = 2.0  # seconds for a process that was stopped


def built_apart(item: Item, progress: Progress) -> None:
    """Build an item's index; whoever is told of the progress may stop it by raising."""
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_build, args=(item, writer), daemon=True)
    process.start()
    writer.close()
    at: tuple[Any, ...] | None = ("reading predictions", 0, 1)
    try:
        while at is not None:  # the end of the work
            progress(*at)
            if not reader.poll(LISTEN):
                continue
            try:
                at = reader.recv()
            except EOFError:
                raise RuntimeError("the process that builds the index ended unexpectedly") from None
            if isinstance(at, Exception):
                raise at
    except BaseException:
        # Ctrl-C is heard even inside a query, and what is half-written is removed.
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, signal.SIGINT)
        raise
    finally:
        reader.close()
        process.join(CLEAR_UP)
        if process.is_alive():
            process.kill()
            process.join()


def _build(item: Item, writer: Connection) -> None:
    """Build an index in this process; what is done, the end or an error goes to the other."""
    with suppress(KeyboardInterrupt, BrokenPipeError):
        try:
            indexed(item, lambda *words: writer.send(words))
            writer.send(None)
        except FairweightError as error:
            writer.send(InputError(str(error)))
        except Exception as error:  # those of libraries may not survive the way as they are
            writer.send(RuntimeError(f"{type(error).__name__}: {error}"))


# Indexes are built beside the pages, one after the other; meanwhile a page says how far it is.

LEAVING = 3.0  # seconds that a server which ends waits for a build to clear up


class NotReadyError(Exception):
    """An index that is still being built."""

    def __init__(self, job: _Job) -> None:
        super().__init__(
            f"The predictions of '{job.item.title}' are opened for the first time and are being "
            f"indexed ({job.at}); this page reloads by itself, and opens quickly from then on."
        )
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
        self.at = "waiting for others"  # how far it is, in words


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
                job = self._jobs[item.key] = _Job(item)
                self._waiting.append(job)
                if self._worker is None:
                    self._worker = threading.Thread(target=self._work, name="indexes", daemon=True)
                    self._worker.start()
        raise NotReadyError(job)

    def close(self) -> None:
        """Leave the rest; what is half-written is removed."""
        with self._lock:
            self._ends = True
            self._waiting.clear()
            worker = self._worker
        if worker is not None:
            worker.join(LEAVING)

    def _work(self) -> None:
        """Build one index after the other, until none is waiting."""
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
        """Note how far a job is; stop it where the server ends."""
        if self._ends:
            raise _StoppedError
        job.at = f"{what}, {done} of {total}" if total > 1 else what
