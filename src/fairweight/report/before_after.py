"""A metric before and after, one row per group: the table that people ask for first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from fairweight.auditing.metrics import metric as registered
from fairweight.auditing.schema import Status
from fairweight.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

By = Literal["group", "class", "overall"]
NO_CHANGE = "no clear change"
# What a change is called: for the worse, for the better; where neither is better, up and down.
WORDS = {"higher": ("loses", "gains"), "lower": ("loses", "gains"), "none": ("falls", "rises")}


def before_after(
    result: AuditResult, metric: str, *, by: By = "group", variant: str | None = None
) -> pd.DataFrame:
    """One row per group: size, the metric before and after, its shift with limits, a finding.

    Limits are simultaneous over the groups where the audit has such (accuracy and what was declared
    beforehand), else of each group alone, and the finding follows from them.
    """
    rows = result.results
    rows = rows[(rows["scope"] == "model") & (rows["metric"] == metric)]
    if not len(rows):
        held = result.results
        known = held[(held["scope"] == "model") & held["shift"].notna()]["metric"]
        raise UnknownNameError("In this audit, the metric", metric, dict.fromkeys(known))
    if not rows["shift"].notna().any():
        raise InputError(
            f"'{metric}' has no value before and after in this audit: it compares the two models "
            "itself, or it cannot be estimated; see audit.results."
        )
    if variant is not None and variant not in result.variants:
        raise UnknownNameError("The variant", variant, result.variants)
    chosen = rows[rows["by"] == by]
    if not len(chosen):
        others = [held for held in ("group", "class", "overall") if (rows["by"] == held).any()]
        remedy = f"use by={others[0]!r}" if others else "see audit.results"
        why = (
            "this audit has no groups (sensitive_features=, --groups)"
            if by == "group" and not result.groupings
            else f"'{metric}' is not measured by {by}"
        )
        raise InputError(f"There is nothing to compare: {why}; {remedy}.")
    if variant is not None:
        chosen = chosen[chosen["variant"] == variant]
    better = registered(metric).better
    simultaneous = chosen["sim_low"].notna() | chosen["sim_high"].notna()
    low = chosen["sim_low"].where(simultaneous, chosen["ci_low"])
    high = chosen["sim_high"].where(simultaneous, chosen["ci_high"])
    name = "group" if by == "overall" else by
    table = pd.DataFrame(
        {
            "variant": chosen["variant"],
            "task": chosen["task"],
            name: "overall" if by == "overall" else chosen[by],
            "n": chosen["n"],
            "baseline": chosen["baseline"],
            "compressed": chosen["compressed"],
            "shift": chosen["shift"],
            "low": low,
            "high": high,
        }
    )
    alpha = float(result.provenance.options["alpha"])
    table["finding"] = [
        _finding(row, lowest, highest, better, alpha)
        for row, lowest, highest in zip(chosen.to_dict("records"), low, high, strict=True)
    ]
    # Of one variant and one task, which need not be said.
    spare = [c for c in ("variant", "task") if table[c].nunique(dropna=False) == 1]
    return table.drop(columns=spare).reset_index(drop=True)


def _finding(row: dict[Any, Any], low: float, high: float, better: str, alpha: float) -> str:
    status = Status.of(row["status"])
    if not status.ok:
        small = status.kind == "small_group"
        return "too small to test" if small else f"cannot be estimated: {status.reason}"
    if not (low == low or high == high):
        return "no limits"
    worse, improved = WORDS.get(better, WORDS["none"])
    up, down = (worse, improved) if better == "lower" else (improved, worse)
    said = down if high < 0 else up if low > 0 else NO_CHANGE
    # The part of a change that is more than everybody else's, after correction.
    excess, p = row["excess_shift"], row["excess_p_adjusted"]
    if better in ("higher", "lower") and p == p and p is not None and p <= alpha:
        sign = -1 if better == "lower" else 1
        harmed, fell = sign * excess < 0, sign * row["shift"] < 0
        if harmed and fell:
            return f"{worse} more than the rest"
        if harmed and said == improved:
            return f"{improved} less than the rest"
    return said
