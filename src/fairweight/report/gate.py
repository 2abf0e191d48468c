"""A verdict in words: one deciding bound per row on a terminal, intervals elsewhere."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fairweight.auditing.metrics import metric
from fairweight.auditing.result import GATE_ALPHA
from fairweight.auditing.table_files import plain_records
from fairweight.base.wording import counted, real, shown, text
from fairweight.report.numbers import count, is_share, number, percent, shift_of, value_interval

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.specs.policy import Policy

OF_VARIANT = "variant"  # a row about the variants table, not about predictions
ORDER = {"fail": 0, "cannot tell": 1, "pass": 2}


def endpoints(verdict: Verdict, variant: str) -> list[dict[str, Any]]:
    """The rows of one variant, what is wrong first."""
    rows = verdict.rows[verdict.rows["variant"] == variant]
    return sorted(plain_records(rows), key=lambda row: ORDER[row["decision"]])


def headline(verdict: Verdict) -> str:
    """The outcome, over how many variants."""
    tried = len(verdict.variants)
    which = f"{verdict.require} of {tried} variants must pass" if tried > 1 else "1 variant tried"
    aside = (
        ("not judged, excluded by the policy", verdict.excluded),
        ("not judged, too small", verdict.skipped),
    )
    parts = [which, *(f"{what}: {_listed(names)}" for what, names in aside if names)]
    return f"{verdict.outcome.upper()} ({'; '.join(parts)})"


NAMED = 8  # groups that the first line names


def _listed(names: Sequence[str]) -> str:
    more = f" and {count(len(names) - NAMED)} more" if len(names) > NAMED else ""
    return ", ".join(map(shown, names[:NAMED])) + more


def passing(verdict: Verdict) -> str | None:
    """Which of several variants pass; None where there is one, whose outcome is the headline's."""
    if len(verdict.variants) < 2:
        return None
    names = [shown(name) for name, outcome in verdict.variants.items() if outcome == "pass"]
    return f"Passing: {', '.join(names)}." if names else "Passing: none."


def standing(verdict: Verdict, variant: str) -> str:
    """How a variant fares: its outcome and the number of checks behind it."""
    rows = verdict.rows[verdict.rows["variant"] == variant]
    numbers = {
        decision: int((rows["decision"] == decision).sum())
        for decision in ("pass", "fail", "cannot tell")
    }
    counts = [f"{count(number)} {decision}" for decision, number in numbers.items() if number]
    return (
        f"{shown(variant)}: {verdict.variants[variant]} "
        f"({counted(len(rows), 'check')}: {', '.join(counts)})"
    )


def decision(verdict: Verdict, variant: str) -> str:
    """Whether a variant may ship by the policy, in one sentence."""
    name, rows = shown(variant), endpoints(verdict, variant)
    outcome = verdict.variants[variant]
    if outcome == "pass":
        every = "its check passes" if len(rows) == 1 else f"all {count(len(rows))} checks pass"
        return f"{name} may ship by this policy: {every}."
    first = [row for row in rows if row["decision"] == outcome]
    if outcome == "fail":
        more = f", and {count(len(first) - 1)} more" if len(first) > 1 else ""
        said = f"{subject(first[0])}: {deciding_bound(first[0])}{more}"
        return f"{name} must not ship by this policy ({said})."
    return (
        f"It is not shown that {name} may ship: {count(len(first))} of "
        f"{counted(len(rows), 'check')} cannot be decided. fairweight plan says how many examples "
        "that takes."
    )


def confidence_of(verdict: Verdict) -> str:
    """The confidence of the intervals, whose two ends err together."""
    return f"{100 * (1 - 2 * _alpha(verdict)):.4g} %"


def how_to_read(verdict: Verdict, *, bounds: bool = False) -> str:
    """What the intervals of a verdict are, or its `bounds`."""
    error = f"{100 * _alpha(verdict):.3g} %"
    words = f"Intervals: {confidence_of(verdict)}, one-sided error {error}."
    if bounds:
        words = f"Each bound is wrong in at most {error} of cases."
    return words


