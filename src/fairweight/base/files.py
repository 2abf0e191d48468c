"""Outputs that appear whole or not at all, and replace only what fairweight wrote.

Everything is written beside its place under a hidden name, forced to disk, and then renamed. A run
that is killed leaves at most hidden files (`.name.*.tmp`), never a report that looks finished.

A folder has a manifest of the files that fairweight wrote, with their checksums. A file that is
not listed, or that has another content than listed, is somebody's: it is never removed, and
replaced only on request (`--overwrite`).
"""

from __future__ import annotations

import errno
import fcntl
import glob
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Any

from fairweight.base.scratch import Scratch
from fairweight.base.trust import inside
from fairweight.errors import FairweightError, InputError, OutputError

MANIFEST = ".fairweight-files.json"
FORMAT = 2
# A folder that is complete but not yet moved into place, and what is to be done with it.
PENDING, STEPS = ".fairweight-new", ".fairweight-steps.json"
# What makes a folder look finished is put in place after everything else, in this order.
COMPLETION = ("report.html", "audit.json")


class InTheWayError(OutputError):
    """New files would replace files that fairweight did not write, or that were changed since."""


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
            with suppress(OutputError):  # a listed file that is replaced alone stays listed
                folder, _ = _owner(target)
                if folder is not None:
                    name = target.relative_to(folder).as_posix()
                    _write_manifest(folder, {**manifest(folder), name: checksum(target)})
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


@contextmanager
def atomic_directory(
    path: str | Path,
    *,
    completion: Sequence[str] = COMPLETION,
    overwrite: bool = False,
    inputs: Iterable[str | Path] = (),
) -> Iterator[Path]:
    """A folder to write into, whose files appear in `path` when the block ends without an error.

    A new folder appears by one rename. In a folder that exists, files of others stay. Files that
    an earlier run wrote are replaced, or removed where this one has none of that name, if they
    are as the manifest says; any other file that is in the way is an error. From the moment at
    which the new files are complete they win: if the process is killed while they are moved,
    `finish` moves the rest. Files of `completion` disappear first and come last.

    Parameters
    ----------
    overwrite
        Replace files too that fairweight did not write, or that were changed since.
    inputs
        Files that are never replaced or removed.
    """
    target = Path(path)
    with writing(target):
        exists = _check_folder(target)
        if exists:
            finish(target)
        parent = target if exists else target.parent
        parent.mkdir(parents=True, exist_ok=True)
        # What killed runs left under this name goes now; it was never finished.
        scratch = Scratch(parent, prefix=f".{target.name or 'out'}.", suffix=".tmp")
        temporary = scratch.folder
        try:
            yield temporary
            files = {}
            below = [file for file in temporary.rglob("*") if file.is_file()]
            for name in sorted(file.relative_to(temporary).as_posix() for file in below):
                os.chmod(temporary / name, 0o666 & ~_umask())  # some writers make private files
                sync(temporary / name)
                files[name] = checksum(temporary / name)
            _write_json(temporary / MANIFEST, {"format": FORMAT, "files": files})
            if exists:
                with _locked(target):
                    _finish(target)
                    steps, unlisted = _steps(target, files, overwrite, inputs)
                    if unlisted:  # they may be replaced: from here on they are listed
                        _write_manifest(target, {**manifest(target), **unlisted})
                    _write_json(temporary / STEPS, {**steps, "completion": list(completion)})
                    os.chmod(temporary, 0o777 & ~_umask())
                    os.rename(temporary, target / PENDING)  # from here on the new files win
                    sync_folder(target)
                    _move(target, files, steps["removes"], completion)
            else:
                os.chmod(temporary, 0o777 & ~_umask())
                os.rename(temporary, target)
            sync_folder(target.parent)
        finally:
            scratch.close()


def finish(folder: str | Path) -> None:
    """Finish moving the files of a killed run into a folder; does nothing if there was none.

    Whoever reads several files of a folder calls it first.
    """
    target = Path(folder)
    if os.path.lexists(target / PENDING):
        with writing(target), _locked(target):
            _finish(target)


def settle(path: str | Path) -> None:
    """Finish what killed runs began to write, before results are read (a folder, or a file in it).

    An audit may stand in a folder of its own inside the one that was written.
    """
    given = Path(path)
    for place in (given, given / "audit", *list(given.parents)[:2]):
        try:
            finish(place)
        except OutputError as error:
            raise InputError(
                f"A killed run left '{place}' half moved, and it cannot be finished: {error}"
            ) from error


