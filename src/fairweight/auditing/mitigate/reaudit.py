"""Every mitigation is audited again: what improved, and who got worse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

import pandas as pd

from fairweight.auditing import schema
from fairweight.auditing.explain.attributes import attribute_values
from fairweight.auditing.metrics.registry import metric as registered
from fairweight.auditing.pipeline import audited
from fairweight.auditing.result import AuditResult
from fairweight.base.types import Progress
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec, sources_of

# What a mitigation may change.
METRICS = (
    "accuracy", "recall", "precision", "fpr", "fnr", "tcb", "bias_amplification",
    "worst_case_bias_amplification", "worst_group", "group_gap", "equalized_odds_difference",
    "class_gap",
)  # fmt: skip
BEST = {"one": 1.0, "zero": 0.0}
LEVELS = ("overall", "class", "group", "grouping")


@dataclass(frozen=True)
class Reaudit:
    """New variants beside their origins and the dense model, on rows that no rule was fitted on."""

    result: AuditResult  # origins and new variants against the dense model
    mitigation: pd.DataFrame  # of schema.column_names("mitigation")


def reaudit(
    table: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    tables: TableSpec,
    options: AuditOptions,
    *,
    command: str | None = None,
    explanations: Mapping[str, pd.DataFrame] | None = None,
    progress: Progress | None = None,
) -> Reaudit:
    """Audit new variants twice: against the dense model, and against what they were made from.

    Parameters
    ----------
    table
        Of `prediction_table`.
    pairs
        New variants with their origins.
    tables
        What else is read: baseline, groups, positive, train, variants. Sources and columns are
        those of the table.
    explanations
        Tables that belong into the report.
    """
    # Tables were checked when they were read; an origin that collapsed is a baseline here.
    asked = TableSpec(
        sources_of(table),
        baseline=tables.baseline,
        train=tables.train,
        variants=tables.variants,
        groups=tables.groups,
        positive=tables.positive,
        force=True,
        task="task" if "task" in table else None,
        cluster="cluster" if "cluster" in table else None,
        weight="weight" if "weight" in table else None,
    )
    whole = audited(asked, options, command=command, progress=progress)
    baseline = whole.baseline
    rows = []
    for name, origin in pairs:
        if origin != baseline:
            own = table[table["variant"].isin([origin, name])]
            again = replace(asked, sources=sources_of(own), baseline=origin)
            against = audited(again, options, command=command, progress=progress)
            rows.append(_changes(against, name, origin))
        rows.append(_changes(whole, name, baseline))
    made = pd.concat(rows, ignore_index=True)
    held = {**(explanations or {}), "mitigation": made}
    if whole.tasks:
        held["attributes"] = attribute_values(whole)
    return Reaudit(replace(whole, explanations={**whole.explanations, **held}), made)


def verdict(
    metric: str,
    before: float,
    after: float,
    change: tuple[float, float],
    middle: tuple[float, float] = (nan, nan),
) -> str:
    """Whether a change is shown to be one for the better.

    Parameters
    ----------
    change
        Limits of after − before.
    middle
        Limits of (before + after) / 2, needed where one value is best. A shift is not enough
        there: thresholds that were right and are moved a little have one too. After is nearer to
        the best value exactly if the middle lies on before's side of it.

    Examples
    --------
    >>> verdict("fpr", 0.1, 0.2, (0.05, 0.15)), verdict("accuracy", 0.9, 0.91, (-0.01, 0.03))
    ('worse', 'cannot tell')
    >>> verdict("tcb", 0.6, 0.95, (0.3, 0.4), (0.7, 0.85))
    'better'
    >>> verdict("tcb", 0.97, 1.02, (0.03, 0.07), (0.9, 1.1))
    'cannot tell'
    >>> verdict("accuracy", 0.9, 0.9, (0.0, 0.0)), verdict("tcb", 0.9, 0.9, (nan, nan))
    ('unchanged', 'unchanged')
    """
    low, high = change
    if before == after and not low < high:
        return "unchanged"
    if not (low > 0 or high < 0):
        return "cannot tell"
    better = registered(metric).better
    if better not in BEST:
        return "better" if (after > before) == (better == "higher") else "worse"
    best = BEST[better]
    if not (middle[0] > best or middle[1] < best):
        return "cannot tell"
    return "better" if (after > before) == (middle[1] < best) else "worse"


def _changes(result: AuditResult, variant: str, against: str) -> pd.DataFrame:
    """Rows of one new variant against what it is compared with, each with its verdict."""
    rows = result.results
    kept = rows[
        (rows["variant"] == variant)
        & rows["metric"].isin(METRICS)
        & rows["by"].isin(LEVELS)
        & (rows["scope"].fillna("model") == "model")
        & ~((rows["metric"] == "accuracy") & (rows["by"] == "class"))  # it is the recall
    ]
    made = []
    for row in kept.to_dict("records"):
        shift, low, high = (_number(row[name]) for name in ("shift", "ci_low", "ci_high"))
        sim_low, sim_high = (_number(row[name]) for name in ("sim_low", "sim_high"))
        before, after = _number(row["baseline"]), _number(row["compressed"])
        corrected = (low, high) if isnan(sim_low) else (sim_low, sim_high)
        wider = (corrected[1] - corrected[0]) / (high - low) if high > low else 1.0
        # Limits of the mean of both values, as much wider for the family as those of the shift.
        # Means of both sides' limits: true wherever both hold, so never too narrow.
        middle = (before + after) / 2
        lower, upper = (
            (_number(row[f"baseline_{end}"]) + _number(row[f"compressed_{end}"])) / 2
            for end in ("low", "high")
        )
        ends = middle - wider * (middle - lower), middle + wider * (upper - middle)
        said = "cannot tell"
        if row["status"] == "ok":
            said = verdict(str(row["metric"]), before, after, corrected, ends)
        made.append(
            {
                **{name: row[name] for name in ("task", "metric", "by", "group", "class", "n")},
                **{name: row[name] for name in ("p_value", "p_adjusted", "n_family", "status")},
                "variant": variant,
                "against": against,
                "before": before,
                "after": after,
                "shift": shift,
                "low": low,
                "high": high,
                "sim_low": sim_low,
                "sim_high": sim_high,
                "verdict": said,
            }
        )
    return schema.frame("mitigation", made)


def _number(value: Any) -> float:
    return nan if value is None or value != value else float(value)
