"""One audit in a fresh process: seconds per stage and the memory it took, as JSON.

`python -m benchmarks.timed_audit TABLE FOLDER N_BOOT [GROUPS [VARIANTS]]`, with groups separated by
commas; without a table only the libraries are loaded, for the memory that they take by themselves.
`python -m benchmarks.timed_audit -- COMMAND...` runs a command of the command line.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import json_of, peak_memory_mb


@dataclass
class Stages:
    """Seconds between the steps that an audit announces, by the name of the stage."""

    taken: dict[str, float] = field(default_factory=dict)
    current: str = "load"
    since: float = field(default_factory=time.perf_counter)

    def begin(self, stage: str) -> None:
        now = time.perf_counter()
        self.taken[self.current] = self.taken.get(self.current, 0.0) + now - self.since
        self.current, self.since = stage, now

    def announced(self, what: str, _done: int, _total: int) -> None:
        """The `progress` of an audit; every variant is one more comparison."""
        named = {"reading": "align", "counting": "count", "tables": "tables"}
        self.begin(named.get(what, "compare"))


def audited(
    table: str, folder: str, n_boot: int, groups: str = "grp", variants: str = ""
) -> dict[str, float]:
    """Audit a table by its group columns, write the report; seconds per stage, megabytes, rows."""
    stages = Stages()
    start_cpu = time.process_time()
    import fairweight as fw

    made = fw.audit_table(
        table,
        groups=[name for name in groups.split(",") if name],
        variants=variants or None,
        n_boot=n_boot,
        random_state=0,
        progress=stages.announced,
    )
    stages.begin("report")
    made.save(folder)
    stages.begin("end")
    return {
        **stages.taken,
        "total": sum(stages.taken.values()),
        "cpu": time.process_time() - start_cpu,
        "result_rows": float(len(made.results)),
        "peak_mb": peak_memory_mb(),
    }


def in_fresh_process(
    table: str, folder: str, n_boot: int, groups: str = "grp", variants: str = ""
) -> dict[str, float]:
    """As `audited`, with nothing loaded before."""
    return json_of("benchmarks.timed_audit", [table, folder, str(n_boot), groups, variants])


def command_in_fresh_process(arguments: Sequence[str]) -> dict[str, float]:
    """A command from the start of its process to its end: processor seconds and megabytes."""
    return json_of("benchmarks.timed_audit", ["--", *arguments])


def commanded(arguments: Sequence[str]) -> dict[str, float]:
    """Run a command; what it prints goes nowhere."""
    from fairweight.cli import run

    with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
        code = run(list(arguments))
    if code:
        raise RuntimeError(f"fairweight {' '.join(arguments)} ended with {code}")
    return {"cpu": time.process_time(), "peak_mb": peak_memory_mb()}


def libraries_mb() -> float:
    """Memory of a fresh process that only loads what an audit loads."""
    return float(json_of("benchmarks.timed_audit", [])["peak_mb"])


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--"]:
        found = commanded(arguments[1:])
    elif arguments:
        table, folder, n_boot, *beside = arguments
        found = audited(table, folder, int(n_boot), *beside)
    else:
        import duckdb  # noqa: F401
        import jinja2  # noqa: F401
        import pandas  # noqa: F401
        import pyarrow  # noqa: F401
        import scipy.sparse
        import scipy.special  # noqa: F401

        import fairweight.api  # noqa: F401

        found = {"peak_mb": peak_memory_mb()}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
