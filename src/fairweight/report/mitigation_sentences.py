"""What a mitigation did, in plain sentences: what it was for, what got better, who got worse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.report.numbers import count, missing, real, shift_of, shown, text, value_of
from fairweight.report.rows import records

if TYPE_CHECKING:
    import pandas as pd

SOME = 4
SPOKEN = ("accuracy", "recall", "bias_amplification", "tcb")  # the others say the same twice
ALL_DEFERRED = "+cascade-1"
NO_CASCADE = "every input goes to the dense model, so this cascade is no help."
# What each kind of mitigation is for; the first metric that a table has is spoken of.
AIMS: dict[str, tuple[str, ...]] = {
    "thresholds": ("tcb", "recall"),
    "overrides": ("bias_amplification", "accuracy"),
    "cascade": ("worst_group", "accuracy"),
}
_NAMES = {
    "tcb": "threshold bias (TCB, 1 is best)",
    "bias_amplification": "bias amplification (0 is best)",
    "worst_case_bias_amplification": "worst-case bias amplification",
    "worst_group": "accuracy of the worst group",
    "group_gap": "gap between groups",
    "class_gap": "gap between classes",
    "equalized_odds_difference": "equalised-odds difference",
    "fpr": "false positive rate",
    "fnr": "false negative rate",
}


def mitigation_sentences(mitigation: pd.DataFrame, kind: str) -> list[str]:
    """For each new variant: did it help against its origin, and who got worse?

    Parameters
    ----------
    mitigation
        The table of that name.
    kind
        thresholds, overrides or cascade.
    """
    said = []
    for variant in dict.fromkeys(mitigation["variant"]):
        own = mitigation[mitigation["variant"] == variant]
        origins = list(dict.fromkeys(own["against"]))
        changes = own[own["against"] == origins[0]]
        head = f"{shown(variant)} against {shown(origins[0])}: "
        everything = kind == "cascade" and str(variant).endswith(ALL_DEFERRED)
        said.append(head + (NO_CASCADE if everything else _helped(changes, kind)))
        said.append(head + _worse(changes))
        if len(origins) > 1:
            left = own[own["against"] == origins[1]]
            said.append(f"{shown(variant)} against {shown(origins[1])}: {_worse(left)}")
    return said


def _helped(changes: pd.DataFrame, kind: str) -> str:
    present = changes[changes["shift"].notna()]
    metric = next((m for m in AIMS[kind] if (present["metric"] == m).any()), None)
    if metric is None:
        return "whether it helps cannot be told, what it is for is not estimable here."
    aim = present[present["metric"] == metric]
    whole = aim[aim["by"] == "overall"]
    rows = records(aim if whole.empty else whole)
    better = [row for row in rows if row["verdict"] == "better"]
    worse = [row for row in rows if row["verdict"] == "worse"]
    name = _NAMES.get(metric, metric.replace("_", " "))
    if better and not worse:
        return f"it helps, {name} moves the right way in {_part(better, rows)}: {_some(better)}."
    if better:
        return (
            f"it helps some, {name} moves the right way in {_part(better, rows)} ({_some(better)}) "
            f"and the wrong way in {_part(worse, rows)} ({_some(worse)})."
        )
    if worse:
        return (
            f"it does not help, {name} moves the wrong way in {_part(worse, rows)}: {_some(worse)}."
        )
    return (
        f"it is not shown to help, {name} is nowhere shown to be better on other examples too: "
        f"{_some(rows)}."
    )


def _worse(changes: pd.DataFrame) -> str:
    """Who lost: groups and classes first, then everybody."""
    changes = changes[changes["metric"].isin(SPOKEN)]
    rows = records(changes[changes["verdict"] == "worse"])
    parts = [row for row in rows if row["by"] in ("group", "class")]
    n = int(changes["by"].isin(["group", "class"]).sum())
    comparisons = "comparison" if n == 1 else "comparisons"
    if not parts:
        told = f"no group or class is shown to be worse in {count(n)} {comparisons}"
    else:
        told = f"worse in {count(len(parts))} of {count(n)} {comparisons} by group and class, " + (
            _some(parts)
        )
    whole = [row for row in rows if row["by"] == "overall"]
    return told + (f"; overall worse: {_some(whole)}" if whole else "") + "."


def _part(some: list[dict[str, Any]], rows: list[dict[str, Any]]) -> str:
    return f"{count(len(some))} of {count(len(rows))} rows"


def _some(rows: list[dict[str, Any]]) -> str:
    ordered = sorted(rows, key=lambda row: -abs(float(row["shift"])))
    told = "; ".join(_row(row) for row in ordered[:SOME])
    left = len(ordered) - SOME
    return told + (f" and {count(left)} more" if left > 0 else "")


def _row(row: dict[str, Any]) -> str:
    metric = str(row["metric"])
    low, high = (row["low"], row["high"])
    if not missing(row["sim_low"]):
        low, high = row["sim_low"], row["sim_high"]
    where = [shown(part) for part in (text(row["group"]), text(row["class"])) if part is not None]
    task = text(row["task"])
    place = ", ".join([*([shown(task)] if task is not None else []), *where]) or "all"
    name = metric.replace("_", " ") if metric != "tcb" else "TCB"
    change = shift_of(metric, float(row["shift"]), real(low), real(high))
    return (
        f"{place}: {name} {value_of(metric, float(row['before']))} → "
        f"{value_of(metric, float(row['after']))} ({change})"
    )
