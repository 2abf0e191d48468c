"""Stages on the nodes of a Ray cluster. Outputs go to the store that all nodes share."""

from __future__ import annotations

import logging
import os
import platform
import time
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from fairweight.errors import InputError
from fairweight.runs.executor import Job, Tell
from fairweight.runs.result import Result, Status
from fairweight.runs.sign import GO, STOP, Sign
from fairweight.runs.stage import Stage
from fairweight.runs.throttle import throttled
from fairweight.runs.worker import attempt

AHEAD = 2  # stages per core that wait in the cluster, so that none of them ever idles
NEWS_EVERY = 1.0  # seconds: thousands of stages report to one process
COUNT_EVERY = 5.0  # seconds: cores come and go with their nodes


class RayPool:
    """Stages as tasks of a cluster.

    A lost task is not repeated by Ray but told to the runner, which counts attempts.

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
        self._ray = _ray()
        self._ours = not self._ray.is_initialized()
        if self._ours:
            _connect(self._ray, address, cpus)
        self._sign = Sign.of_a_new_runner(job.store.root)
        self._task = self._ray.remote(num_cpus=1, num_gpus=gpus, max_retries=0)(_on_a_node)
        self._board = (
            self._ray.remote(num_cpus=0)(_Board).options(scheduling_strategy=self._here()).remote()
        )
        self._keys: dict[Any, str] = {}  # of tasks in the cluster
        self._cores, self._counted = 0, 0.0
        self._read = 0.0

    @property
    def free(self) -> int:
        if time.monotonic() - self._counted > COUNT_EVERY:
            self._cores = int(self._ray.cluster_resources().get("CPU", 0))
            self._counted = time.monotonic()
        return max(0, AHEAD * self._cores - len(self._keys))

    def submit(self, stage: Stage) -> None:
        task = self._task.options(name=stage.label).remote(
            stage, self._job, self._sign, self._board
        )
        self._keys[task] = stage.key

    def finished(self, wait: float) -> list[Result]:
        self._tell_news()
        if not self._keys:
            time.sleep(wait)
            return []
        self._ray.wait(list(self._keys), num_returns=1, timeout=wait)
        ended, _ = self._ray.wait(list(self._keys), num_returns=len(self._keys), timeout=0)
        return [self._result(task) for task in ended]

    def interrupt(self) -> None:
        self._sign.write(STOP)

    def stop(self) -> None:
        self._sign.remove()
        for task in self._keys:
            self._ray.cancel(task, force=True)
        if self._ours:
            self._ray.shutdown()
        else:
            self._ray.kill(self._board)

    def _here(self) -> Any:
        """On the node of this process: it is lost only if this process is."""
        strategies = import_module("ray.util.scheduling_strategies")
        node = self._ray.get_runtime_context().get_node_id()
        return strategies.NodeAffinitySchedulingStrategy(node_id=node, soft=True)

    def _result(self, task: Any) -> Result:
        key = self._keys.pop(task)
        try:
            result: Result = self._ray.get(task)
        except self._ray.exceptions.RayError as error:
            return Result(key, Status.DIED, words=str(error))
        return result

    def _tell_news(self) -> None:
        now = time.monotonic()
        if now - self._read < NEWS_EVERY:
            return
        self._read = now
        try:
            news = self._ray.get(self._board.take.remote(), timeout=NEWS_EVERY)
        except self._ray.exceptions.RayError:
            return  # its node is lost or busy: bars stand still, stages do not
        for key, (done, total, words) in news.items():
            self._tell(key, done, total, words)


class _Board:
    """Where stages write how far they are: the last word of each."""

    def __init__(self) -> None:
        self._news: dict[str, tuple[int, int, str]] = {}

    def put(self, key: str, done: int, total: int, words: str) -> None:
        self._news[key] = (done, total, words)

    def take(self) -> dict[str, tuple[int, int, str]]:
        news, self._news = self._news, {}
        return news


def _on_a_node(stage: Stage, job: Job, sign: Sign, board: Any) -> Result:
    """What a task does."""
    said = sign.read()
    if said is None:
        return Result(stage.key, Status.UNSHARED, words=_unshared(job.store.root))
    if said == STOP:
        return Result(stage.key, Status.OUT_OF_TIME)
    put = partial(board.put.remote, stage.key)
    last = time.monotonic()

    def stopping() -> bool:
        nonlocal last
        if time.monotonic() - last < NEWS_EVERY:
            return False
        last = time.monotonic()
        return sign.read() != GO

    return attempt(stage, job, throttled(put, NEWS_EVERY, stopping))


def _unshared(root: Path) -> str:
    return (
        f"The node '{platform.node()}' does not see the store '{root}'; all nodes of a Ray "
        "cluster must share it under the same path, so give a folder of a network file system "
        "(--store)."
    )


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing goes out to anybody
    try:
        return import_module("ray")
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise InputError(
            "--ray needs Ray, which is not installed: pip install 'fairweight[ray]'."
        ) from None


def _connect(ray: Any, address: str, cpus: int | None) -> None:
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False, "include_dashboard": False}
    if address == "local":
        # Over loopback: a cluster of one machine needs no network, nor that there is one.
        ray.init(address="local", num_cpus=cpus, _node_ip_address="127.0.0.1", **quiet)
        return
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError) as error:
        raise InputError(
            f"--ray {address}: no Ray cluster answers there ({_first_line(error)}); give 'local', "
            "or the address that `ray start --head` printed."
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
