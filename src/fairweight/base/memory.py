"""The memory that may be held: as asked for, else half of what is free.

DuckDB spills to disk beyond it, and arrays of draws are made in smaller blocks. No number depends
on it: what is drawn, and how often, is decided by the data and the options alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from fairweight.errors import InputError

VARIABLE = "FAIRWEIGHT_MEMORY"
SHARE = 0.5  # of what is free
LEAST, LEAST_ADDRESSES = 512 * 10**6, 64 * 10**6
MEMORY_INFO = Path("/proc/meminfo")
GROUP_MOST, GROUP_HELD = (Path("/sys/fs/cgroup", f"memory.{name}") for name in ("max", "current"))
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{name}I": 1024**i for i, name in enumerate("KMGT", start=1)}
_chosen: ContextVar[int | None] = ContextVar("memory", default=None)


def amount(text: str, option: str = "--memory") -> int:
    """Bytes that a text says.

    >>> amount("4GB"), amount("1.5 GiB"), amount("800m")
    (4000000000, 1610612736, 800000000)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", text.upper())
    size = 0 if found is None else int(float(found[1]) * _UNITS.get(found[2], 0))
    if size < LEAST_ADDRESSES:
        raise InputError(
            f"{option} '{text}' is no amount of memory; give at least 64MB, as in 4GB."
        )
    return size


@contextmanager
def budgeted(text: str | None) -> Iterator[None]:
    """Hold no more than this while the block runs; None: what held before."""
    before = _chosen.get()
    token = _chosen.set(before if text is None else amount(text))
    try:
        yield
    finally:
        _chosen.reset(token)


@contextmanager
def shared_out(processes: int) -> Iterator[None]:
    """Give processes that are started in the block an equal share each."""
    whole, before = budget(), os.environ.get(VARIABLE)
    if whole is not None:
        os.environ[VARIABLE] = f"{max(whole // max(processes, 1), LEAST_ADDRESSES)}B"
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


def budget() -> int | None:
    """Bytes that may be held; None where nothing was asked for and the system does not say."""
    if (chosen := _chosen.get()) is not None:
        return chosen
    if text := os.environ.get(VARIABLE):
        return amount(text, VARIABLE)
    free = _free()
    addresses = free_addresses()
    if addresses is not None and (free is None or addresses < free):
        return max(LEAST_ADDRESSES, int(addresses * SHARE))  # ulimit -v: beyond there is nothing
    return None if free is None else max(LEAST, int(free * SHARE))


def reuse_freed_blocks() -> None:
    """Make glibc reuse freed blocks of up to 31 MiB from now on, for loops over large arrays.

    It does so once such a block was freed; else every array of every round is mapped and faulted
    in anew, a quarter of the processor time.
    """
    import numpy as np

    np.empty(31 << 20, dtype=np.uint8)


def keep_freed_blocks() -> None:
    """Make glibc keep what is freed, of any size, until the process ends: for commands of the lab.

    It returns blocks of over 32 MiB to the system at once, and the activations of 256 images of
    112 pixels are larger: half of the processor time went into new pages for every layer.
    """
    import ctypes

    trim_threshold, top_pad, mmap_threshold = -1, -2, -3  # of malloc.h
    with suppress(AttributeError, OSError, TypeError):  # another system, another library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(mmap_threshold, 1 << 30)
        mallopt(trim_threshold, (1 << 31) - 1)
        mallopt(top_pad, 64 << 20)


def give_back() -> None:
    """Return what was freed to the system; glibc would hold on to it, in every thread apart."""
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # another system, another library
        ctypes.CDLL(None).malloc_trim(0)


def _free() -> int | None:
    """Bytes that the machine, or the container, has left."""
    free: int | None = None
    with suppress(OSError, ValueError, AttributeError):
        free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError, AttributeError):
        found = re.search(r"^MemAvailable:\s+(\d+) kB", MEMORY_INFO.read_text(), re.MULTILINE)
        free = free if found is None else int(found[1]) * 1024
    with suppress(OSError, ValueError):
        left = int(GROUP_MOST.read_text()) - int(GROUP_HELD.read_text())
        free = left if free is None else min(free, max(left, 0))
    return free


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
