"""The store: finished stages in folders that are whole, checked, and never changed.

A stage is written aside, forced to disk and renamed to its place, so a folder under `stages/` is a
finished stage, whatever was killed when. Any number of runners may share a store. Locks keep them
from doing a stage twice; where a file system has no locks that reach other machines, a doubled
stage costs time and nothing else, because the second rename finds the first one's folder.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairweight.base.files import atomic_file, sync_folder, writing
from fairweight.runs import garbage, manifest, store_layout
from fairweight.runs.manifest import Manifest, seal, set_aside
from fairweight.runs.stage import Stage

# Records of stages that failed, with their tracebacks.


def fail(root: Path, key: str, traceback: str, label: str = "") -> None:
    """Record why a stage failed; replaces an earlier record."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    record = {"key": key, "label": label, "when": when, "traceback": traceback}
    with atomic_file(store_layout.failure(root, key)) as stream:
        json.dump(record, stream)


def failed(root: Path) -> dict[str, dict[str, Any]]:
    """Records by key, of stages that are not done since."""
    try:
        names = sorted(os.listdir(store_layout.failures(root)))
    except FileNotFoundError:
        return {}
    records = {}
    for name in names:
        key = name.removesuffix(".json")
        if name.startswith(".") or key == name or store_layout.manifest(root, key).exists():
            continue
        with suppress(FileNotFoundError):  # forgotten just now
            records[key] = _record(root, key)
    return records


def forget_failures(root: Path, keys: Iterable[str]) -> None:
    for key in keys:
        store_layout.failure(root, key).unlink(missing_ok=True)


def _record(root: Path, key: str) -> dict[str, Any]:
    empty = {"key": key, "label": "", "when": "", "traceback": "(the record cannot be read)"}
    try:
        found = json.loads(store_layout.failure(root, key).read_text(encoding="utf-8"))
    except ValueError:
        return empty
    return {**empty, **found} if isinstance(found, dict) else empty


# How a stage gets into the store: written aside, forced to disk, renamed to its place.

_FULL = (errno.ENOSPC, errno.EDQUOT)


def write_stage(root: Path, stage: Stage, function: Callable[[Path], None]) -> bool:
    """Let `function` fill a room and make it the stage; False if there is one already."""
    if store_layout.manifest(root, stage.key).exists():
        _tidy(root, stage.key)
        return False
    with suppress(OSError):  # room for others is no condition of this stage
        for name in store_layout.abandoned(root):
            store_layout.clear(root, name)
    with store_layout.empty_room(root, stage.key) as room:
        seconds = _filled(root, stage.key, room, function)
        with writing(store_layout.stage(root, stage.key)):
            seal(room, stage, seconds)
            fresh = _in_place(root, stage.key, room)
    _tidy(root, stage.key)
    return fresh


def _filled(root: Path, key: str, room: Path, function: Callable[[Path], None]) -> float:
    """Call the function; seconds that it took, with those before an interruption."""
    before = _seconds_before(root, key)
    start = time.perf_counter()
    try:
        function(room)
    except BaseException as error:
        _remember_seconds(root, key, before + time.perf_counter() - start)
        if _is_disk_full(error):
            with writing(store_layout.stage(root, key)):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise
    return before + time.perf_counter() - start


def _in_place(root: Path, key: str, room: Path) -> bool:
    place = store_layout.stage(root, key)
    new_shelf = not place.parent.exists()
    place.parent.mkdir(parents=True, exist_ok=True)
    if new_shelf:
        sync_folder(store_layout.stages(root))
    while True:
        try:
            os.rename(room, place)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            if store_layout.manifest(root, key).exists():
                return False
            set_aside(root, key, f"it has no '{store_layout.MANIFEST}'")
        else:
            sync_folder(place.parent)
            return True


def _tidy(root: Path, key: str) -> None:
    """Remove what only an unfinished stage needs."""
    shutil.rmtree(store_layout.work(root, key), ignore_errors=True)
    with suppress(OSError):
        store_layout.failure(root, key).unlink()


