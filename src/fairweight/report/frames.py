"""The frames of an audit and the types of their columns, as AuditResult documents them."""

from __future__ import annotations

from fairweight.auditing.result import (
    BOOLEAN_COLUMNS,
    BOUND_COLUMNS,
    INTEGER_COLUMNS,
    LEAD_COLUMNS,
    LEFT_OUT_COLUMNS,
    RESULT_COLUMNS,
    TEXT_COLUMNS,
)

FRAMES: dict[str, tuple[str, ...]] = {
    "results": RESULT_COLUMNS,
    "per_seed": ("variant", "seed", "task", "metric", "by", "group", "class", "n", "value"),
    "confusion": ("variant", "seed", "task", "label", "prediction", "count"),
    "reliability": (
        "variant", "seed", "task", "definition", "group", "bin", "low", "high", "n",
        "mean_score", "mean_outcome", "contribution", "expected_if_calibrated",
        "calibration_in_the_large",
    ),
    "data": ("split", "task", "by", "group", "class", "n", "share"),
    "power": (
        "variant", "task", "metric", "by", "group", "class", "n", "discordance", "n_family",
        "min_detectable_shift", "reference_shift", "n_needed", "largest_loss", "status",
    ),
    "concentration": (
        "variant", "task", "column", "part", "n", "share_examples", "lost", "gained",
        "share_lost", "share_gained", "share_lost_poisson",
    ),
    "group_error": (
        "variant", "task", "group", "error", "excess_shift", "corrected_low", "corrected_high",
    ),
    "bounds": BOUND_COLUMNS,
    "lead": LEAD_COLUMNS,
    "left_out": LEFT_OUT_COLUMNS,
}  # fmt: skip
TEXT = (
    TEXT_COLUMNS
    | {"seed", "label", "prediction", "definition", "split", "column", "part"}
    | {"kind", "quantity", "lacks"}
)
INTEGER = INTEGER_COLUMNS | {"bin", "n_tests"}
BOOLEAN = BOOLEAN_COLUMNS
LATER = frozenset({"lead", "left_out"})  # frames that audits of version 0.1.0 do not have
