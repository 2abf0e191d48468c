"""Paths inside a store, and the temporary folders in which stages are written."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fairweight.base import locks
from fairweight.base.files import atomic_file, writing
from fairweight.errors import InputError
from fairweight.runs.stage import digest

DEFAULT = "fairweight-runs"

# Folders and files of a store, within its root.
ABOUT = "store.json"  # says that the folder is a store, and of which format
STAGES = "stages"  # outputs of finished stages
WORK = "work"  # half-done work of stages: checkpoints
LOCKS = "locks"
ROOMS = "rooms"  # where a stage is written before it is renamed to its place
FAILED = "failed"
DAMAGED = "damaged"
STUDIES = "studies"  # which keys each study refers to
STUDIES_LOCK = "studies.lock"  # held while references are changed or stages removed
RUNNERS = "runners"  # tell the nodes of a cluster that they see the store, and whether to go on
CATALOGUE = "catalogue.parquet"  # what the catalogue has read; may be deleted at any time
FOLDERS = (STAGES, WORK, LOCKS, ROOMS, FAILED, DAMAGED, STUDIES, RUNNERS)

MANIFEST = "stage.json"  # of a finished stage, within its folder
SECONDS = ".seconds"  # of half-done work: how long it was worked on before it was interrupted

# How a store is laid out on disk; apart from the format of what stages write (stage.py).
FORMAT = 1


def stage(root: Path, key: str) -> Path:
    """Outputs of a finished stage; 256 folders keep each listing short."""
    return root / STAGES / key[:2] / key


def manifest(root: Path, key: str) -> Path:
    return stage(root, key) / MANIFEST


def check(root: Path) -> None:
    """Refuse what cannot be a store, or is one of a later version; nothing is written."""
    if root.exists() and not root.is_dir():
        raise InputError(f"The store (--store) '{root}' is a file; give a folder.")
    stamp = root / ABOUT
    if not stamp.exists():
        return
    try:
        number = int(json.loads(stamp.read_text(encoding="utf-8"))["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"'{stamp}' cannot be read; write {{\"format\": {FORMAT}}} into it if the folder is a "
            f"store of fairweight, or give another folder (--store)."
        ) from error
    if number > FORMAT:
        raise InputError(
            f"The store '{root}' has format {number}, and this version of fairweight knows "
            f"formats up to {FORMAT}; update fairweight or give another folder (--store)."
        )


def prepare(root: Path) -> None:
    """Make the folder a store if it is none; refuses a folder of something else."""
    with writing(root):
        if not (root / ABOUT).exists():
            ours = {ABOUT, *FOLDERS}
            there = os.listdir(root) if root.exists() else []
            foreign = sorted(n for n in there if not n.startswith(".") and n not in ours)
            if foreign:
                raise InputError(
                    f"The store (--store) '{root}' has other files in it, such as '{foreign[0]}', "
                    f"and no '{ABOUT}'; give an empty or a new folder."
                )
            # Data and models are nobody else's business.
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            # First of all, so that a folder with anything of a store in it is known to be one.
            with atomic_file(root / ABOUT) as stream:
                json.dump({"format": FORMAT}, stream)
        for folder in FOLDERS:
            (root / folder).mkdir(exist_ok=True)


# Folders to write in, within the file system of the store so that a rename is enough.
#
# Each has a lock file beside it, which is there before the folder and goes after it. So a folder
# whose lock is free was left behind by a process that died.

# Locks may not reach other machines (base/locks.py), so their folders are given this long.
PATIENCE = 24 * 3600.0


@contextmanager
def empty_folder(root: Path, key: str) -> Iterator[Path]:
    """An empty folder, which is removed when the block ends."""
    with _locked_name(root, key) as folder:
        with writing(stage(root, key)):
            os.mkdir(folder)
        yield folder


def discard(root: Path, key: str, folder: Path) -> None:
    """Remove a folder of the store: by one rename first, so that no half of it is ever seen."""
    with _locked_name(root, key) as aside, writing(folder):
        os.rename(folder, aside)


@contextmanager
def _locked_name(root: Path, key: str) -> Iterator[Path]:
    """A path for a folder to write in, locked until the block ends."""
    with writing(stage(root, key)):
        handle = None
        while handle is None:
            name = f"{key}.{_machine()}.{os.getpid()}.{secrets.token_hex(4)}"
            folder, lock = root / ROOMS / name, root / ROOMS / f"{name}.lock"
            handle = locks.take(lock)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        locks.let_go(lock, handle)


def abandoned(root: Path) -> list[str]:
    """Names of folders to write in whose process is gone."""
    found = []
    for name in sorted({one.removesuffix(".lock") for one in names(root / ROOMS)}):
        folder, lock = root / ROOMS / name, root / ROOMS / f"{name}.lock"
        if locks.is_held(lock):
            continue
        changed = []
        for path in (folder, lock):
            with suppress(FileNotFoundError):
                changed.append(path.stat().st_mtime)
        ours = name.split(".")[1:2] == [_machine()]
        if ours or (changed and time.time() - max(changed) > PATIENCE):
            found.append(name)
    return found


def clear(root: Path, name: str) -> None:
    """Remove an abandoned folder, unless another process does so just now."""
    path = root / ROOMS / f"{name}.lock"
    handle = locks.take(path)
    if handle is not None:
        shutil.rmtree(root / ROOMS / name, ignore_errors=True)
        locks.let_go(path, handle)


def _machine() -> str:
    """An identifier of this machine that does not reveal its name."""
    return digest(socket.gethostname())[:8]


# What lies in a store, by looking at folders only.


def names(folder: Path) -> list[str]:
    """Entries of a folder, sorted; none if it does not exist."""
    with suppress(FileNotFoundError):
        return sorted(os.listdir(folder))
    return []


def stamps(root: Path) -> dict[str, int]:
    """When the folder of each finished stage was last changed, in nanoseconds.

    A stage that is done again has another one.
    """
    found: dict[str, int] = {}
    with suppress(FileNotFoundError), os.scandir(root / STAGES) as shelves:
        for shelf in shelves:
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(shelf.path) as inside:
                for stage in inside:
                    if stage.name.startswith(shelf.name):
                        found[stage.name] = stage.stat().st_mtime_ns
    return found


def size_bytes(folder: Path) -> int:
    """Bytes of all files below a folder."""
    total = 0
    for place, _, found in os.walk(folder):
        for name in found:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total
