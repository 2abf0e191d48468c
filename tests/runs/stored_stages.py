"""Stages whose outputs follow from their keys, for tests of the store."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from fairweight.runs.stage import Stage, key_of


def numbered(number: int, inputs: tuple[str, ...] = ()) -> Stage:
    spec = {"number": number}
    key = key_of("made", spec, inputs)
    return Stage(key, "made", "nowhere:nothing", spec, inputs, f"made: {number}")


def outputs(key: str) -> dict[str, bytes]:
    block = hashlib.sha256(key.encode()).digest()
    return {"small.bin": block, "parts/large.bin": block * 2000, "parts/deep/empty.bin": b""}


def writer(key: str) -> Callable[[Path], None]:
    def write(room: Path) -> None:
        for name, content in outputs(key).items():
            (room / name).parent.mkdir(parents=True, exist_ok=True)
            (room / name).write_bytes(content)

    return write


def is_whole(folder: Path, key: str) -> bool:
    """Whether a stage's folder holds exactly what `writer` writes."""
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "stage.json"
    }
    return found == outputs(key)
