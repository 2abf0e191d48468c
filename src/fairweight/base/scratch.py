"""Temporary folders that do not outlive their process by more than one start.

A folder is named after its machine, its process and the start of that process, and is locked while
the process lives. Whoever makes one first sweeps those beside it whose process is gone: a run that
is killed leaves gigabytes for a while, not for ever.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import shutil
import socket
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

SPILL = "fairweight-spill-"
# Locks may not reach other machines, so their folders are given this long.
PATIENCE = 24 * 3600.0
_NAME = r"(?P<machine>[0-9a-f]{8})-(?P<process>\d+)-(?P<start>\d+)-[0-9a-f]{8}"


class Scratch:
    """A temporary folder of this process; `close` removes it.

    Parameters
    ----------
    parent
        The folder that it is in; by default the system's for temporary files.
    prefix, suffix
        What its name begins and ends with.
    """

    def __init__(
        self, parent: str | Path | None = None, prefix: str = SPILL, suffix: str = ""
    ) -> None:
        place = Path(tempfile.gettempdir() if parent is None else parent)
        self._process = os.getpid()
        sweep(place, prefix, suffix)
        while True:
            process = f"{_machine()}-{self._process}-{_start(self._process)}"
            own = f"{process}-{secrets.token_hex(4)}"
            self.folder = place / f"{prefix}{own}{suffix}"
            os.mkdir(self.folder, 0o700)
            try:
                self._handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # somebody swept it before it was locked
            with suppress(OSError):  # some file systems have no locks; then the name tells
                fcntl.flock(self._handle, fcntl.LOCK_EX)
            if is_at(self.folder, self._handle):
                break
            os.close(self._handle)

    def close(self) -> None:
        """Remove the folder, if it is still there, and end the lock; safe to call twice."""
        if self._handle >= 0:
            if os.getpid() == self._process:  # and not a process that was forked from it
                shutil.rmtree(self.folder, ignore_errors=True)
            os.close(self._handle)
            self._handle = -1


def sweep(parent: str | Path, prefix: str = SPILL, suffix: str = "") -> None:
    """Remove the folders of processes that are gone; what cannot be removed stays."""
    name = re.compile(re.escape(prefix) + _NAME + re.escape(suffix))
    with suppress(OSError), os.scandir(parent) as found:
        for entry in found:
            known = name.fullmatch(entry.name)
            if known is None or not _is_left(entry, known):
                continue
            with suppress(OSError):
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                handle = os.open(entry.path, flags)
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(entry.path, ignore_errors=True)
                finally:
                    os.close(handle)


def _is_left(entry: os.DirEntry[str], known: re.Match[str]) -> bool:
    """Whether a temporary folder belongs to a process that has ended, judging by its name."""
    with suppress(OSError):
        facts = entry.stat(follow_symlinks=False)
        if not entry.is_dir(follow_symlinks=False) or facts.st_uid != os.geteuid():
            return False
        if known["machine"] != _machine():
            return time.time() - facts.st_mtime > PATIENCE
        return _start(int(known["process"])) != int(known["start"])
    return False


def _start(process: int) -> int | None:
    """When a process began, in system ticks; 0 where the system does not say."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        return int(text.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        if os.path.isdir("/proc/self"):
            return None
    with suppress(PermissionError):
        try:
            os.kill(process, 0)
        except (ProcessLookupError, OverflowError):
            return None
    return 0


@cache
def _machine() -> str:
    """An identifier of this machine that does not reveal its name."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def is_at(path: Path, handle: int) -> bool:
    """Whether an open file or folder is still the one at the path."""
    with suppress(OSError):
        return os.path.samestat(os.stat(path), os.fstat(handle))
    return False
