"""Stages in processes of their own on this machine, one thread each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

from fairweight.base.memory import keep_freed_blocks
from fairweight.errors import FairweightError
from fairweight.runs.executor import NEWS_EVERY, Ending, Job, Result, Tell, attempt, throttled
from fairweight.runs.stage import Stage

# As many processes as cores: threads inside each would only get in each other's way.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
LAST_WORDS = 2000  # characters of what a dead process wrote
PATIENCE = 5.0  # seconds for a process to end whose connection is closed


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    connection: Connection
    errors: Path
    ready: bool = False
    stage: Stage | None = None


class Pool:
    """Processes that wait for stages, started when they are needed.

    They are fresh interpreters, not forks: forking a process that has threads can hang the copy.
    They have a session of their own, so Ctrl-C reaches only this process, and they end when it
    ends, whatever ended it.
    """

    def __init__(self, workers: int, job: Job, tell: Tell) -> None:
        self._size, self._job, self._tell = workers, job, tell
        self._workers: list[_Worker] = []
        # Processes that are killed cannot tidy up: their temporary files are in ours.
        self._folder = TemporaryDirectory(prefix="fairweight-", ignore_cleanup_errors=True)
        self._started = 0

    @property
    def free(self) -> int:
        return self._size - sum(worker.stage is not None for worker in self._workers)

    def submit(self, stage: Stage) -> None:
        for worker in [worker for worker in self._workers if worker.stage is None]:
            with suppress(OSError):  # it died while it had nothing to do
                os.truncate(worker.errors, 0)  # last words are those of one stage
                worker.connection.send(stage)
                worker.stage = stage
                return
            self._remove(worker)
        worker = self._start()
        worker.stage = stage
        with suppress(OSError):  # it could not start; `finished` says why
            worker.connection.send(self._job)
            worker.connection.send(stage)

    def finished(self, wait: float) -> list[Result]:
        wait_for([worker.connection for worker in self._workers], wait)
        results: list[Result] = []
        for worker in list(self._workers):
            ended = worker.process.poll() is not None  # before looking: it may send, then end
            try:
                while worker.connection.poll():
                    message = worker.connection.recv()
                    if isinstance(message, Result):
                        worker.stage = None
                        results.append(message)
                    elif isinstance(message, tuple):
                        self._tell(*message)
                    else:
                        worker.ready = True
            except (EOFError, OSError):
                ended = True
            if not ended:
                continue
            self._remove(worker)
            last_words = worker.errors.read_text(errors="replace")[-LAST_WORDS:].strip()
            if not worker.ready:
                raise FairweightError(
                    f"A process for the stages could not start: {last_words or 'no reason'}"
                )
            if worker.stage is not None:
                words = "\n".join(
                    filter(None, (how_it_ended(worker.process.returncode), last_words))
                )
                results.append(Result(worker.stage.key, Ending.DIED, words=words))
        return results

    def interrupt(self) -> None:
        for worker in self._workers:
            with suppress(OSError):
                worker.connection.send("stop")

    def stop(self) -> None:
        for worker in list(self._workers):
            if worker.stage is not None:
                self._kill(worker)
            self._remove(worker)
        self._folder.cleanup()

    def _start(self) -> _Worker:
        ours, theirs = Pipe()
        self._started += 1
        errors = Path(self._folder.name) / f"{self._started}.txt"
        # What this process can import, they can.
        path = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
        with theirs, errors.open("ab") as stream:
            process = subprocess.Popen(
                # -P: a file of the user's folder must not stand in for a module.
                [sys.executable, "-P", "-X", "faulthandler", "-m", "fairweight.runs.pool",
                 str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=os.environ | ONE_THREAD | {"PYTHONPATH": path, "TMPDIR": self._folder.name},
                start_new_session=True,
            )  # fmt: skip
        worker = _Worker(process, ours, errors)
        self._workers.append(worker)
        return worker

    def _remove(self, worker: _Worker) -> None:
        """Close a process's connection, which ends the process."""
        self._workers.remove(worker)
        worker.connection.close()
        try:
            worker.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._kill(worker)

    def _kill(self, worker: _Worker) -> None:
        """Kill a process and those that it started: it leads its own process group."""
        if worker.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(worker.process.pid, signal.SIGKILL)
            worker.process.wait()


def how_it_ended(code: int) -> str:
    """What the exit code of a process says.

    >>> how_it_ended(-9), how_it_ended(3)
    ('signal 9 (SIGKILL)', 'exit code 3')
    """
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"signal {-code} ({signal.Signals(-code).name})"
    return f"signal {-code}"


def main(descriptor: int) -> None:
    """A process of the pool: do the stages that are sent, until the connection closes."""
    keep_freed_blocks()
    connection = Connection(descriptor)
    job: Job = connection.recv()
    stages: SimpleQueue[Stage] = SimpleQueue()
    stop = threading.Event()

    def listen() -> None:
        # Beside the stage: however busy that is, the end of the runner is the end of this process.
        while True:
            try:
                message = connection.recv()
            except (EOFError, OSError):
                os._exit(1)
            if message == "stop":
                stop.set()
            else:
                stages.put(message)

    def send(message: object) -> None:
        try:
            connection.send(message)
        except OSError:  # not to be taken for a failure of the stage that reports
            os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    send("ready")
    while True:
        stage = stages.get()
        tell = lambda *news, key=stage.key: send((key, *news))  # noqa: E731
        send(attempt(stage, job, throttled(tell, NEWS_EVERY, stop.is_set)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
