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
from contextlib import contextmanager, suppress
from pathlib import Path

from fairweight.runs import lock_file, paths
from fairweight.runs.key import digest
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
            name = f"{key}.{_machine()}.{os.getpid()}.{secrets.token_hex(4)}"
            handle = lock_file.take(paths.room_lock(root, name))
    try:
        yield paths.room(root, name)
    finally:
        shutil.rmtree(paths.room(root, name), ignore_errors=True)
        lock_file.let_go(paths.room_lock(root, name), handle)


def _is_abandoned(root: Path, name: str) -> bool:
    if lock_file.is_held(paths.room_lock(root, name)):
        return False
    if name.split(".")[1:2] == [_machine()]:
        return True
    changed = []
    for path in (paths.room(root, name), paths.room_lock(root, name)):
        with suppress(FileNotFoundError):
            changed.append(path.stat().st_mtime)
    return bool(changed) and time.time() - max(changed) > PATIENCE


def _machine() -> str:
    """This machine, without telling its name."""
    return digest(socket.gethostname())[:8]
