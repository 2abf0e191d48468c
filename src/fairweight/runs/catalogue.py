"""All finished stages as one table, read from their own manifests.

Manifests that were read before are cached in `catalogue.parquet` beside the stages, which may be
deleted at any time. Only new ones are read, and DuckDB takes them apart.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fairweight.base.files import atomic_file
from fairweight.errors import InputError, OutputError
from fairweight.runs import store_layout
from fairweight.runs.store import Store
from fairweight.tables.connection import Workspace

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


def catalogue(store: Store) -> pd.DataFrame:
    """One row for each finished stage, the oldest first.

    Stages with one input have its `dataset`, `model`, `method`, `sparsity` and `seed` where they
    have none of their own. `finished` is in UTC; `inputs` are keys with commas between them;
    `spec` and `versions` are JSON. Stages whose manifest cannot be read are skipped.
    """
    file = store.root / store_layout.CATALOGUE
    rows = _rows([])
    # What was read before counts if this version wrote it.
    with suppress(OSError, pa.ArrowException):
        cached = pq.read_table(file)
        if cached.schema.equals(rows.schema):
            rows = cached
    stamps = store_layout.stamps(store.root)
    before = dict(zip(rows["key"].to_pylist(), rows["stamp"].to_pylist(), strict=True))
    same = [stamps.get(key) == stamp for key, stamp in before.items()]
    new = [key for key, stamp in stamps.items() if before.get(key) != stamp]
    if new or not all(same):
        tables = [rows.filter(pa.array(same, pa.bool_()))]
        for start in range(0, len(new), _AT_ONCE):
            lines = []
            for key in new[start : start + _AT_ONCE]:
                with suppress(OSError, UnicodeDecodeError):  # removed just now, or damaged
                    text = store_layout.manifest(store.root, key).read_text(encoding="utf-8")
                    lines.append({"name": key, "stamp": stamps[key], "line": text})
            tables.append(_rows(lines))
        rows = pa.concat_tables(tables)
        # A store that cannot be written can be read all the same.
        with suppress(OutputError), atomic_file(file, "wb") as stream:
            pq.write_table(rows, stream)
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


def _rows(lines: list[dict[str, Any]]) -> pa.Table:
    """The columns of manifests; lines that are not what was written are skipped."""
    columns = ", ".join(
        f"TRY_CAST({sql} AS {kind}) AS {name}" for name, (kind, sql) in _READ.items()
    )
    schema = pa.schema([("name", pa.string()), ("stamp", pa.int64()), ("line", pa.string())])
    workspace = Workspace()
    try:
        workspace.connection.register("lines", pa.Table.from_pylist(lines, schema))
        return workspace.connection.sql(
            f"SELECT {columns}, stamp FROM lines WHERE json_valid(line) AND line ->> '$.key' = name"
        ).to_arrow_table()
    finally:
        workspace.close()


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