def manifest(folder: str | Path) -> dict[str, str | None]:
    """The files that fairweight wrote into a folder, with their SHA-256; empty without a manifest.

    Manifests of the first version held no checksums: theirs are None. A manifest that fairweight
    cannot have written is an error.
    """
    place = Path(folder) / MANIFEST
    if not os.path.lexists(place):
        return {}
    held = _read_json(place)
    if isinstance(held, list):
        held = {"format": FORMAT, "files": dict.fromkeys(map(str, held))}
    files = held.get("files") if isinstance(held, dict) and held.get("format") == FORMAT else None
    return _listed(files, place)


def checksum(path: Path) -> str:
    """SHA-256 of a file; for a link, the path that it points to."""
    if path.is_symlink():
        return f"link to {os.readlink(path)}"
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_file(
    out: str, *, inputs: Iterable[str | None] = (), overwrite: bool = False, option: str = "--out"
) -> None:
    """Raise before long work if the file `out` cannot or must not be written.

    Parameters
    ----------
    inputs
        What the command reads, as users write it: `NAME=FILE`, globs, folders, `FILE::SELECT ...`.
    overwrite
        Whether a file may be replaced that no manifest lists.
    option
        How the command calls the output.
    """
    if not out.strip():
        raise OutputError(f"The output file ({option}) has an empty name; name a file.")
    target = Path(out)
    check_writable(target.parent)
    if not os.path.lexists(target) or target.is_dir():  # a folder is refused when it is written
        return
    if _identity(target) in _identities(_files_named(inputs)):
        raise OutputError(f"{option} '{out}' is an input of this command; name another file.")
    folder, known = _owner(target)
    if not overwrite and (known is None or checksum(target) != known):
        told = f"'{out}' exists" if folder is None else _refusal(target, True, known)
        raise OutputError(_in_the_way([told]))


def check_folder(
    out: str,
    *,
    inputs: Iterable[str | None] = (),
    overwrite: bool = False,
    names: Iterable[str] = (),
) -> tuple[Path, ...]:
    """Raise before long work if the folder `out` cannot or must not be written; the input files.

    Parameters
    ----------
    names
        Files that will be in the folder, as far as they are known; the rest is checked when the
        folder is written.
    """
    check_writable(out)
    target = Path(out)
    files = tuple(_files_named(inputs))
    if not target.is_dir():
        return files
    read = _identities(files)
    if _identity(target) in read:
        raise OutputError(f"The folder '{out}' is an input of this command; choose another one.")
    home = target.resolve()
    if overwrite and any(file.resolve().is_relative_to(home) for file in files):
        raise OutputError(
            f"An input of this command lies in '{out}', where --overwrite might replace it; choose "
            "another folder, or leave --overwrite out."
        )
    with writing(target):
        finish(target)
        listed = manifest(target)
        for name in {*names, *listed}:
            place = target / name
            if _identity(place) in read:
                raise OutputError(
                    f"'{place}' is an input of this command, and it would be replaced or removed; "
                    "choose another folder (--out)."
                )
        there = [name for name in names if os.path.lexists(target / name)]
        refused = [
            _refusal(target / name, name in listed, listed.get(name))
            for name in there
            if not (target / name).is_dir() and checksum(target / name) != listed.get(name)
        ]
    if refused and not overwrite:
        raise OutputError(_in_the_way(refused))
    return files


def _files_named(inputs: Iterable[str | None]) -> Iterator[Path]:
    """The input files behind `NAME=FILE`, globs, whole folders and databases with a query."""
    for given in inputs:
        path = (given or "").partition("::")[0]
        for text in {path, path.partition("=")[2]} - {""}:
            place = Path(text).expanduser()
            with suppress(OSError, ValueError):
                if place.is_dir():
                    yield place
                    yield from place.rglob("*")
                elif place.exists():
                    yield place
                elif any(mark in text for mark in "*?["):
                    yield from map(Path, glob.glob(str(place), recursive=True))


def _owner(path: Path) -> tuple[Path | None, str | None]:
    """The nearest folder above a file whose manifest lists it, and the checksum that it has there.

    Only two folders up: what fairweight writes is not deeper.
    """
    for folder in list(path.parents)[:3]:
        listed = manifest(folder)
        name = path.relative_to(folder).as_posix()
        if name in listed:
            return folder, listed[name]
    return None, None


