"""A verdict in words, in the units that the policy uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.report.machine import records
from fairweight.report.numbers import count, number, shown, text

if TYPE_CHECKING:
    from fairweight.auditing.decide.gate import Verdict

ORDER = {"fail": 0, "cannot tell": 1, "pass": 2}


def endpoints(verdict: Verdict, variant: str) -> list[dict[str, Any]]:
    """The rows of one variant, what is wrong first."""
    rows = verdict.rows[verdict.rows["variant"] == variant]
    return sorted(records(rows), key=lambda row: ORDER[row["decision"]])


def headline(verdict: Verdict) -> str:
    """The outcome, over how many variants."""
    tried = len(verdict.variants)
    which = f"{verdict.require} of {tried} variants must pass" if tried > 1 else "1 variant tried"
    return f"{verdict.outcome.upper()} ({which})"


def passing(verdict: Verdict) -> str | None:
    """Which of several variants pass; None where there is one, whose outcome is the headline's."""
    if len(verdict.variants) < 2:
        return None
    names = [shown(name) for name, outcome in verdict.variants.items() if outcome == "pass"]
    return f"Passing: {', '.join(names)}." if names else "Passing: none."


def standing(verdict: Verdict, variant: str) -> str:
    """How a variant fares: its outcome and the number of endpoints behind it."""
    rows = verdict.rows[verdict.rows["variant"] == variant]
    counts = [
        f"{count(int((rows['decision'] == decision).sum()))} {decision}"
        for decision in ("pass", "fail", "cannot tell")
    ]
    equivalent = int(rows["equivalent"].sum())
    alike = f"; {count(equivalent)} equivalent" if equivalent else ""
    ends = "endpoint" if len(rows) == 1 else "endpoints"
    return (
        f"{shown(variant)}: {verdict.variants[variant]} "
        f"({count(len(rows))} {ends}: {', '.join(counts)}{alike})"
    )


def how_to_read(verdict: Verdict) -> str:
    """What the numbers of a verdict are."""
    words = "Intervals: 90 %, one-sided error 5 %; units as in the policy."
    if verdict.rows["equivalent"].any():
        words += " Equivalent: the interval lies within ± margin."
    return words


def endpoint_name(row: dict[str, Any]) -> str:
    """What an endpoint speaks of and what is asked of it.

    >>> row = {"metric": "recall", "by": "class", "group": None, "class": "3", "task": None}
    >>> endpoint_name(row | {"criterion": "margin", "limit": 0.02})
    'recall of class 3, margin 0.02'
    """
    group, cls, task = (text(row[key]) for key in ("group", "class", "task"))
    of = f"class {shown(cls)}" if cls is not None else shown(group) if group else "overall"
    joint = " " if of == "overall" else " of "
    part = f" (task {shown(task)})" if task is not None else ""
    return f"{row['metric']}{joint}{of}{part}, {row['criterion']} {row['limit']:g}"


def interval(row: dict[str, Any]) -> str:
    """The estimate with the 90 % interval that decides."""
    if row["low"] is None or row["high"] is None:
        return number(row["estimate"])
    return f"{number(row['estimate'])} [{number(row['low'])}, {number(row['high'])}]"
