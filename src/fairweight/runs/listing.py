"""What lies in a store, by looking at folders only."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from fairweight.runs import paths


def done(root: Path) -> set[str]:
    """Keys of all finished stages."""
    found: set[str] = set()
    with suppress(FileNotFoundError), os.scandir(paths.stages(root)) as shelves:
        for shelf in shelves:
            # Other programs leave files of their own (`.DS_Store`, `.nfs…`).
            with suppress(FileNotFoundError, NotADirectoryError):
                found.update(n for n in os.listdir(shelf.path) if n.startswith(shelf.name))
    return found


def stamps(root: Path) -> dict[str, int]:
    """When the folder of each finished stage was last changed, in nanoseconds.

    A stage that is done again has another one.
    """
    found: dict[str, int] = {}
    with suppress(FileNotFoundError), os.scandir(paths.stages(root)) as shelves:
        for shelf in shelves:
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(shelf.path) as stages:
                for stage in stages:
                    if stage.name.startswith(shelf.name):
                        found[stage.name] = stage.stat().st_mtime_ns
    return found


def size_bytes(folder: Path) -> int:
    """Bytes of all files below a folder."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total
