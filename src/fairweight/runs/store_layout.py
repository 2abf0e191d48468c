"""Where everything of a store lies: every path is one function of the store's root."""

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
MANIFEST = "stage.json"


def about(root: Path) -> Path:
    """Says that the folder is a store, and of which format."""
    return root / "store.json"


def stages(root: Path) -> Path:
    return root / "stages"


def stage(root: Path, key: str) -> Path:
    """Outputs of a finished stage; 256 folders keep each listing short."""
    return root / "stages" / key[:2] / key


def manifest(root: Path, key: str) -> Path:
    return stage(root, key) / MANIFEST


def works(root: Path) -> Path:
    return root / "work"


def work(root: Path, key: str) -> Path:
    """Half-done work of a stage: checkpoints."""
    return root / "work" / key


def seconds(root: Path, key: str) -> Path:
    """How long the stage was worked on before it was interrupted."""
    return work(root, key) / ".seconds"


def lock_folder(root: Path) -> Path:
    return root / "locks"


def lock(root: Path, key: str) -> Path:
    return root / "locks" / key


def studies_lock(root: Path) -> Path:
    """Held while references are changed or stages removed."""
    return root / "studies.lock"


def rooms(root: Path) -> Path:
    return root / "rooms"


def room(root: Path, name: str) -> Path:
    """Where a stage is written before it is renamed to its place."""
    return root / "rooms" / name


def room_lock(root: Path, name: str) -> Path:
    return root / "rooms" / f"{name}.lock"


def failures(root: Path) -> Path:
    return root / "failed"


def failure(root: Path, key: str) -> Path:
    return root / "failed" / f"{key}.json"


def damages(root: Path) -> Path:
    return root / "damaged"


def damage(root: Path, key: str, number: int) -> Path:
    return root / "damaged" / f"{key}.{number}"


def studies(root: Path) -> Path:
    return root / "studies"


def study(root: Path, name: str) -> Path:
    """Keys that a study refers to."""
    return root / "studies" / f"{name}.json"


def catalogue(root: Path) -> Path:
    """What the catalogue has read already; it may be deleted at any time."""
    return root / "catalogue.parquet"


def runners(root: Path) -> Path:
    return root / "runners"


def runner(root: Path, name: str) -> Path:
    """Tells the nodes of a cluster that they see the store, and whether to go on."""
    return root / "runners" / name


# Whether a folder is a store that this version understands, and making a new one.

# How a store is laid out on disk; apart from the format of what stages write (stage.py).
FORMAT = 1

_FOLDERS = (
    stages, works, lock_folder, rooms, failures, damages,
    studies, runners,
)  # fmt: skip


def check(root: Path) -> None:
    """Refuse what cannot be a store, or is one of a later version; nothing is written."""
    if root.exists() and not root.is_dir():
        raise InputError(f"The store (--store) '{root}' is a file; give a folder.")
    stamp = about(root)
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
        if not about(root).exists():
            _refuse_foreign(root)
            # Data and models are nobody else's business.
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            # First of all, so that a folder with anything of a store in it is known to be one.
            with atomic_file(about(root)) as stream:
                json.dump({"format": FORMAT}, stream)
        for folder in _FOLDERS:
            folder(root).mkdir(exist_ok=True)


def _refuse_foreign(root: Path) -> None:
    if not root.exists():
        return
    ours = {about(root).name, *(folder(root).name for folder in _FOLDERS)}
    foreign = sorted(n for n in os.listdir(root) if not n.startswith(".") and n not in ours)
    if foreign:
        raise InputError(
            f"The store (--store) '{root}' has other files in it, such as '{foreign[0]}', and no "
            f"'{about(root).name}'; give an empty or a new folder."
        )


# Rooms: folders to write in, within the file system of the store so that a rename is enough.
#
# A room has a lock file beside it, which is there before the room and goes after it. So a room
# whose
# lock is free was left behind by a process that died.

# Locks may not reach other machines (lock_file), so their rooms are given this long.
PATIENCE = 24 * 3600.0


@contextmanager
def empty_room(root: Path, key: str) -> Iterator[Path]:
    """An empty folder; what is left of it disappears when the block ends."""
    with _named(root, key) as folder:
        with writing(stage(root, key)):
            os.mkdir(folder)
        yield folder


def discard(root: Path, key: str, folder: Path) -> None:
    """Remove a folder of the store: by one rename first, so that no half of it is ever seen."""
    with _named(root, key) as room, writing(folder):
        os.rename(folder, room)


def abandoned(root: Path) -> list[str]:
    """Names of rooms whose process is gone."""
    try:
        found = os.listdir(rooms(root))
    except FileNotFoundError:
        return []
    return sorted(
        name for name in {one.removesuffix(".lock") for one in found} if _is_abandoned(root, name)
    )


def clear(root: Path, name: str) -> None:
    """Remove an abandoned room, unless another process does so just now."""
    path = room_lock(root, name)
    handle = locks.take(path)
    if handle is not None:
        shutil.rmtree(room(root, name), ignore_errors=True)
        locks.let_go(path, handle)


@contextmanager
def _named(root: Path, key: str) -> Iterator[Path]:
    """A name for a room that is locked until the block ends."""
    with writing(stage(root, key)):
        handle = None
        while handle is None:
            name = f"{key}.{_machine()}.{os.getpid()}.{secrets.token_hex(4)}"
            handle = locks.take(room_lock(root, name))
    try:
        yield room(root, name)
    finally:
        shutil.rmtree(room(root, name), ignore_errors=True)
        locks.let_go(room_lock(root, name), handle)


def _is_abandoned(root: Path, name: str) -> bool:
    if locks.is_held(room_lock(root, name)):
        return False
    if name.split(".")[1:2] == [_machine()]:
        return True
    changed = []
    for path in (room(root, name), room_lock(root, name)):
        with suppress(FileNotFoundError):
            changed.append(path.stat().st_mtime)
    return bool(changed) and time.time() - max(changed) > PATIENCE


def _machine() -> str:
    """This machine, without telling its name."""
    return digest(socket.gethostname())[:8]


# What lies in a store, by looking at folders only.


def stamps(root: Path) -> dict[str, int]:
    """When the folder of each finished stage was last changed, in nanoseconds.

    A stage that is done again has another one.
    """
    found: dict[str, int] = {}
    with suppress(FileNotFoundError), os.scandir(stages(root)) as shelves:
        for shelf in shelves:
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(shelf.path) as inside:
                for stage in inside:
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
