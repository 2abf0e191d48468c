"""Classes in which the baseline makes no errors: CEV and SDE cannot use them, and must say so.

A class that goes from 0 errors to many must never vanish from the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairweight.auditing.compare.comparison import Comparison
from fairweight.auditing.compare.quantities import kept_by_baseline
from fairweight.auditing.compare.rates import rates
from fairweight.auditing.compare.rows import Block
from fairweight.auditing.metrics.registry import metric

RELATIVE = ("cev", "sde")
SHOWN = 10


@dataclass(frozen=True)
class LeftOut:
    """A class that relative changes leave out, with how its rates changed."""

    name: str
    fnr: float
    fpr: float
    harmed: bool  # a rate rose, significantly


def without_baseline_errors(c: Comparison) -> list[LeftOut]:
    """Classes whose baseline FPR or FNR is 0, with shifts and tests as everywhere else."""
    if c.options.zero_baseline != "drop":
        return []
    missed = rates(c, metric("fnr"), "class")
    false = rates(c, metric("fpr"), "class")
    if missed is None or false is None:
        return []
    dropped = (missed.n > 0) & (false.n > 0) & ~kept_by_baseline(c)
    alpha = c.options.alpha
    return [
        LeftOut(
            c.classes[k],
            float(missed.shift[k]),
            float(false.shift[k]),
            any(bool(e.shift[k] > 0 and e.p_value[k] < alpha) for e in (missed, false)),
        )
        for k in np.flatnonzero(dropped)
    ]


def left_out_notes(c: Comparison, found: Sequence[LeftOut]) -> list[str]:
    """What was left out, in one sentence."""
    if not found:
        return []
    changes = ", ".join(
        f"'{k.name}' (FNR {100 * k.fnr:+.2f}, FPR {100 * k.fpr:+.2f} points)" for k in found[:SHOWN]
    )
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return [
        f"CEV and SDE of {c.variant} leave out classes in which the baseline makes no false "
        f"positives or no false negatives: {changes}{more}."
    ]


def refused_if_harmed(rows: Block, found: Sequence[LeftOut]) -> Block:
    """CEV and SDE without a number where a class that they leave out was harmed."""
    harmed = [k.name for k in found if k.harmed]
    if rows["metric"][0] not in RELATIVE or not harmed:
        return rows
    shown = ", ".join(harmed[:5]) + (f" and {len(harmed) - 5} more" if len(harmed) > 5 else "")
    size = len(rows["status"])
    refused = {**rows, "status": np.full(size, f"not_estimable: zero baseline in {shown}", object)}
    for name in ("ci_low", "ci_high", "p_value", "p_adjusted", "debiased"):
        refused[name] = np.full(size, np.nan)
    return refused
