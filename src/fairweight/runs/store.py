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
import re
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from fairweight.base import locks
from fairweight.base.files import atomic_file, sync_folder, writing
from fairweight.errors import InputError, UnknownNameError
from fairweight.runs import manifest
from fairweight.runs import store_layout as layout
from fairweight.runs.manifest import Manifest, seal, set_aside, utc_now
from fairweight.runs.stage import Stage

_FULL = (errno.ENOSPC, errno.EDQUOT)
_STUDY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,150}")


class Store:
    """A folder of finished stages, shared by any number of processes.

    Objects are light and can be pickled. Nothing is made on disk before the first write.

    Parameters
    ----------
    root
        Its folder.
    """

    def __init__(self, root: str | Path = layout.DEFAULT) -> None:
        self.root = Path(os.path.abspath(root))
        layout.check(self.root)
        self._prepared = False

    # What is there

    def folder(self, key: str) -> Path:
        """Where the outputs of a finished stage are; `read` verifies them."""
        return layout.stage(self.root, key)

    def work(self, key: str) -> Path:
        """A folder for half-done work of a stage; made if missing, removed when it is done."""
        self._prepare()
        folder = self.root / layout.WORK / key
        with writing(folder):
            folder.mkdir(exist_ok=True)
        return folder

    def is_done(self, key: str) -> bool:
        """Whether a stage is finished; a single look-up on disk."""
        return os.path.exists(layout.manifest(self.root, key))

    def done(self) -> set[str]:
        """Keys of all finished stages; one pass over the folders."""
        found: set[str] = set()
        with suppress(FileNotFoundError), os.scandir(self.root / layout.STAGES) as shelves:
            for shelf in shelves:
                # Other programs leave files of their own (`.DS_Store`, `.nfs…`).
                with suppress(FileNotFoundError, NotADirectoryError):
                    found.update(n for n in os.listdir(shelf.path) if n.startswith(shelf.name))
        return found

    def manifest(self, key: str) -> Manifest:
        """The manifest of a finished stage; raises `Damaged` like `read`."""
        return manifest.checked(self.root, key, files=False)

    def read(self, key: str) -> Path:
        """The folder of a finished stage, verified.

        Sizes are compared each time, checksums once per process. A stage that is not what was
        written is moved to `damaged/` with the reason.

        Raises
        ------
        Damaged
            The stage is not there (any more) and must be done again.
        """
        manifest.checked(self.root, key, files=True)
        return self.folder(key)

    # Work

    def claim(self, key: str) -> AbstractContextManager[bool]:
        """Whether this process alone works on a stage, until the block ends or the process dies.

        False: another one does, in this process or in any other.
        """
        self._prepare()
        return locks.held(self.root / layout.LOCKS / key)

    def running(self) -> set[str]:
        """Keys of stages that some process has claimed."""
        keys = layout.names(self.root / layout.LOCKS)
        return {key for key in keys if locks.is_held(self.root / layout.LOCKS / key)}

    def write(self, stage: Stage, function: Callable[[Path], None]) -> bool:
        """Let `function` write a stage's outputs into an empty folder, and keep them.

        They are written aside, forced to disk and renamed to their place. Nothing is done, and
        False is returned, if the stage is there already. Half-done work and the record of an
        earlier failure are removed afterwards.

        Raises
        ------
        OutputError
            The disk is full or cannot be written; the store is as it was. Other errors of
            `function` pass through unchanged, and nothing is kept of what it wrote.
        """
        self._prepare()
        fresh = False
        if not self.is_done(stage.key):
            with suppress(OSError):  # space for others is no condition of this stage
                for name in layout.abandoned(self.root):
                    layout.clear(self.root, name)
            with layout.empty_folder(self.root, stage.key) as folder:
                seconds = self._fill(stage.key, folder, function)
                with writing(self.folder(stage.key)):
                    seal(folder, stage, seconds)
                    fresh = self._put(stage.key, folder)
        shutil.rmtree(self.root / layout.WORK / stage.key, ignore_errors=True)
        with suppress(OSError):
            self._failure(stage.key).unlink()
        return fresh

    def fail(self, key: str, traceback: str, label: str = "") -> None:
        """Record why a stage failed; replaces an earlier record."""
        self._prepare()
        record = {"key": key, "label": label, "when": utc_now(), "traceback": traceback}
        with atomic_file(self._failure(key)) as stream:
            json.dump(record, stream)

    def failed(self) -> dict[str, dict[str, Any]]:
        """Records (key, label, when, traceback) of stages that failed and are not done since."""
        records = {}
        for name in layout.names(self.root / layout.FAILED):
            key = name.removesuffix(".json")
            if name.startswith(".") or key == name or self.is_done(key):
                continue
            record = {"key": key, "label": "", "when": ""}
            record["traceback"] = "(the record cannot be read)"
            with suppress(FileNotFoundError):  # forgotten just now
                text = self._failure(key).read_text(encoding="utf-8")
                with suppress(ValueError):
                    held = json.loads(text)
                    record |= held if isinstance(held, dict) else {}
                records[key] = record
        return records

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Remove the records, so that the stages are tried again."""
        for key in keys:
            self._failure(key).unlink(missing_ok=True)

    # Studies and what nobody refers to

    def register(self, study: str, keys: Collection[str]) -> None:
        """Record all stages that a study refers to; replaces its earlier record.

        To be called before asking what is done: a stage that is referred to is never removed.
        """
        self._prepare()
        if not _STUDY.fullmatch(study):
            raise InputError(
                f"The study's name '{study}' cannot be kept; use letters, digits and . _ - @ +, "
                f"beginning with a letter or digit."
            )
        record = {"study": study, "registered": utc_now(), "keys": sorted(set(keys))}
        with (
            self._studies_locked(),
            atomic_file(self.root / layout.STUDIES / f"{study}.json") as stream,
        ):
            json.dump(record, stream)

    def registered(self) -> dict[str, list[str]]:
        """Keys that each study refers to.

        A record that cannot be read is an error: what it refers to would look like garbage.
        """
        found = {}
        for name in layout.names(self.root / layout.STUDIES):
            if name.startswith(".") or not name.endswith(".json"):
                continue
            path = self.root / layout.STUDIES / name
            try:
                keys = json.loads(path.read_text(encoding="utf-8"))["keys"]
                found[name.removesuffix(".json")] = [str(key) for key in keys]
            except (ValueError, KeyError, TypeError):
                raise InputError(
                    f"'{path}' cannot be read, so what its study refers to is unknown; run the "
                    f"study again to write it anew, or delete the file if the study is no longer "
                    f"needed."
                ) from None
        return found

    def unregister(self, study: str) -> None:
        """Forget a study; its stages become garbage where no other study refers to them."""
        self._prepare()
        with self._studies_locked():
            known = self.registered()
            if study not in known:
                raise UnknownNameError("The study", study, known)
            (self.root / layout.STUDIES / f"{study}.json").unlink()

    def garbage(self) -> list[tuple[str, int]]:
        """Finished stages that no study refers to, itself or through inputs, with their bytes."""
        unused = sorted(self.done() - self._referred())
        return [(key, layout.size_bytes(self.folder(key))) for key in unused]

    def remove(self, keys: Iterable[str]) -> None:
        """Remove finished stages, each at once; refuses all if a study refers to any of them."""
        self._prepare()
        wanted = set(keys)
        # No study can be registered between the look and the removal.
        with self._studies_locked():
            kept = sorted(wanted & self._referred())
            if kept:
                raise InputError(
                    f"{len(kept)} of {len(wanted)} stages are referred to by a study, the first is "
                    f"{kept[0]}; remove only what 'garbage' lists."
                )
            for key in sorted(wanted & self.done()):
                layout.discard(self.root, key, self.folder(key))

    def leftovers(self) -> list[tuple[Path, int]]:
        """Half-done work that no study or process needs, and damaged stages, with their bytes."""
        return [(folder, layout.size_bytes(folder)) for folder in self._unused()]

    def clear(self, folders: Iterable[Path]) -> None:
        """Remove folders that `leftovers` listed, except those that are in use by now."""
        self._prepare()
        with self._studies_locked():
            for folder in set(self._unused()).intersection(map(Path, folders)):
                if folder.parent == self.root / layout.ROOMS:
                    layout.clear(self.root, folder.name)
                elif folder.parent == self.root / layout.DAMAGED:
                    shutil.rmtree(folder, ignore_errors=True)
                else:
                    with self.claim(folder.name) as ours:
                        if ours:
                            shutil.rmtree(folder, ignore_errors=True)

    def _prepare(self) -> None:
        if not self._prepared:
            layout.prepare(self.root)
            self._prepared = True

    def _failure(self, key: str) -> Path:
        return self.root / layout.FAILED / f"{key}.json"

    def _fill(self, key: str, folder: Path, function: Callable[[Path], None]) -> float:
        """Call the function and return its seconds, including those before an interruption."""
        note = self.root / layout.WORK / key / layout.SECONDS
        before = 0.0
        with suppress(OSError, ValueError):
            before = float(note.read_text(encoding="utf-8"))
        start = time.perf_counter()
        try:
            function(folder)
        except BaseException as error:
            with suppress(OSError):
                # Time is remembered if anything is kept of what it was spent on.
                if any(note.parent.iterdir()):
                    spent = before + time.perf_counter() - start
                    note.write_text(f"{spent:.3f}", encoding="utf-8")
            if _is_disk_full(error):
                with writing(self.folder(key)):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
            raise
        return before + time.perf_counter() - start

    def _put(self, key: str, folder: Path) -> bool:
        """Rename a folder to the stage's place; False if another process was first."""
        place = self.folder(key)
        new_shelf = not place.parent.exists()
        place.parent.mkdir(parents=True, exist_ok=True)
        if new_shelf:
            sync_folder(self.root / layout.STAGES)
        while True:
            try:
                os.rename(folder, place)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    raise
                if self.is_done(key):
                    return False
                set_aside(self.root, key, f"it has no '{layout.MANIFEST}'")
            else:
                sync_folder(place.parent)
                return True

    def _studies_locked(self) -> AbstractContextManager[bool]:
        return locks.held(self.root / layout.STUDIES_LOCK, wait=True)

    def _referred(self) -> set[str]:
        """Keys that any study refers to, itself or through the inputs of finished stages."""
        reached: set[str] = set()
        ahead = {key for keys in self.registered().values() for key in keys}
        while ahead:
            reached |= ahead
            inputs: set[str] = set()
            for key in ahead:
                # A stage that is not done, or damaged, has no inputs to protect: they are referred
                # to by the study itself.
                with suppress(OSError, ValueError, KeyError, TypeError):
                    text = layout.manifest(self.root, key).read_text(encoding="utf-8")
                    inputs |= {str(one) for one in json.loads(text)["inputs"]}
            ahead = inputs - reached
        return reached

    def _unused(self) -> Iterator[Path]:
        finished, wanted, claimed = self.done(), self._referred(), self.running()
        for key in layout.names(self.root / layout.WORK):
            if (key in finished or key not in wanted) and key not in claimed:
                yield self.root / layout.WORK / key
        for name in layout.abandoned(self.root):
            yield self.root / layout.ROOMS / name
        for name in layout.names(self.root / layout.DAMAGED):
            yield self.root / layout.DAMAGED / name


def _is_disk_full(error: BaseException | None) -> bool:
    """Whether a full disk caused an error; libraries word it differently."""
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