def _seconds_before(root: Path, key: str) -> float:
    try:
        return float(store_layout.seconds(root, key).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0.0


def _remember_seconds(root: Path, key: str, seconds: float) -> None:
    """Keep the time spent, if anything is kept of what it was spent on."""
    with suppress(OSError):
        if any(store_layout.work(root, key).iterdir()):
            store_layout.seconds(root, key).write_text(f"{seconds:.3f}", encoding="utf-8")


def _is_disk_full(error: BaseException | None) -> bool:
    """Whether a full disk is behind an error; libraries put it in words of their own."""
    words = tuple(os.strerror(number) for number in _FULL)
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if any(word in str(error) for word in words):
            return True
        error = error.__cause__ or error.__context__
    return False


class Store:
    """A folder of finished stages, shared by any number of processes.

    Objects are light and can be pickled. Nothing is made on disk before the first write.

    Parameters
    ----------
    root
        Its folder.
    """

    def __init__(self, root: str | Path = store_layout.DEFAULT) -> None:
        self.root = Path(os.path.abspath(root))
        store_layout.check(self.root)
        self._prepared = False

    # What is there

    def folder(self, key: str) -> Path:
        """Where the outputs of a finished stage are; `read` verifies them."""
        return store_layout.stage(self.root, key)

    def work(self, key: str) -> Path:
        """A folder for half-done work of a stage; made if missing, removed when it is done."""
        self._prepare()
        folder = store_layout.work(self.root, key)
        with writing(folder):
            folder.mkdir(exist_ok=True)
        return folder

    def is_done(self, key: str) -> bool:
        """Whether a stage is finished; one look at the disk."""
        return os.path.exists(store_layout.manifest(self.root, key))

    def done(self) -> set[str]:
        """Keys of all finished stages; one pass over the folders."""
        return store_layout.done(self.root)

    def manifest(self, key: str) -> Manifest:
        """What a finished stage says about itself; raises `Damaged` like `read`."""
        return manifest.manifest(self.root, key)

    def read(self, key: str) -> Path:
        """The folder of a finished stage, verified.

        Sizes are compared each time, checksums once per process. A stage that is not what was
        written is moved to `damaged/` with the reason.

        Raises
        ------
        Damaged
            The stage is not there (any more) and must be done again.
        """
        return manifest.verified(self.root, key)

    # Work

    def claim(self, key: str) -> AbstractContextManager[bool]:
        """Whether this process alone works on a stage, until the block ends or the process dies.

        False: another one does, in this process or in any other.
        """
        self._prepare()
        return store_layout.claim(self.root, key)

    def running(self) -> set[str]:
        """Keys of stages that some process has claimed."""
        return store_layout.running(self.root)

    def write(self, stage: Stage, function: Callable[[Path], None]) -> bool:
        """Let `function` write a stage's outputs into an empty folder, and keep them.

        Nothing is done, and False is returned, if the stage is there already. Half-done work
        and the record of an earlier failure are removed afterwards.

        Raises
        ------
        OutputError
            The disk is full or cannot be written; the store is as it was. Other errors of
            `function` pass through unchanged, and nothing is kept of what it wrote.
        """
        self._prepare()
        return write_stage(self.root, stage, function)

    def fail(self, key: str, traceback: str, label: str = "") -> None:
        """Record why a stage failed."""
        self._prepare()
        fail(self.root, key, traceback, label)

    def failed(self) -> dict[str, dict[str, Any]]:
        """Records (key, label, when, traceback) of stages that failed and are not done since."""
        return failed(self.root)

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Remove the records, so that the stages are tried again."""
        forget_failures(self.root, keys)

    # Studies and what nobody refers to

    def register(self, study: str, keys: Collection[str]) -> None:
        """Say which stages a study refers to, all of them; replaces what it said before.

        To be called before asking what is done: a stage that is referred to is never removed.
        """
        self._prepare()
        garbage.register(self.root, study, keys)

    def registered(self) -> dict[str, list[str]]:
        """Keys that each study refers to."""
        return garbage.registered(self.root)

    def unregister(self, study: str) -> None:
        """Forget a study; its stages become garbage where no other study refers to them."""
        self._prepare()
        garbage.unregister(self.root, study)

    def garbage(self) -> list[tuple[str, int]]:
        """Finished stages that no study refers to, itself or through inputs, with their bytes."""
        return garbage.garbage(self.root)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove finished stages; refuses if a study refers to one of them."""
        self._prepare()
        garbage.remove(self.root, keys)

    def leftovers(self) -> list[tuple[Path, int]]:
        """Half-done work that nobody refers to, rooms of dead processes, damaged stages: bytes."""
        return garbage.leftovers(self.root)

    def clear(self, folders: Iterable[Path]) -> None:
        """Remove folders that `leftovers` listed, except those that are in use by now."""
        self._prepare()
        garbage.clear(self.root, folders)

    def _prepare(self) -> None:
        if not self._prepared:
            store_layout.prepare(self.root)
            self._prepared = True
