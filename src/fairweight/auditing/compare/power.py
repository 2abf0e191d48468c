"""What could have been found: the least detectable shift of every confirmatory row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.rates import RateRows


def power_table(c: Comparison, confirmatory: Sequence[RateRows]) -> list[dict[str, Any]]:
    """Least detectable shift and examples needed, from sizes and the variant's pooled discordance.

    Never from a row's own result: power computed from what was observed only restates p.
    """
    from fairweight.auditing.intervals.power import examples_needed, min_detectable_shift

    pooled = [r.estimate.discordance[0] for r in confirmatory if r.estimate.slots.by == "overall"]
    rows: list[dict[str, Any]] = []
    if not pooled or not np.isfinite(pooled[0]):
        return rows
    for table in confirmatory:
        e, b = table.estimate, table.block
        m = np.nanmax(b["n_family"]) if np.isfinite(b["n_family"]).any() else 1.0
        level = c.options.alpha / m
        least = min_detectable_shift(e.n, pooled[0], level, design_effect=e.design_effect)
        needed = examples_needed(c.options.margin, pooled[0], level, design_effect=e.design_effect)
        needed = np.broadcast_to(needed, e.n.shape)
        for i in range(len(e.n)):
            rows.append(
                {
                    "variant": c.variant,
                    "task": c.task,
                    "metric": table.metric,
                    "by": e.slots.by,
                    "group": e.slots.group[i],
                    "class": e.slots.cls[i],
                    "n": int(e.n[i]),
                    "discordance": float(pooled[0]),
                    "n_family": int(m),
                    "min_detectable_shift": float(least[i]),
                    "reference_shift": c.options.margin,
                    "n_needed": float(needed[i]),
                    "largest_loss": float(b["largest_loss"][i]),
                    "status": str(b["status"][i]),
                }
            )
    return rows