def _alpha(verdict: Verdict) -> float:
    """The error of one side of an interval, divided among looks."""
    from fairweight.auditing.gate.verdict import divisor

    looks = 1 if verdict.look is None else verdict.look.of
    return GATE_ALPHA / (divisor(looks) or looks)


def subject(row: dict[str, Any]) -> str:
    """What an endpoint speaks of.

    >>> row = {"metric": "recall", "group": None, "class": "3", "task": None}
    >>> subject(row), subject(row | {"class": None, "task": "smiling"})
    ('recall of class 3', 'recall overall (task smiling)')
    """
    if row.get("by") == OF_VARIANT:
        return shown(row["metric"])
    group, cls, task = (text(row[key]) for key in ("group", "class", "task"))
    of = f"class {shown(cls)}" if cls is not None else shown(group) if group else "overall"
    joint = " " if of == "overall" else " of "
    part = f" (task {shown(task)})" if task is not None else ""
    return f"{row['metric']}{joint}{of}{part}"


def endpoint_name(row: dict[str, Any]) -> str:
    """What is checked, and its limit.

    >>> row = {"metric": "recall", "by": "class", "group": None, "class": "3", "task": None}
    >>> endpoint_name(row | {"criterion": "margin", "limit": 0.02})
    'recall of class 3, margin 2 points'
    """
    return f"{subject(row)}, {limit_of(row)}"


def limit_of(row: dict[str, Any]) -> str:
    """What the policy allows, in the metric's unit.

    >>> limit_of({"metric": "recall", "criterion": "min", "limit": 0.8})
    'min 80 %'
    >>> limit_of({"metric": "kappa", "criterion": "margin", "limit": 0.02})
    'margin 0.02'
    """
    criterion, limit = row["criterion"], row["limit"]
    if criterion == "recovery":
        return f"recovery {100 * limit:g} %"
    if not is_share(row["metric"]):
        return f"{criterion} {limit:g}"
    if criterion != "margin":
        return f"{criterion} {100 * limit:g} %"
    return f"margin {100 * limit:g} point{'' if limit == 0.01 else 's'}"


def interval(row: dict[str, Any]) -> str:
    """The estimate with the interval that decides, in points and percent."""
    ends = [real(row[name]) for name in ("estimate", "low", "high")]
    if row["low"] is None and row["high"] is None and not is_share(row["metric"]):
        return number(ends[0])
    write = shift_of if row["criterion"] in ("margin", "recovery") else value_interval
    return write(row["metric"], *ends)


def with_interval(row: dict[str, Any]) -> str:
    """An endpoint with its interval as people read it: points and percent.

    >>> row = {"metric": "recall", "group": None, "class": "3", "task": None, "limit": 0.02,
    ...        "decision": "pass", "criterion": "margin", "estimate": -0.002, "low": -0.01,
    ...        "high": 0.006}
    >>> with_interval(row)
    'recall of class 3: −0.2 points [−1.0, +0.6], margin 2 points: pass'
    """
    return f"{subject(row)}: {interval(row)}, {limit_of(row)}: {row['decision']}"


