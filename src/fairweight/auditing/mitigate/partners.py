"""Which dense model answers for which compressed one, and what each of them costs."""

from __future__ import annotations

from math import isnan, nan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.compare.pairing import pair_members
from fairweight.tables.canonical import canonical
from fairweight.tables.parents import parents

if TYPE_CHECKING:
    import pandas as pd


def dense_partners(answers: Answers, variant: str) -> NDArray[np.intp]:
    """For every member of a variant, the row of its own dense model; the first where unknown."""
    first, second = answers.rows(answers.baseline), answers.rows(variant)
    if variant == answers.baseline:
        return np.arange(second.start, second.stop)
    pairing = pair_members(
        answers.members[first], answers.members[second], parents(answers.variants_table)
    )
    return np.asarray(np.maximum(pairing.parent, 0) + first.start)


def item_latency(table: pd.DataFrame | None, variant: str) -> float:
    """Milliseconds per item of a variant, the mean over its members; NaN where not measured.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"variant": ["a", "a"], "latency_ms": [8.0, 12.0], "batch_size": 4})
    >>> item_latency(table, "a")
    2.5
    """
    if table is None or "latency_ms" not in table:
        return nan
    own = table[table["variant"].map(canonical) == variant]
    batch = own["batch_size"].fillna(1) if "batch_size" in own else 1
    latency = (own["latency_ms"] / batch).mean()
    return float(latency) if len(own) and not isnan(latency) else nan
