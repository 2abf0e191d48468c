"""Audits made by hand: limits from stated counts, without the engine."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from fairweight.auditing.intervals.proportion import tango, wilson
from fairweight.auditing.result import (
    DIVISORS,
    GATE_ALPHA,
    AuditResult,
    Provenance,
)
from fairweight.auditing.schema import AUDIT_TABLES, column_names, frame

# A limit on one side errs with GATE_ALPHA / j; intervals are asked with both sides together.
TWO_SIDED = np.array([2 * GATE_ALPHA / j for j in DIVISORS])


def line(
    quantity: str, estimate: float, low: Any, high: Any, *, n: int | None, **keys: Any
) -> dict[str, Any]:
    """One row of limits; `low` and `high` are arrays over DIVISORS, or one number for all."""
    row: dict[str, Any] = {
        "variant": "int8", "task": None, "metric": "accuracy", "kind": "group",
        "group": None, "class": None, "status": "ok",
    } | keys | {"n": n, "quantity": quantity, "estimate": estimate}  # fmt: skip
    row.setdefault("by", "group" if row["kind"] == "intersection" else row["kind"])
    lows, highs = np.broadcast_to(low, len(DIVISORS)), np.broadcast_to(high, len(DIVISORS))
    for j, a, b in zip(DIVISORS, lows, highs, strict=True):
        row |= {f"low_{j}": float(a), f"high_{j}": float(b)}
    return row


def spread(
    quantity: str, estimate: float, error: float, *, n: int | None = 1000, **keys: Any
) -> dict[str, Any]:
    """Normal limits around an estimate: estimate ± z_j × error."""
    from scipy.special import ndtri

    z = -ndtri(TWO_SIDED / 2)
    return line(quantity, estimate, estimate - z * error, estimate + z * error, n=n, **keys)


def answers(
    n: int, lost: int, gained: int, *, right: int | None = None, **keys: Any
) -> list[dict[str, Any]]:
    """Shift and value of a rate: of `n` examples the baseline had `right` ones right."""
    had = n - gained if right is None else right
    has = had - lost + gained
    low, high = tango(n, lost, gained, TWO_SIDED)
    value_low, value_high = wilson(has, n, TWO_SIDED)
    return [
        line("shift", (gained - lost) / n, low, high, n=n, **keys),
        line("value", has / n, value_low, value_high, n=n, **keys),
    ]


@cache
def empty_tables() -> dict[str, pd.DataFrame]:
    """The tables of an audit that the gate does not read."""
    return {name: frame(name) for name in AUDIT_TABLES if name not in ("bounds", "results")}


def made_audit(
    rows: Iterable[dict[str, Any]],
    *,
    groupings: tuple[str, ...] = ("sex", "age", "sex*age"),
    tasks: tuple[str, ...] = (),
    baseline: float | None = None,
) -> AuditResult:
    """An audit that holds these limits, and this value of the baseline in every row, if given."""
    held = frame("bounds", rows)
    keys = ["variant", "task", "metric", "by", "group", "class"]
    results = frame("results")
    if baseline is not None:
        known = held.loc[held["quantity"] == "shift", keys].assign(scope="model", baseline=baseline)
        results = known.reindex(columns=list(column_names("results")))
    return AuditResult(
        baseline="dense",
        variants=tuple(dict.fromkeys(held["variant"])),
        classes=("0", "1"),
        positive="1",
        tasks=tasks,
        groupings=groupings,
        single_columns=tuple(name for name in groupings if "*" not in name),
        n_examples=1000,
        results=results,
        notes=(),
        provenance=Provenance("0.1.0", None, "2026-11-03T10:20:30Z", (), {}),
        bounds=held,
        **empty_tables(),
    )
