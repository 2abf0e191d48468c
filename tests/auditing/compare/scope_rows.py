"""Rows of one scope, by what they speak of, and what is compared of them."""

from __future__ import annotations

from typing import Any

import pandas as pd

from fairweight.auditing.metrics.registry import metrics

KEYS = ["metric", "by", "group", "class"]
RATES = [m.name for m in metrics() if m.kind == "rate"]
ESTIMATES = ["baseline", "compressed", "shift", "excess_shift"]
LIMITS = [
    "baseline_low", "baseline_high", "compressed_low", "compressed_high", "ci_low", "ci_high",
    "sim_low", "sim_high", "excess_low", "excess_high", "p_value", "p_adjusted", "excess_p",
]  # fmt: skip
CLOSED = ["n", *ESTIMATES, *LIMITS, "n_family", "status"]


def rates(results: pd.DataFrame, scope: str = "method") -> pd.DataFrame:
    """Rows of the rates, by what they speak of; their numbers need no random draws."""
    chosen = results[
        (results["scope"] == scope)
        & results["metric"].isin(RATES)
        & results["interval"].astype(object).fillna("").str.contains("two-way t|linearised t")
        & ~results["interval"].astype(object).fillna("").str.contains("bootstrap")
    ]
    # By the mean over classes rates are bootstrapped values: overall and by group.
    drawn = chosen["metric"].isin([m.name for m in metrics() if m.per_class])
    chosen = chosen[~(drawn & chosen["by"].isin(["overall", "group"]))]
    return chosen.fillna({"group": "", "class": ""}).set_index(KEYS).sort_index()


def same(one: pd.DataFrame, other: pd.DataFrame, columns: list[str]) -> None:
    pd.testing.assert_frame_equal(
        one[columns], other[columns], check_exact=False, rtol=1e-9, atol=1e-12
    )


def keys(results: pd.DataFrame, scope: str) -> list[tuple[Any, ...]]:
    chosen = results[(results["scope"] == scope) & (results["metric"] != "class_impact")]
    return sorted(map(tuple, chosen[KEYS].fillna("").to_numpy().tolist()))
