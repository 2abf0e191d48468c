"""Twenty people in the example viewer at once: how long they wait, and what the server needs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import votes
from benchmarks.lines import Line
from benchmarks.measure import ROOT, Settings, json_of
from benchmarks.measure import seconds as wall_seconds

TITLE = "Readers of the example viewer"
NEEDS = ("httpx2", "fastapi", "uvicorn")
SETTING = (
    "The study of the votes above (1,000,000 examples, 60 models) with an audit, served by "
    "`fairweight view` in a process of its own. 20 readers ask for gallery pages of 24 examples "
    "with random filters, orders and pages, every sixth time for the overview, with about a "
    "second between an answer and the next question, for 30 seconds, over connections of one "
    "asynchronous client. Wall time as a reader sees it; the client's processor time tells whether "
    "it was the limit. One page that fails ends the benchmark. The first page: from starting the "
    "command on a study that is indexed. On a busy machine pages wait for a processor: one line "
    "tells how long, all threads added up. Memory counts what was looked at of the index."
)
READERS, SECONDS, THINKING = 20, 30.0, 1.0
P95_S, RESIDENT_MB, FIRST_S = 0.2, 1000.0, 3.0
CLIENT = "benchmarks.view_client"
KEY = "study"  # of the folder's name


@dataclass(frozen=True)
class Server:
    """A viewer that runs, and how long its first gallery page took from the command on."""

    address: str
    pid: int
    first_page: float


def run(settings: Settings) -> list[Line]:
    with tempfile.TemporaryDirectory(prefix="fairweight-readers-") as name:
        room = Path(name)
        votes.write_study(room / KEY, settings.rows_or(votes.EXAMPLES), votes.MEMBERS)
        with served(room / KEY, room / "cache"):
            pass  # a table without an audit is indexed before its first page
        add_audit(room / KEY)
        return lines_of(room / KEY, room / "cache", SECONDS if settings.full_size else 2.0)


def lines_of(study: Path, cache: Path, seconds: float) -> list[Line]:
    """Start the viewer on a study that is indexed, send readers, and look at the server."""
    with served(study, cache) as server:
        study_page = f"{server.address}/audit/{KEY}"
        first_overview = wall_seconds(lambda: _read(study_page))
        told = (study_page, READERS, seconds, THINKING)
        found = json_of(CLIENT, [str(word) for word in told])
        resident, used = _resident_mb(server.pid), _processor_seconds(server.pid)
        waited = _waited_seconds(server.pid)
    if found["failed"]:
        raise RuntimeError(f"{len(found['failed'])} pages failed; the first: {found['failed'][0]}")
    return [
        Line("a gallery page, median", found["p50"], "limit", P95_S, target=1.0),
        Line("a gallery page, 95th percentile", found["p95"], "limit", P95_S, target=1.0),
        Line("the overview, 95th percentile", found["overview_p95"], "limit", P95_S, target=1.0),
        Line("the slowest page of all", found["slowest"], "limit", P95_S),
        Line(f"the server: processor time of {found['n']:,} pages", used, "wall time", seconds),
        Line("the server: threads waiting for a free processor", waited, "wall time", seconds),
        Line("the client: processor time", found["processor"], "wall time", seconds),
        Line("the server: resident memory", resident, "limit", RESIDENT_MB, "MB", target=1.0),
        Line("the first page", server.first_page, "limit", FIRST_S, target=1.0),
        Line("the first overview, after it", first_overview, "limit", FIRST_S, target=1.0),
    ]


@contextmanager
def served(study: Path, cache: Path) -> Iterator[Server]:
    """`fairweight view` on a free port."""
    words = ["-m", "fairweight", "view", str(study), "--port", "0", "--no-browser", "--read-only"]
    words.append("--no-token")
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        env=os.environ | {"FAIRWEIGHT_CACHE": str(cache)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            said = re.search(r"http://[\d.]+:\d+", line)
            if said is None:
                raise RuntimeError(f"the viewer did not start: {line}")
            _read(f"{said[0]}/audit/{KEY}/examples")
            yield Server(said[0], process.pid, time.perf_counter() - start)
        finally:
            process.send_signal(signal.SIGINT)


def _read(address: str) -> None:
    with urllib.request.urlopen(address) as answer:
        answer.read()


def add_audit(study: Path) -> None:
    """The audit of a few examples and models: the overview is of the size of any audit."""
    import pandas as pd

    import fairweight as fw

    files = sorted(file for seed in "012" for file in study.glob(f"predictions/*/{seed}.parquet"))
    parts = [pd.read_parquet(file).head(5_000) for file in files]
    audit = fw.audit_table(pd.concat(parts), n_boot=50, random_state=0)
    (study / "audit").mkdir()
    (study / "audit" / "audit.json").write_text(audit.to_json(), encoding="utf-8")


def _resident_mb(pid: int) -> float:
    """What a process holds in memory now, files that it looks into included."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _waited_seconds(pid: int) -> float:
    """How long its threads were ready to run and had no processor."""
    told = [file.read_text().split() for file in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(fields[1]) for fields in told) / 1e9
