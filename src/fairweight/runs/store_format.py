"""Whether a folder is a store that this version understands, and making a new one."""

from __future__ import annotations

import json
import os
from pathlib import Path

from fairweight.errors import InputError
from fairweight.runs import paths
from fairweight.tables.write import atomic_file, writing

# How a store is laid out on disk; apart from the format of what stages write (key.py).
FORMAT = 1

_FOLDERS = (
    paths.stages, paths.works, paths.locks, paths.rooms, paths.failures, paths.damages,
    paths.studies, paths.runners,
)  # fmt: skip


def check(root: Path) -> None:
    """Refuse what cannot be a store, or is one of a later version; nothing is written."""
    if root.exists() and not root.is_dir():
        raise InputError(f"The store (--store) '{root}' is a file; give a folder.")
    about = paths.about(root)
    if not about.exists():
        return
    try:
        number = int(json.loads(about.read_text(encoding="utf-8"))["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"'{about}' cannot be read; write {{\"format\": {FORMAT}}} into it if the folder is a "
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
        if not paths.about(root).exists():
            _refuse_foreign(root)
            # Data and models are nobody else's business.
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            # First of all, so that a folder with anything of a store in it is known to be one.
            with atomic_file(paths.about(root)) as stream:
                json.dump({"format": FORMAT}, stream)
        for folder in _FOLDERS:
            folder(root).mkdir(exist_ok=True)


def _refuse_foreign(root: Path) -> None:
    if not root.exists():
        return
    ours = {paths.about(root).name, *(folder(root).name for folder in _FOLDERS)}
    foreign = sorted(n for n in os.listdir(root) if not n.startswith(".") and n not in ours)
    if foreign:
        raise InputError(
            f"The store (--store) '{root}' has other files in it, such as '{foreign[0]}', and no "
            f"'{paths.about(root).name}'; give an empty or a new folder."
        )
