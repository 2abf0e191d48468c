"""Outputs that appear whole or not at all.

Everything is written beside its place under a hidden name, forced to disk, and then renamed. A run
that is killed leaves at most hidden files (`.name.*.tmp`), never a report that looks finished.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from fairweight.errors import OutputError

MANIFEST = ".fairweight-files.json"
# What makes a folder look finished is put in place after everything else, in this order.
COMPLETION = ("report.html", "audit.json")


@contextmanager
def atomic_file(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """A file that replaces `path` when the block ends without an error.

    Parameters
    ----------
    mode
        `"w"` for UTF-8 text, `"wb"` for bytes.
    """
    if mode not in ("w", "wb"):
        raise ValueError(f"mode must be 'w' or 'wb'; given was {mode!r}.")
    target = Path(path)
    with writing(target):
        if target.is_dir():
            raise OutputError(f"'{target}' is a folder; give the name of a file.")
        if target.exists() and not target.is_file():
            raise OutputError(f"'{target}' is not an ordinary file; give the name of one.")
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"
        )
        try:
            encoding = None if "b" in mode else "utf-8"
            newline = None if "b" in mode else "\n"
            with os.fdopen(handle, mode, encoding=encoding, newline=newline) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, target)
            sync_folder(target.parent)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


@contextmanager
def atomic_directory(path: str | Path, *, completion: Sequence[str] = COMPLETION) -> Iterator[Path]:
    """A folder to write into, whose files appear in `path` when the block ends without an error.

    A new folder appears by one rename. In a folder that exists, files that an earlier run wrote
    (they are listed in a hidden manifest) are replaced or removed, files of others are kept, and
    the files of `completion` disappear first and come last.
    """
    target = Path(path)
    with writing(target):
        exists = _check_folder(target)
        parent = target if exists else target.parent
        parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(
            tempfile.mkdtemp(dir=parent, prefix=f".{target.name or 'out'}.", suffix=".tmp")
        )
        try:
            yield temporary
            written = _files_below(temporary)
            (temporary / MANIFEST).write_text(json.dumps(sorted(written)), encoding="utf-8")
            for name in (*written, MANIFEST):
                os.chmod(temporary / name, 0o666 & ~_umask())  # some writers make private files
                sync(temporary / name)
            if exists:
                _move_into(temporary, target, written, completion)
            else:
                os.chmod(temporary, 0o777 & ~_umask())
                os.rename(temporary, target)
            sync_folder(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def check_writable(path: str | Path) -> None:
    """Raise before long work if the folder `path` could not be written at its end."""
    if not str(path).strip():
        raise OutputError("The output folder (--out) has an empty name; name a folder.")
    target = Path(path)
    with writing(target):
        place = target if _check_folder(target) else target.parent
        while not place.exists():
            place = place.parent
        handle, probe = tempfile.mkstemp(dir=place, prefix=".fairweight.", suffix=".tmp")
        os.close(handle)
        os.unlink(probe)


def _check_folder(target: Path) -> bool:
    """Whether the folder exists; an error if a file is in its place."""
    for place in (target, *target.parents):
        if place.exists() and not place.is_dir():
            raise OutputError(f"'{place}' is a file; give a folder (--out) that can be made.")
    return target.is_dir()


def _move_into(
    temporary: Path, target: Path, written: Sequence[str], completion: Sequence[str]
) -> None:
    for name in completion:
        (target / name).unlink(missing_ok=True)
    last = [name for name in completion if name in written]
    for name in (*(n for n in written if n not in last), MANIFEST):
        if name == MANIFEST:
            _remove_stale(target, set(written))
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        os.replace(temporary / name, target / name)
    sync_folder(target)
    for name in last:
        os.replace(temporary / name, target / name)


def _remove_stale(target: Path, written: set[str]) -> None:
    """Remove what an earlier run wrote and this one did not; nothing else."""
    try:
        earlier = json.loads((target / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    root = target.resolve()
    for name in earlier if isinstance(earlier, list) else []:
        stale = (target / str(name)).resolve()
        if str(name) not in written and stale.is_relative_to(root) and stale.is_file():
            stale.unlink()
            with suppress(OSError):
                stale.parent.rmdir()


def _files_below(folder: Path) -> list[str]:
    return sorted(
        file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    # Some systems cannot sync a folder; the rename itself is done all the same.
    with suppress(OSError):
        sync(path)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn what the system says while writing into one OutputError."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            told = "there is no space left on that disk; free some or choose another place"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            told = "the folder cannot be written (permission denied); choose another place"
        elif error.errno == errno.ENOTDIR:
            told = "a file is where a folder should be; choose another place"
        else:
            told = f"{error.strerror or error}"
        raise OutputError(f"'{target}' was not written: {told}.") from error
