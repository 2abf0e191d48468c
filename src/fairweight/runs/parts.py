"""Count a large prediction data set in parts, in processes or on a cluster; cubes add."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from fairweight.auditing.counts.cube_file import write_cube
from fairweight.auditing.counts.group_by import count
from fairweight.base.memory import shared_out
from fairweight.errors import InputError
from fairweight.runs.executor import StageContext
from fairweight.runs.runner import run
from fairweight.runs.stage import Stage, key_of
from fairweight.runs.store import Store
from fairweight.tables.align import align
from fairweight.tables.canonical import canonical_sql
from fairweight.tables.connection import literal, memory_limit_mb, quote
from fairweight.tables.frames import check_names
from fairweight.tables.spec import TableSpec, sources_of

CUBE = "cube.parquet"


def count_part(
    spec: Mapping[str, Any], inputs: Mapping[str, Path], folder: Path, context: StageContext
) -> None:
    """A stage: the examples whose ids fall into one part, as a cube. Every file is read."""
    files = ", ".join(literal(name) for name in spec["files"])
    table = f"read_parquet([{files}], union_by_name=true)"
    tables = TableSpec.from_json(spec["tables"])
    id_column = tables.id
    limit = memory_limit_mb()
    config: dict[str, Any] = {} if limit is None else {"memory_limit": f"{limit}MB"}
    with duckdb.connect(":memory:", config=config) as connection:
        described = connection.execute(f"DESCRIBE FROM {table}").fetchall()
        kind = next((str(row[1]) for row in described if row[0] == id_column), "VARCHAR")
        # By canonical text, so that an id is in one part however it is written.
        rows = connection.sql(
            f"SELECT * FROM {table} WHERE hash({canonical_sql(quote(id_column), kind)}) "
            f"% {int(spec['parts'])} = {int(spec['part'])}"
        )
        if not rows.limit(1).fetchall():
            raise InputError(
                f"Part {spec['part'] + 1} of {spec['parts']} has no example; count in fewer parts "
                "(--parts)."
            )
        with align(replace(tables, sources=sources_of(rows))) as aligned:
            write_cube(
                count(aligned),
                folder / CUBE,
                groupings=aligned.groupings,
                baseline=aligned.baseline,
                key=spec["unit_key"],
            )


def count_in_parts(
    tables: TableSpec,
    *,
    parts: int,
    store: Path,
    unit_key: str = "",
    workers: int | None = None,
    ray: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Path]:
    """Cubes of all parts; together they are the cube of the whole.

    Examples are dealt out by a hash of their ids, so the rows of one example (of all models and
    tasks) are in one part, however the files are divided.

    Parameters
    ----------
    tables
        Its sources are Parquet files or globs of a long table. `groups` must be named, because
        what looks like a group could differ between parts.
    store
        A folder for the parts (on a cluster, a shared one); what is there is not counted again.
    workers, ray
        As for `fairweight.runs.runner.run`.
    """
    if tables.groups is None:
        raise InputError(
            "Counting in parts needs --groups, so that all parts have the same; name the group "
            "columns: --groups sex,age"
        )
    files: list[str] = []
    for word in (ref.word() for ref in tables.sources):
        found = [word] if Path(word).is_file() else sorted(glob(word, recursive=True))
        if not found:
            raise InputError(f"There is no file '{word}'; check the path.")
        for path in found:
            if Path(path).suffix != ".parquet":
                raise InputError(
                    f"'{path}' is no Parquet file; counting in parts reads Parquet only: leave "
                    "--parts out, or convert it."
                )
        files += [str(Path(path).resolve()) for path in found]
    for name in files:
        try:
            columns = pq.read_schema(name).names
        except (OSError, pa.ArrowException):
            raise InputError(
                f"'{name}' is not a complete Parquet file (cut off, or still being written); write "
                "or copy it again."
            ) from None
        check_names(columns, f"'{name}'")
        if tables.id not in columns:
            raise InputError(
                f"'{name}' has no column '{tables.id}', and parts are made by the examples' "
                "ids; name their column with --id, or leave --parts out."
            )
    held = [[name, Path(name).stat().st_size, Path(name).stat().st_mtime_ns] for name in files]
    shared = {"files": files, "tables": tables.to_json(), "parts": parts, "unit_key": unit_key}
    stages = []
    for part in range(parts):
        spec = {**shared, "part": part}
        key = key_of("count", {**spec, "held": held})
        function = f"{__name__}:{count_part.__name__}"
        stages.append(Stage(key, "count", function, spec, (), f"part {part + 1} of {parts}"))
    cubes = Store(store)
    cubes.forget_failures([stage.key for stage in stages])
    with shared_out(min(parts, workers or os.cpu_count() or 1)):
        outcome = run(
            stages,
            cubes,
            workers=workers,
            ray=ray,
            progress=lambda news: progress and progress("counting", news.finished, news.stages),
        )
    if outcome.stopped:
        raise KeyboardInterrupt
    for key in outcome.failed:
        last = str(cubes.failed()[key]["traceback"]).strip().splitlines()[-1]
        raise InputError(last.partition(": ")[2] or last)
    return [cubes.read(stage.key) / CUBE for stage in stages]