def _write_manifest(folder: Path, files: Mapping[str, str | None]) -> None:
    with atomic_file(folder / MANIFEST) as stream:
        json.dump({"format": FORMAT, "files": dict(files)}, stream)


def check_writable(path: str | Path) -> None:
    """Raise before long work if the folder `path` could not be written at its end."""
    if not str(path).strip():
        raise OutputError("The output folder (--out) has an empty name; name a folder.")
    target = Path(path)
    with writing(target):
        place = target if _check_folder(target) else target.parent
        while not place.exists():
            place = place.parent
        # A file without a name, where the system has such: a run that is killed here leaves none.
        with tempfile.TemporaryFile(dir=place, prefix=".fairweight.", suffix=".tmp"):
            pass


def _check_folder(target: Path) -> bool:
    """Whether the folder exists; an error if a file is in its place."""
    for place in (target, *target.parents):
        if place.exists() and not place.is_dir():
            raise OutputError(f"'{place}' is a file; give a folder (--out) that can be made.")
    return target.is_dir()


def _steps(
    target: Path, files: Mapping[str, str], overwrite: bool, inputs: Iterable[str | Path]
) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """What is written and removed, and files of others that are replaced; each with its checksum.

    Nothing is touched yet.
    """
    listed = manifest(target)
    read = _identities(inputs)
    unlisted, refused = {}, []
    for name in files:
        place = _writable_place(target, name)
        if not os.path.lexists(place):
            continue
        if _identity(place) in read:
            raise OutputError(f"'{place}' is an input of this command; choose another folder.")
        if place.is_dir() or not (place.is_file() or place.is_symlink()):
            raise OutputError(f"'{place}' is not an ordinary file; choose another folder.")
        found = checksum(place)
        if found not in (files[name], listed.get(name)):
            refused.append(_refusal(target / name, name in listed, listed.get(name)))
            unlisted[name] = found
    if refused and not overwrite:
        raise InTheWayError(_in_the_way(refused))
    removes = {}
    for name, known in listed.items():
        if name in files or known is None:
            continue
        with suppress(OutputError, OSError):
            place = _writable_place(target, name)
            if place.is_file() and checksum(place) == known and _identity(place) not in read:
                removes[name] = known
    return {"writes": dict(files), "removes": removes}, unlisted


def _finish(target: Path) -> None:
    """Check what a killed run left, then do it; the lock is ours.

    Anybody may have put that folder there. So it replaces and removes only what the manifest of
    the target lists, as it is listed.
    """
    pending = target / PENDING
    if not os.path.lexists(pending):
        return
    stranger = OutputError(f"'{pending}' is not a folder that fairweight wrote; remove it.")
    if pending.is_symlink() or not pending.is_dir():
        raise stranger
    if not os.path.lexists(pending / STEPS):  # all was moved, and the rest is empty
        _remove_empty(pending)
        if pending.exists():
            raise stranger
        return
    held = _read_json(pending / STEPS)
    if not isinstance(held, dict):
        raise stranger
    writes, removes = (
        {name: str(value) for name, value in _listed(held.get(part), pending / STEPS).items()}
        for part in ("writes", "removes")
    )
    own = {MANIFEST, PENDING, STEPS}  # of this folder; those below may have lists too
    if any(PurePosixPath(name).parts[0] in own for name in (*writes, *removes)):
        raise stranger
    if os.path.lexists(pending / MANIFEST) and manifest(pending) != writes:
        raise stranger
    listed = manifest(target)
    completion = held.get("completion") or []
    if not isinstance(completion, list):
        raise stranger
    completion = [name for name in writes if name in completion]
    for name, ours in writes.items():
        place, source = _writable_place(target, name), _writable_place(pending, name)
        moved = not source.is_file() or not os.path.lexists(place)
        if not moved and (place.is_dir() or checksum(place) not in (ours, listed.get(name))):
            raise OutputError(
                f"'{place}' is not as an earlier run left it, which was to replace it; move it "
                f"away, or remove '{pending}' to keep it."
            )
    removes = {
        name: known
        for name, known in removes.items()
        if listed.get(name) == known
        and _writable_place(target, name).is_file()
        and checksum(target / name) == known
    }
    _move(target, writes, removes, completion)


def _remove_empty(folder: Path) -> None:
    """Remove a folder and those in it, as far as they hold no files."""
    for place, _, _ in os.walk(folder, topdown=False):
        with suppress(OSError):
            os.rmdir(place)


