"""What a finished stage says about itself: its spec, its files and their checksums.

The manifest is one line of JSON, written after everything else of the stage.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any

import fairweight
from fairweight.base.files import sync, sync_folder, writing
from fairweight.errors import FairweightError, InputError
from fairweight.runs import store_layout
from fairweight.runs.stage import Stage, canonical
from fairweight.runs.store_layout import MANIFEST

PACKAGES = ("numpy", "torch", "onnxruntime")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A finished stage.

    Parameters
    ----------
    files
        Bytes and SHA-256 of every file by its name within the stage.
    seconds
        How long it was worked on, without interruptions.
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
        if content.pop("sha256", None) != _sha256(canonical(content)):
            raise ValueError("its own checksum does not fit")
        files = {name: (size, digest) for name, (size, digest) in content["files"].items()}
        return cls(**{**content, "inputs": tuple(content["inputs"]), "files": files})


def seal(folder: Path, stage: Stage, seconds: float) -> Manifest:
    """Flush a folder's files to disk and describe them; the manifest is written last."""
    files: dict[str, tuple[int, str]] = {}
    mode = folder.stat().st_mode & 0o666
    for place, folders, names in os.walk(folder):
        for name in sorted(names + [one for one in folders if os.path.islink(f"{place}/{one}")]):
            path = Path(place, name)
            shown = path.relative_to(folder).as_posix()
            if path.is_symlink() or not path.is_file():
                raise ValueError(f"A stage wrote '{shown}', which is not an ordinary file.")
            if shown == MANIFEST:
                raise ValueError(
                    f"A stage wrote '{shown}', a name that the store keeps for itself."
                )
            # Some writers make private files; others who share the store must read them.
            os.chmod(path, mode)
            sync(path)
            files[shown] = (path.stat().st_size, file_sha256(path))
    manifest = Manifest(
        key=stage.key,
        kind=stage.kind,
        label=stage.label,
        spec=stage.spec,
        inputs=stage.inputs,
        files=files,
        seconds=round(seconds, 3),
        finished=utc_now(),
        versions=versions(),
    )
    with open(folder / MANIFEST, "x", encoding="utf-8", newline="\n") as stream:
        stream.write(manifest.line())
        stream.flush()
        os.fsync(stream.fileno())
    for place, _, _ in os.walk(folder):
        sync_folder(Path(place))
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


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# Stages that are not what was written: kept aside with the reason, and done again.

REASON = "damage.json"


class Damaged(FairweightError):  # noqa: N818  says what the stage is
    """A stage that is missing or not what was written; it must be done again."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"Stage {key} must be done again: {reason}.")
        self.key = key
        self.reason = reason

    def __reduce__(self) -> tuple[type[Damaged], tuple[str, str]]:
        return type(self), (self.key, self.reason)


def set_aside(root: Path, key: str, reason: str) -> None:
    """Move a stage to `damaged/`, with the reason beside its files."""
    folder = store_layout.stage(root, key)
    with writing(folder):
        (root / store_layout.DAMAGED).mkdir(exist_ok=True)
        for number in count(1):
            place = root / store_layout.DAMAGED / f"{key}.{number}"
            try:
                os.rename(folder, place)
                break
            except FileNotFoundError:
                return  # another process has moved it
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
    found = utc_now()
    with suppress(OSError):  # on a full disk the stage is out of the way all the same
        record = {"key": key, "reason": reason, "found": found}
        (place / REASON).write_text(json.dumps(record), encoding="utf-8")


# Whether a finished stage is what was written.

# What these say about a file is that its content is lost. Others, such as too many open files,
# say nothing about it.
_LOST = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO, errno.ELOOP)

# Checksums that this process has compared, by folder: which manifest they were of.
_compared: dict[Path, tuple[int, int]] = {}


def checked(root: Path, key: str, *, files: bool) -> Manifest:
    """The manifest of a stage; on request its files are checked against it first.

    A stage that is not what was written is set aside.
    """
    folder = store_layout.stage(root, key)
    if not folder.is_dir():
        raise Damaged(key, "it is not in the store")
    inode = folder.stat().st_ino
    try:
        path = folder / MANIFEST
        if not path.exists():
            raise _Flaw(f"it has no '{MANIFEST}'")
        try:
            found = Manifest.of_line(path.read_text(encoding="utf-8"))
        except (ValueError, TypeError, KeyError) as error:
            raise _Flaw(f"its '{MANIFEST}' is damaged ({error})") from error
        if found.key != key:
            raise _Flaw(f"its '{MANIFEST}' is that of stage {found.key}")
        if files:
            _compare_files(folder, found)
        return found
    except PermissionError as error:
        raise InputError(
            f"'{error.filename}' cannot be read (permission denied); ask its owner, or give "
            f"another store (--store)."
        ) from error
    except (OSError, _Flaw) as error:
        if isinstance(error, OSError) and error.errno not in _LOST:
            raise
        reason = str(error) if isinstance(error, _Flaw) else f"{error.strerror} in its files"
        # Meanwhile another process may have set it aside and done it again.
        if folder.is_dir() and folder.stat().st_ino == inode:
            set_aside(root, key, reason)
        raise Damaged(key, reason) from error


class _Flaw(Exception):  # noqa: N818  becomes Damaged
    pass


def _compare_files(folder: Path, manifest: Manifest) -> None:
    """Check sizes on every call, checksums once per process."""
    for name, (size, _) in manifest.files.items():
        try:
            there = os.stat(folder / name).st_size
        except FileNotFoundError as error:
            raise _Flaw(f"'{name}' is missing") from error
        if there != size:
            raise _Flaw(f"'{name}' has {there} bytes instead of {size}")
    status = os.stat(folder / MANIFEST)
    version = (status.st_ino, status.st_mtime_ns)
    if _compared.get(folder) == version:
        return
    for name, (_, sha256) in manifest.files.items():
        if file_sha256(folder / name) != sha256:
            raise _Flaw(f"the content of '{name}' has changed")
    _compared[folder] = version
