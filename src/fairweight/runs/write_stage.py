"""How a stage gets into the store: written aside, forced to disk, renamed to its place."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fairweight.runs import paths, rooms
from fairweight.runs.damaged import set_aside
from fairweight.runs.manifest import seal
from fairweight.runs.stage import Stage
from fairweight.tables.write import sync_folder, writing

_FULL = (errno.ENOSPC, errno.EDQUOT)


def write_stage(root: Path, stage: Stage, function: Callable[[Path], None]) -> bool:
    """Let `function` fill a room and make it the stage; False if there is one already."""
    if paths.manifest(root, stage.key).exists():
        _tidy(root, stage.key)
        return False
    with suppress(OSError):  # room for others is no condition of this stage
        for name in rooms.abandoned(root):
            rooms.clear(root, name)
    with rooms.empty_room(root, stage.key) as room:
        seconds = _filled(root, stage.key, room, function)
        with writing(paths.stage(root, stage.key)):
            seal(room, stage, seconds)
            fresh = _in_place(root, stage.key, room)
    _tidy(root, stage.key)
    return fresh


def _filled(root: Path, key: str, room: Path, function: Callable[[Path], None]) -> float:
    """Call the function; seconds that it took, with those before an interruption."""
    before = _seconds_before(root, key)
    start = time.perf_counter()
    try:
        function(room)
    except BaseException as error:
        _remember_seconds(root, key, before + time.perf_counter() - start)
        if _is_disk_full(error):
            with writing(paths.stage(root, key)):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error
        raise
    return before + time.perf_counter() - start


def _in_place(root: Path, key: str, room: Path) -> bool:
    place = paths.stage(root, key)
    new_shelf = not place.parent.exists()
    place.parent.mkdir(parents=True, exist_ok=True)
    if new_shelf:
        sync_folder(paths.stages(root))
    while True:
        try:
            os.rename(room, place)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            if paths.manifest(root, key).exists():
                return False
            set_aside(root, key, f"it has no '{paths.MANIFEST}'")
        else:
            sync_folder(place.parent)
            return True


def _tidy(root: Path, key: str) -> None:
    """Remove what only an unfinished stage needs."""
    shutil.rmtree(paths.work(root, key), ignore_errors=True)
    with suppress(OSError):
        paths.failure(root, key).unlink()


def _seconds_before(root: Path, key: str) -> float:
    try:
        return float(paths.seconds(root, key).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return 0.0


def _remember_seconds(root: Path, key: str, seconds: float) -> None:
    """Keep the time spent, if anything is kept of what it was spent on."""
    with suppress(OSError):
        if any(paths.work(root, key).iterdir()):
            paths.seconds(root, key).write_text(f"{seconds:.3f}", encoding="utf-8")


def _is_disk_full(error: BaseException | None) -> bool:
    """Whether a full disk is behind an error; libraries put it in words of their own."""
    words = tuple(os.strerror(number) for number in _FULL)
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if any(word in str(error) for word in words):
            return True
        error = error.__cause__ or error.__context__
    return False
