"""Folders that serve nobody any more: old half-done work, rooms of the dead, damaged stages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from fairweight.runs import claim, listing, lock_file, paths, references, rooms


def leftovers(root: Path) -> list[tuple[Path, int]]:
    """Folders with their bytes."""
    return [(folder, listing.size_bytes(folder)) for folder in _unused(root)]


def clear(root: Path, folders: Iterable[Path]) -> None:
    """Remove folders that `leftovers` listed, except those that are in use by now."""
    with lock_file.held(paths.studies_lock(root), wait=True):
        unused = set(_unused(root))
        for folder in unused.intersection(map(Path, folders)):
            if folder.parent == paths.rooms(root):
                rooms.clear(root, folder.name)
            elif folder.parent == paths.damages(root):
                shutil.rmtree(folder, ignore_errors=True)
            else:
                with claim.claim(root, folder.name) as ours:
                    if ours:
                        shutil.rmtree(folder, ignore_errors=True)


def _unused(root: Path) -> Iterator[Path]:
    finished, referred = listing.done(root), references.referred(root)
    for key in _names(paths.works(root)):
        if (key in finished or key not in referred) and not claim.is_claimed(root, key):
            yield paths.work(root, key)
    for name in rooms.abandoned(root):
        yield paths.room(root, name)
    for name in _names(paths.damages(root)):
        yield paths.damages(root) / name


def _names(folder: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return sorted(os.listdir(folder))
    return []
