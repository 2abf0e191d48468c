"""Locks that die with their process: `flock` on a file that is removed when the lock is let go.

On local disks they hold for all processes of the machine, containers included. Over NFSv4 the
server keeps them, so they hold between machines too. Mounts without a lock manager (`nolock`,
`local_lock=flock`, Lustre's `localflock`) keep them within one machine only.

The lock belongs to the open file: a process that was forked from the holder keeps it too.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fairweight.base.files import writing
from fairweight.base.scratch import is_at


@contextmanager
def held(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Whether the lock is ours until the block ends; with `wait` it always is."""
    with writing(path):
        handle = take(path, wait=wait)
    if handle is None:
        yield False
        return
    try:
        yield True
    finally:
        let_go(path, handle)


def take(path: Path, *, wait: bool = False) -> int | None:
    """An open file that holds the lock; None if another one has it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            # The holder before us may have removed the file that we opened.
            if is_at(path, handle):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def let_go(path: Path, handle: int) -> None:
    """End the lock; the file goes first, while nobody else can hold it."""
    with suppress(OSError):
        os.unlink(path)
    os.close(handle)


def hold(handle: int) -> None:
    """Wait for an exclusive lock on an open file; closing ends it, and the file stays."""
    fcntl.flock(handle, fcntl.LOCK_EX)


def is_held(path: Path) -> bool:
    """Whether some process has the lock.

    The question takes a shared lock for an instant; whoever tries to take the lock just then is
    told that it is not free.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
