"""Finished stages that no study refers to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fairweight.errors import InputError
from fairweight.runs import listing, lock_file, paths, references, rooms


def garbage(root: Path) -> list[tuple[str, int]]:
    """Keys that no study refers to, itself or through inputs, with their bytes."""
    unused = sorted(listing.done(root) - references.referred(root))
    return [(key, listing.size_bytes(paths.stage(root, key))) for key in unused]


def remove(root: Path, keys: Iterable[str]) -> None:
    """Remove finished stages, each at once; refuses all if a study refers to any of them."""
    wanted = set(keys)
    # No study can be registered between the look and the removal.
    with lock_file.held(paths.studies_lock(root), wait=True):
        kept = sorted(wanted & references.referred(root))
        if kept:
            raise InputError(
                f"{len(kept)} of {len(wanted)} stages are referred to by a study, the first is "
                f"{kept[0]}; remove only what 'garbage' lists."
            )
        for key in sorted(wanted & listing.done(root)):
            rooms.discard(root, key, paths.stage(root, key))
