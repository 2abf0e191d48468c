"""Limits for the gate: one-sided, at every level that Holm's steps may ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairweight.auditing.compare.estimate import RateEstimate
from fairweight.auditing.compare.rows import Block
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.result import BOUND_COLUMNS, DIVISORS, GATE_ALPHA

if TYPE_CHECKING:
    import pandas as pd

MANY_ROWS = 2_000  # of more rows only some levels are computed
FEW_DIVISORS = (1, 50, 1000)
LEVELS: Floats = np.array([2 * GATE_ALPHA / j for j in DIVISORS])  # two-sided, for limits
KEYS = ("variant", "task", "metric", "by", "kind", "group", "class", "n")


def rate_bounds(e: RateEstimate) -> dict[str, Floats]:
    """Limits of shift and compressed value, (rows, levels, 2).

    Where only some levels are computed, the next wider limits stand for those between: a gate
    then fails later, never sooner.
    """
    divisors = DIVISORS if len(e.n) <= MANY_ROWS else FEW_DIVISORS
    levels = np.array([[2 * GATE_ALPHA / j] for j in divisors])
    use = np.searchsorted(divisors, DIVISORS)
    made = {}
    for name, limits in (("shift", e.limits), ("value", e.compressed_limits)):
        low, high = limits(levels)
        made[f"bounds_{name}"] = np.stack([low[use].T, high[use].T], axis=-1)
    return made


def bounds_frame(blocks: Sequence[Block]) -> pd.DataFrame:
    """All limits that the blocks carry as one frame with the contract's columns."""
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in BOUND_COLUMNS}
    for b in blocks:
        size = len(b["metric"])
        for quantity, estimate in (("shift", "shift"), ("value", "compressed")):
            limits = b.get(f"bounds_{quantity}")
            if limits is None or b["scope"][0] != "model":
                continue
            for name in KEYS:
                columns[name].append(b[name])
            columns["status"].append(_status(b, quantity))
            columns["quantity"].append(np.full(size, quantity, dtype=object))
            columns["estimate"].append(b.get(estimate, np.full(size, np.nan)))
            for i, j in enumerate(DIVISORS):
                columns[f"low_{j}"].append(limits[:, i, 0])
                columns[f"high_{j}"].append(limits[:, i, 1])
    if not columns["metric"]:
        return pd.DataFrame(columns=list(BOUND_COLUMNS))
    made = pd.DataFrame({name: np.concatenate(parts) for name, parts in columns.items()})
    return made.astype({"n": "Int64"})


def _status(b: Block, quantity: str) -> Any:
    """A row's status; what its limits are instead of an interval is said here alone."""
    state = b["status"].copy()
    for i, how in enumerate(b.get("interval", ())):
        if state[i] == "ok" and isinstance(how, str) and how.startswith("none"):
            state[i] = f"not_estimable: {how}"
    if quantity == "value" and "value_known" in b:
        state[b["value_known"]] = "ok"  # whatever the shift lacks
    for i, how in enumerate(b.get("bound_status", ()) if quantity == "shift" else ()):
        if how is not None:  # a bound of the shift
            state[i] = how
    return state
