"""All finished stages as one table, read from their own manifests.

Manifests that were read before are kept in `catalogue.parquet` beside the stages, which may be
deleted at any time. Only new ones are read, and DuckDB takes them apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fairweight.base.files import atomic_file
from fairweight.errors import InputError, OutputError
from fairweight.runs import store_layout
from fairweight.runs.plan import Listed
from fairweight.runs.store import Store
from fairweight.tables.connection import Workspace

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# What a column is called, its type, and where it is in a manifest.
_READ = {
    "key": ("VARCHAR", "line ->> '$.key'"),
    "kind": ("VARCHAR", "line ->> '$.kind'"),
    "label": ("VARCHAR", "line ->> '$.label'"),
    "dataset": ("VARCHAR", "line ->> '$.spec.data.name'"),
    "model": ("VARCHAR", "line ->> '$.spec.model.architecture'"),
    "method": (
        "VARCHAR",
        "coalesce(line ->> '$.spec.method.method', line ->> '$.spec.pruning.method')",
    ),
    "sparsity": (
        "DOUBLE",
        "coalesce(line ->> '$.spec.method.sparsity', line ->> '$.spec.pruning.sparsity')",
    ),
    "variant": ("VARCHAR", "line ->> '$.spec.variant'"),
    "seed": (
        "BIGINT",
        "coalesce(line ->> '$.spec.training.seed', line ->> '$.spec.finetune.seed')",
    ),
    "seconds": ("DOUBLE", "line ->> '$.seconds'"),
    "finished": ("TIMESTAMP", "line ->> '$.finished'"),
    "size_bytes": ("BIGINT", "list_sum(TRY_CAST(line -> '$.files.*[0]' AS BIGINT[]))"),
    "inputs": ("VARCHAR", "array_to_string(TRY_CAST(line -> '$.inputs' AS VARCHAR[]), ',')"),
    "spec": ("VARCHAR", "line ->> '$.spec'"),
    "versions": ("VARCHAR", "line ->> '$.versions'"),
}
COLUMNS = tuple(_READ)
# A model that was made of another one is of the same data set and architecture, and so on.
_INHERITED = ("dataset", "model", "method", "sparsity", "seed")
_AT_ONCE = 20_000  # manifests in memory

_Batch: TypeAlias = list[tuple[str, int, str]]  # key, stamp, line


def catalogue(store: Store) -> pd.DataFrame:
    """One row for each finished stage, the oldest first.

    Stages with one input have its `dataset`, `model`, `method`, `sparsity` and `seed` where they
    have none of their own. `finished` is in UTC; `inputs` are keys with commas between them;
    `spec` and `versions` are JSON. Stages whose manifest cannot be read are left out.
    """
    return _inherited(_refreshed(store.root))


def export(store: Store, path: str | Path) -> None:
    """Write the catalogue as `.parquet` or `.csv`."""
    target = Path(path)
    kind = target.suffix.lower()
    if kind not in (".parquet", ".csv"):
        raise InputError(
            f"The catalogue cannot be written to '{path}'; end it in .parquet or .csv."
        )
    frame = catalogue(store)
    with atomic_file(target, "wb") as stream:
        if kind == ".csv":
            frame.to_csv(stream, index=False, lineterminator="\n")
        else:
            frame.to_parquet(stream, index=False)


def _refreshed(root: Path) -> pa.Table:
    """Rows of all stages: those that were read before and are the same, and the others."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    there = store_layout.stamps(root)
    kept = _kept(root)
    before = dict(zip(kept["key"].to_pylist(), kept["stamp"].to_pylist(), strict=True))
    new = [key for key, stamp in there.items() if before.get(key) != stamp]
    same = [there.get(key) == stamp for key, stamp in before.items()]
    if not new and all(same):
        return kept
    still = kept.filter(pa.array(same, pa.bool_()))
    rows = pa.concat_tables([still, *_taken_apart(_manifests(root, new, there))])
    # A store that cannot be written can be read all the same.
    with suppress(OutputError), atomic_file(store_layout.catalogue(root), "wb") as stream:
        pq.write_table(rows, stream)
    return rows


