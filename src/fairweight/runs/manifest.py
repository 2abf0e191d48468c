"""What a finished stage says about itself: its spec, its files and their checksums.

The manifest is one line of JSON, written after everything else of the stage.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import fairweight
from fairweight.runs import paths
from fairweight.runs.key import canonical
from fairweight.runs.stage import Stage
from fairweight.tables.write import sync, sync_folder

PACKAGES = ("numpy", "torch", "onnxruntime")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A finished stage.

    Parameters
    ----------
    files
        Bytes and SHA-256 of every file by its name within the stage.
    seconds
        How long it was worked on, interruptions left out.
    finished
        When, in UTC (ISO 8601).
    versions
        Of Python, fairweight and what computes.
    """

    key: str
    kind: str
    label: str
    spec: Mapping[str, Any]
    inputs: tuple[str, ...]
    files: Mapping[str, tuple[int, str]]
    seconds: float
    finished: str
    versions: Mapping[str, str]

    def line(self) -> str:
        """JSON that carries its own checksum."""
        content = {name: getattr(self, name) for name in self.__slots__}
        return canonical({**content, "sha256": _sha256(canonical(content))}) + "\n"

    @classmethod
    def of_line(cls, text: str) -> Manifest:
        """Read what `line` wrote; ValueError if it is anything else."""
        content = json.loads(text)
        if not isinstance(content, dict):
            raise ValueError("it is no JSON object")
        told = content.pop("sha256", None)
        if told != _sha256(canonical(content)):
            raise ValueError("its own checksum does not fit")
        files = {name: (size, digest) for name, (size, digest) in content["files"].items()}
        return cls(**{**content, "inputs": tuple(content["inputs"]), "files": files})


def seal(room: Path, stage: Stage, seconds: float) -> Manifest:
    """Force what lies in a room to disk and describe it; the description is written last."""
    names = list(_files_below(room))
    files = {name: _kept(room / name, room.stat().st_mode) for name in names}
    manifest = Manifest(
        key=stage.key,
        kind=stage.kind,
        label=stage.label,
        spec=stage.spec,
        inputs=stage.inputs,
        files=files,
        seconds=round(seconds, 3),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )
    with open(room / paths.MANIFEST, "x", encoding="utf-8", newline="\n") as stream:
        stream.write(manifest.line())
        stream.flush()
        os.fsync(stream.fileno())
    for folder, _, _ in os.walk(room):
        sync_folder(Path(folder))
    return manifest


def file_sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions of what is installed, without importing it."""
    found = {"python": platform.python_version(), "fairweight": fairweight.__version__}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _kept(path: Path, mode: int) -> tuple[int, str]:
    # Some writers make private files; others who share the store must be able to read them.
    os.chmod(path, mode & 0o666)
    sync(path)
    return path.stat().st_size, file_sha256(path)


def _files_below(room: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(room):
        for name in sorted(names + [one for one in folders if os.path.islink(f"{folder}/{one}")]):
            path = Path(folder, name)
            shown = path.relative_to(room).as_posix()
            if path.is_symlink() or not path.is_file():
                raise ValueError(f"A stage wrote '{shown}', which is not an ordinary file.")
            if shown == paths.MANIFEST:
                raise ValueError(
                    f"A stage wrote '{shown}', a name that the store keeps for itself."
                )
            yield shown


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