def deciding_bound(row: dict[str, Any]) -> str:
    """The one bound that decides an endpoint beside its limit; the reason where there is none.

    >>> row = {"metric": "accuracy", "criterion": "margin", "limit": 0.02, "threshold": -0.02,
    ...        "bound": -0.0071, "decision": "pass", "ratio": None, "n_left_out": 0, "high": 0.001}
    >>> deciding_bound(row)
    'loss is at most 0.8 points; limit 2'
    >>> deciding_bound(row | {"decision": "fail", "bound": -0.0523})
    'loss is at least 5.2 points; limit 2'
    >>> deciding_bound(row | {"decision": "cannot tell", "bound": -0.0301, "certifiable": 0.0301})
    'loss may be up to 3.1 points; limit 2'
    >>> deciding_bound(row | {"criterion": "min", "limit": 0.8, "threshold": 0.8, "bound": 0.912})
    'at least 91.2 %; floor 80 %'
    """
    from fairweight.auditing.gate.verdict import NAMES

    if row["bound"] is None:
        return shown(row["reason"])
    bound, threshold, criterion = float(row["bound"]), float(row["threshold"]), row["criterion"]
    if row.get("by") == OF_VARIANT:  # a number of the variants table, which has no interval
        most = "at most" if criterion == "max" else "at least"
        return f"{_measured(bound)}; {most} {_measured(threshold)}"
    entry = metric(row["metric"])
    lower = entry.better == "lower"
    # A fail is shown from the other side: the good end of the interval is beyond the limit.
    worst = row["decision"] != "fail"
    if criterion in ("margin", "recovery"):
        loss, limit = (bound, threshold) if lower else (-bound, -threshold)
        size, allowed = _scaled(row["metric"], abs(loss), limit, up=worst == (loss > 0))
        what = "" if lower and entry.pairs is not None else "rise is " if lower else "loss is "
        most = "at most" if worst else "at least"
        if row["decision"] == "cannot tell" and loss > 0:
            what, most = what.replace("is ", "may be "), "up to"
        if loss <= 0:
            what, most = ("fall is " if lower else "gain is "), "at least"
        said = [f"{what}{most} {size}{' points' if is_share(row['metric']) else ''}"]
        said.append(f"limit {allowed}")
        if row["ratio"] is not None:
            said.insert(0, f"keeps {percent(row['ratio'])} of the baseline")
    else:
        size, allowed = _scaled(row["metric"], bound, threshold, up=worst == lower)
        unit = " %" if is_share(row["metric"]) else ""
        most = "at most" if worst == lower else "at least"
        if row["decision"] == "cannot tell":
            most = "may be as high as" if lower else "may be as low as"
        said = [f"{most} {size}{unit}", f"{NAMES[criterion]} {allowed}{unit}"]
    if row["n_left_out"]:
        said.append(f"{count(row['n_left_out'])} examples left out count as errors")
    return "; ".join(said)


def _measured(value: float) -> str:
    """A number of the variants table: bytes in full, milliseconds with four digits.

    >>> _measured(2_500_000.0), _measured(12.3456)
    ('2,500,000', '12.35')
    """
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def _scaled(name: str, value: float, limit: float, *, up: bool) -> tuple[str, str]:
    """A bound and its limit in the metric's unit, rounded away from what it promises.

    It gets the decimals that it needs to stay on its side of the limit.
    """
    scale = 100 if is_share(name) else 1
    least = 1 if is_share(name) else 3
    step = math.ceil if up else math.floor
    text = f"{scale * value:.6g}"
    for decimals in range(least, 7):
        rounded = step(round(scale * value * 10**decimals, 6)) / 10**decimals
        if (rounded < scale * limit) == (value < limit) and rounded != scale * limit:
            text = f"{rounded:.{decimals}f}"
            break
    return text.replace("-", "\N{MINUS SIGN}"), f"{scale * limit:.6g}"


# A verdict as JSON, for programs.

SCHEMA = 1


def to_json(verdict: Verdict, policy: Policy) -> str:
    """The outcome, the policy that was asked, and every endpoint."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "outcome": verdict.outcome,
        "exit_code": verdict.exit_code,
        "require": verdict.require,
        "variants_tried": len(verdict.variants),
        "variants": verdict.variants,
        "passing": [name for name, outcome in verdict.variants.items() if outcome == "pass"],
        "look": None if verdict.look is None else asdict(verdict.look),
        "excluded": list(verdict.excluded),
        "skipped": list(verdict.skipped),
        "notes": list(verdict.notes),
        "policy": asdict(policy),
        "endpoints": plain_records(verdict.rows),
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
