"""Which stages studies refer to: what is referred to is never removed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from fairweight.errors import InputError, UnknownNameError
from fairweight.runs import lock_file, paths
from fairweight.tables.write import atomic_file

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,150}")


def register(root: Path, study: str, keys: Collection[str]) -> None:
    """Say which stages a study refers to; replaces what it said before."""
    if not _NAME.fullmatch(study):
        raise InputError(
            f"The study's name '{study}' cannot be kept; use letters, digits and . _ - @ +, "
            f"beginning with a letter or digit."
        )
    when = datetime.now(UTC).isoformat(timespec="seconds")
    record = {"study": study, "registered": when, "keys": sorted(set(keys))}
    with (
        lock_file.held(paths.studies_lock(root), wait=True),
        atomic_file(paths.study(root, study)) as stream,
    ):
        json.dump(record, stream)


def registered(root: Path) -> dict[str, list[str]]:
    """Keys that each study refers to.

    A record that cannot be read is an error: what it refers to would look like garbage.
    """
    try:
        names = sorted(os.listdir(paths.studies(root)))
    except FileNotFoundError:
        return {}
    return {
        name.removesuffix(".json"): _keys(paths.studies(root) / name)
        for name in names
        if name.endswith(".json") and not name.startswith(".")
    }


def unregister(root: Path, study: str) -> None:
    with lock_file.held(paths.studies_lock(root), wait=True):
        known = registered(root)
        if study not in known:
            raise UnknownNameError("The study", study, known)
        paths.study(root, study).unlink()


def referred(root: Path) -> set[str]:
    """Keys that any study refers to, itself or through the inputs of finished stages."""
    reached: set[str] = set()
    ahead = {key for keys in registered(root).values() for key in keys}
    while ahead:
        reached |= ahead
        ahead = {one for key in ahead for one in _inputs(root, key)} - reached
    return reached


def _keys(path: Path) -> list[str]:
    with suppress(ValueError, KeyError, TypeError):
        return [str(key) for key in json.loads(path.read_text(encoding="utf-8"))["keys"]]
    raise InputError(
        f"'{path}' cannot be read, so what its study refers to is unknown; run the study again "
        f"to write it anew, or delete the file if nobody wants the study any more."
    )


def _inputs(root: Path, key: str) -> list[str]:
    # A stage that is not done, or damaged, has no inputs to protect: they are referred to by
    # the study itself.
    with suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads(paths.manifest(root, key).read_text(encoding="utf-8"))
        return [str(one) for one in content["inputs"]]
    return []
