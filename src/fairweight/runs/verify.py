"""Whether a finished stage is what was written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from fairweight.errors import InputError
from fairweight.runs import paths
from fairweight.runs.damaged import Damaged, set_aside
from fairweight.runs.manifest import Manifest, file_sha256

# What these say about a file is that its content is lost. Others, such as too many open files,
# say nothing about it.
_LOST = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EIO, errno.ELOOP)

# Checksums that this process has compared, by root and key: which manifest they were of.
_compared: dict[tuple[str, str], tuple[int, int]] = {}


def manifest(root: Path, key: str) -> Manifest:
    """The manifest of a stage; a stage whose manifest cannot be read is set aside."""
    return _checked(root, key, files=False)


def verified(root: Path, key: str) -> Path:
    """The folder of a stage after its files were compared with its manifest."""
    _checked(root, key, files=True)
    return paths.stage(root, key)


def _checked(root: Path, key: str, *, files: bool) -> Manifest:
    folder = paths.stage(root, key)
    if not folder.is_dir():
        raise Damaged(key, "it is not in the store")
    inode = folder.stat().st_ino
    try:
        found = _manifest(root, key)
        if files:
            _compare(root, found)
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


def _manifest(root: Path, key: str) -> Manifest:
    path = paths.manifest(root, key)
    if not path.exists():
        raise _Flaw(f"it has no '{paths.MANIFEST}'")
    try:
        found = Manifest.of_line(path.read_text(encoding="utf-8"))
    except (ValueError, TypeError, KeyError) as error:
        raise _Flaw(f"its '{paths.MANIFEST}' is damaged ({error})") from error
    if found.key != key:
        raise _Flaw(f"its '{paths.MANIFEST}' is that of stage {found.key}")
    return found


def _compare(root: Path, manifest: Manifest) -> None:
    folder = paths.stage(root, manifest.key)
    for name, (size, _) in manifest.files.items():
        try:
            there = os.stat(folder / name).st_size
        except FileNotFoundError as error:
            raise _Flaw(f"'{name}' is missing") from error
        if there != size:
            raise _Flaw(f"'{name}' has {there} bytes instead of {size}")
    status = os.stat(folder / paths.MANIFEST)
    place, version = (str(root), manifest.key), (status.st_ino, status.st_mtime_ns)
    if _compared.get(place) == version:
        return
    for name, (_, sha256) in manifest.files.items():
        if file_sha256(folder / name) != sha256:
            raise _Flaw(f"the content of '{name}' has changed")
    _compared[place] = version
