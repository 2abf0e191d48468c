"""Stages on a Ray cluster: one that is started here, and one of two nodes that loses one."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from made_stages import diamond, outputs_of, runs_of, stage, study

from fairweight.errors import InputError
from fairweight.runs import ray_pool
from fairweight.runs.executor import Ending, Job
from fairweight.runs.runner import News, run
from fairweight.runs.store import Store

HERE = Path(__file__).parent


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters of the tests have a token of their own; Ray would put one into the home folder."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("PYTHONPATH", str(HERE))


def test_without_ray_the_remedy_is_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r"not installed: pip install 'fairweight\[ray\]'"):
        run([stage("a")], store, ray="local")


def test_an_address_where_nobody_is_is_told_at_once(store: Store) -> None:
    pytest.importorskip("ray")
    begun = time.monotonic()
    with pytest.raises(
        InputError, match=r"--ray 127\.0\.0\.1:1: no connection to a Ray cluster there"
    ):
        run([stage("a")], store, ray="127.0.0.1:1")
    assert time.monotonic() - begun < 30


def test_a_node_that_does_not_see_the_store_says_so(store: Store, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "sign"
    found = ray_pool._on_a_node(stage("a"), Job(store), elsewhere, board=None)
    assert found.status is Ending.UNSHARED
    assert f"'{socket.gethostname()}' does not see the store '{store.root}'" in found.words
    assert "network file system" in found.words


# Ray leaves its own sockets and files to the garbage collector.
@pytest.mark.filterwarnings("default::ResourceWarning")
@pytest.mark.filterwarnings("default::pytest.PytestUnraisableExceptionWarning")
def test_a_local_cluster_runs_the_stages(store: Store, tmp_path: Path) -> None:
    """One cluster for all of it, because starting one takes longest."""
    ray = pytest.importorskip("ray")
    good, bad = diamond(), stage("bad", function="fails")
    killed = stage("killed", function="killed", times=1)
    slow = stage("slow", steps=25, pause=0.1)
    stages = [*good, bad, stage("below", [bad]), killed, slow]
    news: list[News] = []
    outcome = run(stages, store, ray="local", workers=2, data=tmp_path, progress=news.append)
    assert not ray.is_initialized()
    assert set(outcome.done) == {s.key for s in [*good, killed, slow]}
    assert outcome.failed == (bad.key,)
    assert "ZeroDivisionError" in store.failed()[bad.key]["traceback"]
    runs = runs_of(tmp_path)
    assert sorted(runs) == sorted([*(s.label for s in stages if s.label != "below"), "killed"])
    assert runs.index("top") < runs.index("left") < runs.index("bottom")
    assert any(n.event == "running" and n.stage == slow and n.total == 25 for n in news)
    other = Store(tmp_path / "other")
    run(good, other, workers=0, data=tmp_path)
    assert outputs_of(store.root, good) == outputs_of(other.root, good)


def ray_command(*words: str) -> list[str]:
    return [str(Path(sys.executable).with_name("ray")), *words]


@contextmanager
def node(*words: str, temp: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A node of a cluster, which ends with the block."""
    command = ray_command(
        "start", "--block", "--num-cpus=1", "--disable-usage-stats", "--object-store-memory",
        "100000000", "--node-ip-address=127.0.0.1", *words,
    )  # fmt: skip
    with (temp / f"{len(words)}.txt").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            killed(process)


def killed(process: subprocess.Popen[bytes]) -> None:
    """With everything that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.slow
def test_a_study_survives_the_loss_of_a_node(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    store, data, port = tmp_path / "store", tmp_path / "data", free_port()
    data.mkdir()
    address = f"127.0.0.1:{port}"
    with ExitStack() as stack:
        stack.enter_context(
            node("--head", f"--port={port}", "--include-dashboard=false", temp=tmp_path)
        )
        _wait_for_port(port)
        second = stack.enter_context(node(f"--address={address}", temp=tmp_path))
        _wait_for_nodes(address, 2)
        runner = subprocess.Popen(
            [sys.executable, str(HERE / "run_study.py"), str(store), str(data), "40", "2", address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        while runner.poll() is None and len(runs_of(data)) < 40:
            time.sleep(0.05)
        killed(second)
        at_the_loss = len(runs_of(data))
        out, err = runner.communicate(timeout=300)
    stages = study(40)
    assert runner.returncode == 0, err
    assert 40 <= at_the_loss < len(stages)
    assert out.splitlines()[-1].split()[:2] == [str(len(stages)), "0"]  # Ray tells of the loss
    runs = runs_of(data)
    assert set(runs) == {s.label for s in stages}
    assert len(runs) <= len(stages) + 1  # the lost node had one core
    kept = Store(store)
    assert kept.done() == {s.key for s in stages}
    assert kept.failed() == {}


def _wait_for_nodes(address: str, count: int) -> None:
    """In a process of its own, where Ray may be started and ended."""
    program = (
        "import ray, time\n"
        f"ray.init(address='{address}', logging_level='ERROR')\n"
        f"while sum(node['Alive'] for node in ray.nodes()) < {count}: time.sleep(0.2)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=120)


def _wait_for_port(port: int) -> None:
    begun = time.monotonic()
    while time.monotonic() - begun < 60:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.2)
    raise AssertionError("the head of the cluster did not come up")
