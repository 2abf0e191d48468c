"""Who works on a stage: one process at a time."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

from fairweight.runs import lock_file, paths


def claim(root: Path, key: str) -> AbstractContextManager[bool]:
    """Whether this process alone works on a stage, until the block ends or the process dies."""
    return lock_file.held(paths.lock(root, key))


def is_claimed(root: Path, key: str) -> bool:
    return lock_file.is_held(paths.lock(root, key))


def running(root: Path) -> set[str]:
    """Keys of stages that some process has claimed."""
    try:
        keys = os.listdir(paths.locks(root))
    except FileNotFoundError:
        return set()
    return {key for key in keys if is_claimed(root, key)}
