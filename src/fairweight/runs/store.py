"""The store: finished stages in folders that are whole, checked, and never changed.

A stage is written aside, forced to disk and renamed to its place, so a folder under `stages/` is a
finished stage, whatever was killed when. Any number of runners may share a store. Locks keep them
from doing a stage twice; where a file system has no locks that reach other machines, a doubled
stage costs time and nothing else, because the second rename finds the first one's folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from fairweight.runs import (
    claim,
    failures,
    garbage,
    leftovers,
    listing,
    paths,
    references,
    store_format,
    verify,
    write_stage,
)
from fairweight.runs.manifest import Manifest
from fairweight.runs.stage import Stage
from fairweight.tables.write import writing


class Store:
    """A folder of finished stages, shared by any number of processes.

    Objects are light and can be pickled. Nothing is made on disk before the first write.

    Parameters
    ----------
    root
        Its folder.
    """

    def __init__(self, root: str | Path = paths.DEFAULT) -> None:
        self.root = Path(os.path.abspath(root))
        store_format.check(self.root)
        self._prepared = False

    # What is there

    def folder(self, key: str) -> Path:
        """Where the outputs of a finished stage are; `read` verifies them."""
        return paths.stage(self.root, key)

    def work(self, key: str) -> Path:
        """A folder for half-done work of a stage; made if missing, removed when it is done."""
        self._prepare()
        folder = paths.work(self.root, key)
        with writing(folder):
            folder.mkdir(exist_ok=True)
        return folder

    def is_done(self, key: str) -> bool:
        """Whether a stage is finished; one look at the disk."""
        return os.path.exists(paths.manifest(self.root, key))

    def done(self) -> set[str]:
        """Keys of all finished stages; one pass over the folders."""
        return listing.done(self.root)

    def manifest(self, key: str) -> Manifest:
        """What a finished stage says about itself; raises `Damaged` like `read`."""
        return verify.manifest(self.root, key)

    def read(self, key: str) -> Path:
        """The folder of a finished stage, verified.

        Sizes are compared each time, checksums once per process. A stage that is not what was
        written is moved to `damaged/` with the reason.

        Raises
        ------
        Damaged
            The stage is not there (any more) and must be done again.
        """
        return verify.verified(self.root, key)

    # Work

    def claim(self, key: str) -> AbstractContextManager[bool]:
        """Whether this process alone works on a stage, until the block ends or the process dies.

        False: another one does, in this process or in any other.
        """
        self._prepare()
        return claim.claim(self.root, key)

    def running(self) -> set[str]:
        """Keys of stages that some process has claimed."""
        return claim.running(self.root)

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
        return write_stage.write_stage(self.root, stage, function)

    def fail(self, key: str, traceback: str, label: str = "") -> None:
        """Record why a stage failed."""
        self._prepare()
        failures.fail(self.root, key, traceback, label)

    def failed(self) -> dict[str, dict[str, Any]]:
        """Records (key, label, when, traceback) of stages that failed and are not done since."""
        return failures.failed(self.root)

    def forget_failures(self, keys: Iterable[str]) -> None:
        """Remove the records, so that the stages are tried again."""
        failures.forget_failures(self.root, keys)

    # Studies and what nobody refers to

    def register(self, study: str, keys: Collection[str]) -> None:
        """Say which stages a study refers to, all of them; replaces what it said before.

        To be called before asking what is done: a stage that is referred to is never removed.
        """
        self._prepare()
        references.register(self.root, study, keys)

    def registered(self) -> dict[str, list[str]]:
        """Keys that each study refers to."""
        return references.registered(self.root)

    def unregister(self, study: str) -> None:
        """Forget a study; its stages become garbage where no other study refers to them."""
        self._prepare()
        references.unregister(self.root, study)

    def garbage(self) -> list[tuple[str, int]]:
        """Finished stages that no study refers to, itself or through inputs, with their bytes."""
        return garbage.garbage(self.root)

    def remove(self, keys: Iterable[str]) -> None:
        """Remove finished stages; refuses if a study refers to one of them."""
        self._prepare()
        garbage.remove(self.root, keys)

    def leftovers(self) -> list[tuple[Path, int]]:
        """Half-done work that nobody refers to, rooms of dead processes, damaged stages: bytes."""
        return leftovers.leftovers(self.root)

    def clear(self, folders: Iterable[Path]) -> None:
        """Remove folders that `leftovers` listed, except those that are in use by now."""
        self._prepare()
        leftovers.clear(self.root, folders)

    def _prepare(self) -> None:
        if not self._prepared:
            store_format.prepare(self.root)
            self._prepared = True
