"""Rows of the results: blocks of arrays with the contract's columns, joined into one frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.compare.comparison import MIN_CLUSTERS, Comparison
from fairweight.auditing.compare.slots import Slots
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.result import (
    BOOLEAN_COLUMNS,
    INTEGER_COLUMNS,
    RESULT_COLUMNS,
    TEXT_COLUMNS,
)

if TYPE_CHECKING:
    import pandas as pd

Block: TypeAlias = dict[str, Any]  # column → array of the block's length


def block(
    c: Comparison,
    metric: str,
    slots: Slots,
    *,
    scope: str = "model",
    sized: NDArray[np.bool_] | None = None,
    **columns: Any,
) -> Block:
    """One metric's rows for the slots; columns that are not given stay empty.

    `sized` says which rows could be tested, where the status also tells of results.
    """
    size = len(slots)
    members = (c.n_baseline, c.n_compressed)
    if scope == "method" and c.has_method:  # parents without children take no part
        members = (int((c.unit_weights[0] > 0).sum()), int((c.unit_weights[1] > 0).sum()))
    made: Block = {
        "variant": np.full(size, c.variant, dtype=object),
        "metric": np.full(size, metric, dtype=object),
        "by": np.full(size, slots.by, dtype=object),
        "group": slots.group,
        "class": slots.cls,
        "task": np.full(size, c.task, dtype=object),
        "scope": np.full(size, scope, dtype=object),
        "n_seeds_baseline": np.full(size, float(members[0])),
        "n_seeds_compressed": np.full(size, float(members[1])),
        "kind": np.full(size, slots.kind, dtype=object),
        "outside": slots.outside,
    }
    for name, value in columns.items():
        array = np.asarray(value, dtype=object if name in TEXT_COLUMNS else float)
        made[name] = np.broadcast_to(array, (size,)).copy()
    made.setdefault("n_clusters", slots.clusters)
    by_size = np.broadcast_to(status(c, made.get("n"), made["n_clusters"]), (size,))
    made.setdefault("status", by_size.copy())
    # Who belongs to a family is decided on sizes and on what a metric needs, never on results.
    made["sized"] = np.asarray(made["status"] == "ok") if sized is None else sized
    return made


def status(c: Comparison, n: Floats | None, n_clusters: Floats | None) -> NDArray[np.object_]:
    """`ok`, or why a row must not be leaned on; decided on sizes, never on results."""
    if n is None:
        return np.array(["ok"], dtype=object)
    found = np.full(len(n), "ok", dtype=object)
    found[n < c.options.min_group] = f"small_group: n < {c.options.min_group}"
    found[n == 0] = "not_estimable: no examples"
    if n_clusters is not None and c.cube.unit_is_cluster:
        few = (n_clusters < MIN_CLUSTERS) & (n > 0)
        for i in np.flatnonzero(few):
            found[i] = f"not_estimable: {int(n_clusters[i])} clusters"
    return found


def frame(blocks: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """All blocks as one frame with exactly the contract's columns and fixed types."""
    import pandas as pd

    sizes = [len(b["variant"]) for b in blocks]
    columns: dict[str, Any] = {}
    for name in RESULT_COLUMNS:
        empty: Any = None if name in TEXT_COLUMNS else np.nan
        kind: Any = object if name in TEXT_COLUMNS else float
        parts = [
            np.asarray(b[name], dtype=kind) if name in b else np.full(size, empty, dtype=kind)
            for b, size in zip(blocks, sizes, strict=True)
        ]
        joined = np.concatenate(parts) if parts else np.zeros(0, dtype=kind)
        if name in INTEGER_COLUMNS:
            columns[name] = pd.array(joined, dtype="Int64")
        elif name in BOOLEAN_COLUMNS:
            known = [None if np.isnan(value) else bool(value) for value in joined]
            columns[name] = pd.array(known, dtype="boolean")
        elif name in TEXT_COLUMNS:
            columns[name] = pd.Series(joined, dtype=object)
        else:
            columns[name] = joined
    return pd.DataFrame(columns, columns=list(RESULT_COLUMNS))
