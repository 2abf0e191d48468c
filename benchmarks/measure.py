"""Stopwatches: in this process, and of fresh processes."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BYTECODE = "fairweight-bench-bytecode"


@dataclass(frozen=True)
class Settings:
    """How much is measured; `rows` None means the sizes that the targets are for."""

    rows: int | None = None
    rounds: int = 3
    n_boot: int = 2000

    @property
    def full_size(self) -> bool:
        return self.rows is None and self.n_boot == 2000

    def rows_or(self, full: int) -> int:
        return full if self.rows is None else min(self.rows, full)


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleaved(
    jobs: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[Callable[[], object]], float] = seconds,
) -> dict[str, float]:
    """Median time of each job, taken in turns so that a busy moment meets all of them."""
    taken: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, work in jobs.items():
            taken[name].append(clock(work))
    return {name: statistics.median(times) for name, times in taken.items()}


def processor_seconds(work: Callable[[], object]) -> float:
    """Processor time of one call: of this process and of those it starts and waits for."""
    before = time.process_time() + _children_seconds()
    work()
    return time.process_time() + _children_seconds() - before


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def python(*arguments: str) -> str:
    """Run this interpreter afresh from the root of the repository; its standard output.

    Compiled modules are kept, as they are where the package is installed.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir(), BYTECODE)))
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        shown = " ".join(arguments)
        raise RuntimeError(f"python {shown} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def json_of(module: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Run `python -m module` afresh; the JSON object on its last line of output."""
    found: dict[str, Any] = json.loads(python("-m", module, *arguments).splitlines()[-1])
    return found


def peak_memory_mb() -> float:
    """The most memory that this process has held.

    From /proc where there is one: `ru_maxrss` of a child starts at its parent's size.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 1024)
