"""Count a large prediction data set in parts, in processes or on a cluster; cubes add."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import Any

from fairweight.errors import InputError
from fairweight.runs.count_stage import CUBE
from fairweight.runs.key import key_of
from fairweight.runs.outcome import News
from fairweight.runs.runner import run
from fairweight.runs.stage import Stage
from fairweight.runs.store import Store

FUNCTION = "fairweight.runs.count_stage:run"


def count_in_parts(
    sources: Sequence[str],
    options: Mapping[str, Any],
    *,
    parts: int,
    store: Path,
    unit_key: str = "",
    workers: int | None = None,
    ray: str | None = None,
    progress: Any = None,
) -> list[Path]:
    """Cubes of all parts; together they are the cube of the whole.

    Examples are dealt out by a hash of their ids, so the rows of one example (of all models and
    tasks) are in one part, however the files are divided.

    Parameters
    ----------
    sources
        Parquet files or globs of a long table.
    options
        Keyword arguments of `fairweight.tables.align.align`; `groups` must be named, because what
        looks like a group could differ between parts.
    store
        A folder for the parts (on a cluster, a shared one); what is there is not counted again.
    workers, ray
        As for `fairweight.runs.runner.run`.
    """
    if options.get("groups") is None:
        raise InputError(
            "Counting in parts needs --groups, so that all parts have the same; name the group "
            "columns: --groups sex,age"
        )
    files = [str(Path(path).resolve()) for name in sources for path in _files(name)]
    for name in files:
        if options["id"] not in _columns(name):
            raise InputError(
                f"'{name}' has no column '{options['id']}', and parts are made by the examples' "
                "ids; name their column with --id, or leave --parts out."
            )
    held = [[name, Path(name).stat().st_size, Path(name).stat().st_mtime_ns] for name in files]
    shared = {"files": files, "options": dict(options), "parts": parts, "unit_key": unit_key}
    stages = []
    for part in range(parts):
        spec = {**shared, "part": part}
        key = key_of("count", {**spec, "held": held})
        stages.append(Stage(key, "count", FUNCTION, spec, (), f"part {part + 1} of {parts}"))
    room = Store(store)
    room.forget_failures([stage.key for stage in stages])

    def told(news: News) -> None:
        if progress is not None:
            progress("counting", news.finished, news.stages)

    outcome = run(stages, room, workers=workers, ray=ray, progress=told)
    if outcome.stopped:
        raise KeyboardInterrupt
    for key in outcome.failed:
        last = str(room.failed()[key]["traceback"]).strip().splitlines()[-1]
        raise InputError(last.partition(": ")[2] or last)
    return [room.read(stage.key) / CUBE for stage in stages]


def _columns(name: str) -> list[str]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names: list[str] = pq.read_schema(name).names
    except (OSError, pa.ArrowException):
        raise InputError(
            f"'{name}' is not a complete Parquet file (cut off, or still being written); write or "
            "copy it again."
        ) from None
    return names


def _files(name: str) -> list[str]:
    found = [name] if Path(name).is_file() else sorted(glob(name, recursive=True))
    if not found:
        raise InputError(f"There is no file '{name}'; check the path.")
    others = [path for path in found if Path(path).suffix != ".parquet"]
    if others:
        raise InputError(
            f"'{others[0]}' is no Parquet file; counting in parts reads Parquet only: leave "
            "--parts out, or convert it."
        )
    return found
