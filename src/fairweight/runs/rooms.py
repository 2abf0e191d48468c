"""Rooms: folders to write in, within the file system of the store so that a rename is enough.

A room has a lock file beside it, which is there before the room and goes after it. So a room whose
lock is free was left behind by a process that died.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fairweight.runs import lock_file, paths
from fairweight.tables.write import writing

# Locks may not reach other machines (lock_file), so their rooms are given this long.
PATIENCE = 24 * 3600.0


@contextmanager
def empty_room(root: Path, key: str) -> Iterator[Path]:
    """An empty folder; what is left of it disappears when the block ends."""
    with _named(root, key) as folder:
        with writing(paths.stage(root, key)):
            os.mkdir(folder)
        yield folder


def discard(root: Path, key: str, folder: Path) -> None:
    """Remove a folder of the store: by one rename first, so that no half of it is ever seen."""
    with _named(root, key) as room, writing(folder):
        os.rename(folder, room)


def abandoned(root: Path) -> list[str]:
    """Names of rooms whose process is gone."""
    try:
        found = os.listdir(paths.rooms(root))
    except FileNotFoundError:
        return []
    return sorted(
        name for name in {one.removesuffix(".lock") for one in found} if _is_abandoned(root, name)
    )


def clear(root: Path, name: str) -> None:
    """Remove an abandoned room, unless another process does so just now."""
    path = paths.room_lock(root, name)
    handle = lock_file.take(path)
    if handle is not None:
        shutil.rmtree(paths.room(root, name), ignore_errors=True)
        lock_file.let_go(path, handle)


@contextmanager
def _named(root: Path, key: str) -> Iterator[Path]:
    """A name for a room that is locked until the block ends."""
    with writing(paths.stage(root, key)):
        handle = None
        while handle is None:
            name = f"{key}.{os.getpid()}.{secrets.token_hex(4)}"
            handle = lock_file.take(paths.room_lock(root, name))
    try:
        with writing(paths.stage(root, key)):
            os.write(handle, socket.gethostname().encode())
        yield paths.room(root, name)
    finally:
        shutil.rmtree(paths.room(root, name), ignore_errors=True)
        lock_file.let_go(paths.room_lock(root, name), handle)


def _is_abandoned(root: Path, name: str) -> bool:
    path = paths.room_lock(root, name)
    try:
        if lock_file.is_held(path):
            return False
        told = path.read_text(encoding="utf-8", errors="replace")
        age = time.time() - path.stat().st_mtime
    except FileNotFoundError:
        # A live process would have made the lock first; or the whole room has gone meanwhile.
        return paths.room(root, name).exists()
    return told == socket.gethostname() or age > PATIENCE
