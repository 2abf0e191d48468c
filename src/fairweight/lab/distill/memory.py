"""Whether something fits into memory, before it is allocated."""

from __future__ import annotations

import os
from pathlib import Path

from fairweight.errors import InputError

_MEMINFO = Path("/proc/meminfo")
GB = 1e9


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Refuse what does not fit, with both figures and the remedy."""
    free = free_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{what} would take {needed / GB:.1f} GB of memory, and {free / GB:.1f} GB are free; "
            f"{remedy}."
        )


def free_memory() -> int | None:
    """Bytes that can be had now; None where the system does not say."""
    try:
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
