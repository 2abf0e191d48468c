"""Stages on the nodes of a Ray cluster. Outputs go to the store that all nodes share."""

from __future__ import annotations

import logging
import os
import platform
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from fairweight.base.files import writing
from fairweight.errors import InputError
from fairweight.runs import store_layout
from fairweight.runs.executor import Ending, Job, Result, Tell, attempt, throttled
from fairweight.runs.stage import Stage

KNOCK = 10.0  # seconds for a cluster to answer at all


@contextmanager
def cluster(address: str, cpus: int | None = None) -> Iterator[Any]:
    """The module `ray`, connected; a connection that is there already is used and kept.

    Parameters
    ----------
    address
        `local` starts a cluster on this machine, which ends with the block.
    cpus
        Cores of a local cluster; None: all.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing goes out to anybody
    try:
        ray: Any = import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise InputError(
            "--ray needs Ray, which is not installed: pip install 'fairweight[ray]'."
        ) from None
    if ray.is_initialized():
        yield ray
        return
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False, "include_dashboard": False}
    if address == "local":
        # Over loopback: a cluster of one machine needs no network, nor that there is one.
        ray.init(address="local", num_cpus=cpus, _node_ip_address="127.0.0.1", **quiet)
    else:
        try:
            # Fails at once where nobody is: Ray itself would go on trying for minutes.
            host, _, port = address.removeprefix("ray://").rpartition(":")
            if host and port.isdigit():
                socket.create_connection((host, int(port)), timeout=KNOCK).close()
            ray.init(address=address, **quiet)
        except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
            reason = str(error).strip().partition("\n")[0].rstrip(".")
            raise InputError(
                f"--ray {address}: no connection to a Ray cluster there ({reason}); give 'local', "
                "or the address that `ray start --head` printed, with the same version of Ray, "
                "and the head node's token if it asks for one (RAY_AUTH_MODE=token and "
                "RAY_AUTH_TOKEN_PATH)."
            ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


# A file in the store by which a runner speaks to all nodes of a cluster. Nodes that do not see it
# do not share the store. It is read rather than looked for: network file systems fetch what they
# open, and may take minutes to notice that a file has come or gone.
GO, STOP = "go", "stop"

AHEAD = 2  # stages per core that wait in the cluster, so that none of them ever idles
NEWS_EVERY = 1.0  # seconds: thousands of stages report to one process
COUNT_EVERY = 5.0  # seconds: cores come and go with their nodes


class RayPool:
    """Stages as tasks of a cluster.

    A lost task is not repeated by Ray but reported to the runner, which counts attempts.

    Parameters
    ----------
    address
        `local` starts a cluster on this machine, which ends with the run.
    cpus
        Cores of a local cluster.
    gpus
        For each stage.
    """

    def __init__(
        self, address: str, job: Job, tell: Tell, *, cpus: int | None = None, gpus: float = 0.0
    ) -> None:
        self._job, self._tell = job, tell
        with ExitStack() as stack:
            self._ray = stack.enter_context(cluster(address, cpus))
            store_layout.prepare(job.store.root)
            self._sign = job.store.root / store_layout.RUNNERS / uuid.uuid4().hex
            with writing(self._sign):
                self._sign.write_text(GO, encoding="utf-8")
            stack.callback(self._sign.unlink, missing_ok=True)
            self._task = self._ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0)(_on_a_node)
            board = self._ray.remote(num_cpus=0)(_Board)
            # On the node of this process: it is lost only if this process is.
            strategies = import_module("ray.util.scheduling_strategies")
            node = self._ray.get_runtime_context().get_node_id()
            here = strategies.NodeAffinitySchedulingStrategy(node_id=node, soft=True)
            self._board = board.options(scheduling_strategy=here).remote()
            stack.callback(self._ray.kill, self._board)
            self._end = stack.pop_all().close
        self._stages: dict[Any, Stage] = {}  # of tasks in the cluster
        self._cores, self._counted = 0, 0.0
        self._read = 0.0

    @property
    def free(self) -> int:
        if time.monotonic() - self._counted > COUNT_EVERY:
            self._cores = int(self._ray.cluster_resources().get("CPU", 0))
            self._counted = time.monotonic()
        return max(0, AHEAD * self._cores - len(self._stages))

    def submit(self, stage: Stage) -> None:
        task = self._task.options(name=stage.label).remote(
            stage, self._job, self._sign, self._board
        )
        self._stages[task] = stage

    def finished(self, wait: float) -> list[Result]:
        if time.monotonic() - self._read >= NEWS_EVERY:
            self._read = time.monotonic()
            # Where its node is lost or busy, bars stand still, and stages do not.
            with suppress(self._ray.exceptions.RayError):
                news = self._ray.get(self._board.take.remote(), timeout=NEWS_EVERY)
                for key, (done, total, words) in news.items():
                    self._tell(key, done, total, words)
        if not self._stages:
            time.sleep(wait)
            return []
        self._ray.wait(list(self._stages), num_returns=1, timeout=wait)
        ended, _ = self._ray.wait(list(self._stages), num_returns=len(self._stages), timeout=0)
        return [self._result(task) for task in ended]

    def interrupt(self) -> None:
        with writing(self._sign):
            self._sign.write_text(STOP, encoding="utf-8")

    def stop(self) -> None:
        for task in self._stages:
            self._ray.cancel(task, force=True)
        self._end()

    def _result(self, task: Any) -> Result:
        stage = self._stages.pop(task)
        try:
            result: Result = self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            # The node could not even begin: fairweight is missing there, for example.
            self._job.store.fail(stage.key, str(error), stage.label)
            return Result(stage.key, Ending.FAILED, words=str(error))
        except self._ray.exceptions.RayError as error:
            return Result(stage.key, Ending.DIED, words=str(error))
        return result


class _Board:
    """A Ray actor that keeps the latest progress of each stage."""

    def __init__(self) -> None:
        self._news: dict[str, tuple[int, int, str]] = {}

    def put(self, key: str, done: int, total: int, words: str) -> None:
        self._news[key] = (done, total, words)

    def take(self) -> dict[str, tuple[int, int, str]]:
        news, self._news = self._news, {}
        return news


def _on_a_node(stage: Stage, job: Job, sign: Path, board: Any) -> Result:
    """The body of a Ray task: run one stage."""
    try:
        said = sign.read_text(encoding="utf-8")
    except FileNotFoundError:
        words = (
            f"The node '{platform.node()}' does not see the store '{job.store.root}'; all nodes of "
            "a Ray cluster must share it under the same path, so give a folder of a network file "
            "system (--store)."
        )
        return Result(stage.key, Ending.UNSHARED, words=words)
    if said == STOP:
        return Result(stage.key, Ending.OUT_OF_TIME)
    put = partial(board.put.remote, stage.key)
    last = time.monotonic()

    def stopping() -> bool:
        nonlocal last
        if time.monotonic() - last < NEWS_EVERY:
            return False
        last = time.monotonic()
        try:
            return sign.read_text(encoding="utf-8") != GO
        except FileNotFoundError:
            return True

    return attempt(stage, job, throttled(put, NEWS_EVERY, stopping))
