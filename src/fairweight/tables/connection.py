"""The DuckDB connection of one audit: offline, bounded in memory, spilling to its own folder."""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fairweight.tables.interrupts import Interrupts
from fairweight.tables.scratch import Scratch

if TYPE_CHECKING:
    import duckdb

# Above this share of the machine's memory DuckDB spills to disk instead of growing.
MEMORY_SHARE = 0.6
LEAST_MEMORY_MB = 512
LEAST_ADDRESSES_MB = 64
CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


class Workspace:
    """A connection and the temporary folder that goes with it."""

    def __init__(self) -> None:
        import duckdb

        scratch = Scratch()
        self.folder = scratch.folder
        config: dict[str, str | bool | int | float | list[str]] = {
            "threads": os.cpu_count() or 1,
            "temp_directory": str(scratch.folder),
            # An extension would be downloaded; nothing here may need the network.
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
        limit = memory_limit_mb()
        if limit is not None:
            config["memory_limit"] = f"{limit}MB"
        self.config = config
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(":memory:", config=config)
        # A progress bar of DuckDB would mix with the one of the command line.
        self.connection.execute("SET enable_progress_bar = false")
        self.interrupts = Interrupts(self.connection)
        self._counter = 0
        self._cleanup = weakref.finalize(self, scratch.close)

    def name(self, stem: str) -> str:
        """A table name that nothing else in this workspace has."""
        self._counter += 1
        return f"fw_{stem}_{self._counter}"

    def close(self) -> None:
        """Close the connection and remove the temporary folder; safe to call twice."""
        self.interrupts.close()
        with suppress(Exception):
            self.connection.close()
        self._cleanup()


def memory_limit_mb() -> int | None:
    """Megabytes that DuckDB may hold before it spills; None where the system does not say."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    with suppress(OSError, ValueError):
        total = min(total, int(CGROUP_LIMIT.read_text()))
    free = free_addresses()
    if free is not None and free < total:  # ulimit -v: what is beyond cannot be had at all
        return max(LEAST_ADDRESSES_MB, int(free * MEMORY_SHARE / 2**20))
    return max(LEAST_MEMORY_MB, int(total * MEMORY_SHARE / 2**20))


def free_addresses() -> int | None:
    """Bytes that this process may still ask for under `ulimit -v`; None without such a limit."""
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        held = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError):
        return None
    return max(0, limit - held)
