"""Every member's own numbers, read off the blocks of all comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairweight.auditing.compare.rows import Block
from fairweight.auditing.counts.cube import CubeMember

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("variant", "seed", "task", "metric", "by", "group", "class", "n", "value")
KEYS = ("task", "metric", "by", "group", "class", "n")


def per_seed(
    compared: Iterable[tuple[Sequence[CubeMember], Sequence[Block]]], baseline: str
) -> pd.DataFrame:
    """One row per member and row of the results; the baseline's members once.

    Comparisons (flips, CEV) have a value for every compressed member: against its own partner, or
    against the baseline's mean rates.
    """
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    seen: set[tuple[Any, ...]] = set()
    for members, blocks in compared:
        for b in blocks:
            values = b.get("members")
            if values is None:
                continue
            key = tuple(b[name][0] for name in ("task", "metric", "kind"))
            known, size = (key in seen), len(b["metric"])
            seen.add(key)
            for m, member in enumerate(members):
                if np.isnan(values[:, m]).all() or (known and member.variant == baseline):
                    continue
                columns["variant"].append(np.full(size, member.variant, dtype=object))
                columns["seed"].append(np.full(size, member.seed, dtype=object))
                for name in KEYS:
                    columns[name].append(b[name])
                columns["value"].append(values[:, m])
    made = {
        name: np.concatenate(parts) if parts else np.zeros(0, dtype=object)
        for name, parts in columns.items()
    }
    return pd.DataFrame(made, columns=list(COLUMNS)).astype({"n": "Int64", "value": float})
