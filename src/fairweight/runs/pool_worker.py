"""A process of the pool: `python -m fairweight.runs.pool_worker DESCRIPTOR`."""

from __future__ import annotations

import os
import sys
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue

from fairweight.runs.executor import Job
from fairweight.runs.stage import Stage
from fairweight.runs.throttle import throttled
from fairweight.runs.worker import attempt

NEWS_EVERY = 0.2  # seconds


def main(descriptor: int) -> None:
    """Do the stages that are sent, until the connection closes: then nobody waits any more."""
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

        def tell(done: int, total: int, words: str, key: str = stage.key) -> None:
            send((key, done, total, words))

        send(attempt(stage, job, throttled(tell, NEWS_EVERY, stop.is_set)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
