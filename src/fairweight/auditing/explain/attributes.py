"""Systematic and category bias of every attribute: what Iofinova et al. read off their tables.

An attribute is a task. Nothing is computed here but the mean interrelation: values and intervals
are those of the audit, laid out with a row per variant, attribute, metric and category.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairweight.auditing.explain.tables import COLUMNS
from fairweight.auditing.result import AuditResult
from fairweight.tables.names import grouping_of

if TYPE_CHECKING:
    import pandas as pd

OVERALL = (
    "accuracy", "balanced_accuracy", "auc", "uncertainty", "tcb", "ece",
    "worst_case_bias_amplification",
)  # fmt: skip
BY_CATEGORY = "bias_amplification"
INTERRELATION = "interrelation"
_KEYS = ["task", "metric", "category"]


def attribute_values(
    result: AuditResult, interrelation: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Metrics of every attribute, of the baseline and of all variants.

    Parameters
    ----------
    interrelation
        As `label_interrelation` makes it: its means over members are added, without intervals.

    Notes
    -----
    Rows of scope `model`. `category` is the column that a bias amplification is about (with more
    than two levels: the level), null of metrics of the whole attribute. `task` null is the mean
    over attributes, on the same examples. Shift and limits are against the baseline, simultaneous
    in their family, and missing of the baseline itself.
    """
    import pandas as pd

    rows = _chosen(result)
    whose = _levels(result)
    found = [_side(rows.drop_duplicates(_KEYS), result.baseline, "baseline", whose)]
    found += [
        _side(rows[rows["variant"] == variant], variant, "compressed", whose)
        for variant in result.variants
    ]
    if interrelation is not None and len(interrelation):
        found.append(_interrelation(interrelation, whose))
    names = list(COLUMNS["attributes"])
    made = pd.concat([part for part in found if len(part)] or found[:1], ignore_index=True)
    return made[names]


def settings_table(audits: Sequence[tuple[str, AuditResult]]) -> pd.DataFrame:
    """The attributes of several audits under one another, named by their settings.

    Parameters
    ----------
    audits
        Pairs of a setting (`joint`, `single`, `grayscale`) and an audit; several audits may have
        the same setting, such as models of one attribute each.
    """
    import pandas as pd

    parts = [attribute_values(result).assign(setting=setting) for setting, result in audits]
    known = [part[part["task"].notna()] for part in parts]
    names = list(COLUMNS["settings"])
    return pd.concat(known, ignore_index=True)[names] if known else pd.DataFrame(columns=names)


def _chosen(result: AuditResult) -> pd.DataFrame:
    """The audit's rows with a column `category`; of a binary column's two levels the first."""
    rows = result.results
    rows = rows[rows["scope"].fillna("model") == "model"]
    whole = rows[(rows["by"] == "overall") & rows["metric"].isin(OVERALL)].assign(category=None)
    by = rows[(rows["by"] == "group") & (rows["metric"] == BY_CATEGORY)]
    column = by["group"].astype(str).map(grouping_of)
    by = by[column.isin(result.single_columns)]
    column = column[by.index]
    levels = by.groupby(column)["group"].nunique()
    several = column.map(levels) > 2
    by = by.assign(category=column.where(~several, by["group"]))
    by["n"] = by.groupby(["variant", *_KEYS], dropna=False, sort=False)["n"].transform("sum")
    # Both levels of a binary column speak of one watched side, so their values are the same.
    by = by.drop_duplicates(["variant", *_KEYS])
    import pandas as pd

    return pd.concat([part for part in (whole, by) if len(part)] or [whole], ignore_index=True)


def _levels(result: AuditResult) -> dict[str, dict[str, Any]]:
    """Method and mean sparsity of every variant, as far as the variants table has them."""
    import pandas as pd

    table = result.variants_table
    found: dict[str, dict[str, Any]] = {}
    for variant in (result.baseline, *result.variants):
        own = None if table is None else table[table["variant"].astype(str) == variant]
        known: dict[str, Any] = {"method": None, "sparsity": float("nan")}
        if own is not None and len(own):
            if "sparsity" in own:
                sparsity = pd.to_numeric(own["sparsity"], errors="coerce")
                known["sparsity"] = float(sparsity.mean())
            if "method" in own:
                known["method"] = own["method"].iloc[0]
        found[variant] = known
    return found


def _side(
    rows: pd.DataFrame, variant: str, side: str, whose: Mapping[str, Mapping[str, Any]]
) -> pd.DataFrame:
    import pandas as pd

    own = side == "compressed"
    return pd.DataFrame(
        {
            "variant": variant,
            "method": whose[variant]["method"],
            "sparsity": whose[variant]["sparsity"],
            "task": rows["task"],
            "metric": rows["metric"],
            "category": rows["category"],
            "n": rows["n"],
            "n_members": rows[f"n_seeds_{side}"],
            "value": rows[side],
            "low": rows[f"{side}_low"],
            "high": rows[f"{side}_high"],
            **{
                name: rows[name] if own else float("nan")
                for name in ("shift", "sim_low", "sim_high")
            },
            "status": rows["status"],
        }
    )


def _interrelation(table: pd.DataFrame, whose: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Means over members, of every attribute and over all of them."""
    import pandas as pd

    rows = []
    for variant, known in whose.items():
        own = table[table["variant"] == variant]
        parts = [(task, part) for task, part in own.groupby("task", sort=False)]
        for task, part in [*parts, (None, own)]:
            value = float(part["r2"].mean())
            rows.append(
                {
                    "variant": variant, **known, "task": task, "metric": INTERRELATION,
                    "category": None, "n": part["n"].max() if len(part) else None,
                    "n_members": part["seed"].nunique(), "value": value,
                    "status": "ok" if value == value else "not_estimable: one answer only",
                }
            )  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS["attributes"]))