def _move(
    target: Path, writes: Iterable[str], removes: Iterable[str], completion: Sequence[str]
) -> None:
    """Move the pending files into place; everything was checked. May be begun again at any step."""
    pending = target / PENDING
    last = [name for name in completion if name in set(writes)]
    for name in reversed(last):
        if (pending / name).is_file():
            (target / name).unlink(missing_ok=True)
    for name in (*(n for n in writes if n not in last), MANIFEST):
        if name == MANIFEST:
            for stale in removes:
                (target / stale).unlink(missing_ok=True)
                with suppress(OSError):  # folders that are empty now
                    for parent in list(PurePosixPath(stale).parents)[:-1]:
                        (target / parent).rmdir()
        if (pending / name).is_file():
            _put(pending / name, target / name)
    sync_folder(target)
    for name in last:
        if (pending / name).is_file():
            _put(pending / name, target / name)
    sync_folder(target)
    (pending / STEPS).unlink(missing_ok=True)
    _remove_empty(pending)


def _put(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    os.replace(source, place)
    source.unlink(missing_ok=True)  # two names of one file: renaming does nothing


def _writable_place(root: Path, name: str) -> Path:
    try:
        return inside(root, name)
    except InputError as error:
        raise OutputError(str(error)) from None


def _listed(files: Any, place: Path) -> dict[str, str | None]:
    """Names with checksums, if all of them can be what fairweight wrote."""
    if not isinstance(files, dict):
        raise OutputError(f"'{place}' is damaged; remove it, or choose another folder.")
    for name, known in files.items():
        parts = PurePosixPath(name).parts
        plain = parts and "\0" not in name and name[0] != "/" and ".." not in parts
        if not plain or not (known is None or isinstance(known, str)):
            raise OutputError(
                f"'{place}' lists {name[:80]!r}, which fairweight cannot have written; remove the "
                "list, or choose another folder."
            )
    return dict(files)


def _refusal(place: Path, listed: bool, known: str | None) -> str:
    if not listed:
        return f"'{place}' exists, and fairweight did not write it"
    if known is None:
        return f"'{place}' exists, and an earlier version that wrote it kept no checksums"
    return f"'{place}' was changed since fairweight wrote it"


def _in_the_way(refused: Sequence[str]) -> str:
    more = f" ({len(refused) - 1} more files are in the way)" if len(refused) > 1 else ""
    return (
        f"{refused[0]}{more}; choose another place, or replace it with --overwrite "
        "(in Python: overwrite=True)."
    )


def _identity(path: str | Path) -> tuple[int, int] | None:
    with suppress(OSError, ValueError):
        found = os.stat(path)
        return found.st_dev, found.st_ino
    return None


def _identities(paths: Iterable[str | Path]) -> set[tuple[int, int]]:
    return {found for path in paths if (found := _identity(path)) is not None}


def _write_json(path: Path, held: Any) -> None:
    path.write_text(json.dumps(held), encoding="utf-8")
    os.chmod(path, 0o666 & ~_umask())
    sync(path)


def _read_json(path: Path) -> Any:
    """The JSON of a small ordinary file; neither links nor pipes are followed."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise ValueError("not an ordinary file")
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise OutputError(f"'{path}' is damaged; remove it, or choose another folder.") from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One process at a time moves files into a folder; the lock dies with its process."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


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
    """Turn any error of the system while writing into an OutputError."""
    try:
        yield
    except FairweightError:
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


# What can be made again is kept in a folder of caches.


def cache_folder(part: str = "") -> Path:
    """`FAIRWEIGHT_CACHE`, else `XDG_CACHE_HOME/fairweight`, else the system's usual place.

    Parameters
    ----------
    part
        A folder inside, where the user has named none.
    """
    own = os.environ.get("FAIRWEIGHT_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    with suppress(RuntimeError):  # no home folder: a service account
        return (Path(base) if base else Path.home() / ".cache") / "fairweight" / part
    return _own_temporary() / part


@cache
def _own_temporary() -> Path:
    """A folder for temporary files that nobody else can have put anything into."""
    folder = Path(tempfile.gettempdir()) / f"fairweight-{os.getuid()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        private = found.st_uid == os.getuid() and not found.st_mode & 0o022
        if stat.S_ISDIR(found.st_mode) and private:
            return folder
    return Path(tempfile.mkdtemp(prefix="fairweight-"))