def _kept(root: Path) -> pa.Table:
    """What was read before; nothing if it is not there, or was written by another version."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    nothing = next(_taken_apart([[]]))
    with suppress(OSError, pa.ArrowException):
        table = pq.read_table(store_layout.catalogue(root))
        if table.schema.equals(nothing.schema):
            return table
    return nothing


def _manifests(root: Path, keys: Sequence[str], stamps: Mapping[str, int]) -> Iterator[_Batch]:
    ahead = iter(keys)
    while batch := list(islice(ahead, _AT_ONCE)):
        lines = []
        for key in batch:
            with suppress(OSError, UnicodeDecodeError):  # removed just now, or damaged
                text = store_layout.manifest(root, key).read_text(encoding="utf-8")
                lines.append((key, stamps[key], text))
        yield lines


def _taken_apart(batches: Iterable[_Batch]) -> Iterator[pa.Table]:
    """A table of the columns for each batch; lines that are not what was written are left out."""
    import pyarrow as pa

    columns = ", ".join(
        f"TRY_CAST({sql} AS {kind}) AS {name}" for name, (kind, sql) in _READ.items()
    )
    schema = pa.schema([("name", pa.string()), ("stamp", pa.int64()), ("line", pa.string())])
    workspace = Workspace()
    try:
        for batch in batches:
            rows = [dict(zip(schema.names, row, strict=True)) for row in batch]
            workspace.connection.register("lines", pa.Table.from_pylist(rows, schema))
            yield workspace.connection.sql(
                f"SELECT {columns}, stamp FROM lines "
                "WHERE json_valid(line) AND line ->> '$.key' = name"
            ).to_arrow_table()
    finally:
        workspace.close()


def _inherited(rows: pa.Table) -> pd.DataFrame:
    """The rows in order, with what stages have from their one input."""
    import numpy as np
    import pandas as pd

    frame: pd.DataFrame = rows.to_pandas().astype({"seed": "Int64"})
    frame = frame.sort_values(["finished", "key"], kind="stable", ignore_index=True)
    # Where the one input of each stage is; -1 for none, several, or one that is not there.
    above = pd.Index(frame["key"]).get_indexer(pd.Index(frame["inputs"]))
    for name in _INHERITED:
        empty = frame[name].isna().to_numpy()
        source = np.arange(len(frame))
        while (seeking := empty[source] & (source >= 0)).any():
            source[seeking] = above[source[seeking]]
        frame[name] = frame[name].array.take(source, allow_fill=True)
    return frame[list(COLUMNS)]


# How far a study is: counts by kind, and the time that is left.


@dataclass(frozen=True)
class StudyProgress:
    """Stages of a study by what became of them; `left` are neither done, running nor failed."""

    done: Counter[str]
    running: Counter[str]
    failed: Counter[str]
    left: Counter[str]
    seconds_left: float  # of one core, as estimated; 0 where nothing was estimated yet

    @property
    def total(self) -> int:
        return sum(part.total() for part in (self.done, self.running, self.failed, self.left))

    @property
    def finished(self) -> bool:
        return self.done.total() == self.total


def status(stages: Listed, store: Store) -> StudyProgress:
    """Look at the store: a few listings, however many stages there are."""
    done, running, failed = store.done(), store.running(), store.failed()
    found: dict[str, Counter[str]] = {n: Counter() for n in ("done", "running", "failed", "left")}
    seconds = 0.0
    for key, (kind, _, work) in stages.items():
        if key in done:
            found["done"][kind] += 1
            continue
        seconds += 0.0 if key in failed else work
        which = "running" if key in running else "failed" if key in failed else "left"
        found[which][kind] += 1
    return StudyProgress(**found, seconds_left=seconds)
