"""Systematic and category bias of every attribute: what Iofinova et al. read off their tables.

An attribute is a task. Nothing is computed here but the mean interrelation: values and intervals
are those of the audit, laid out with a row per variant, attribute, metric and category.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from fairweight.auditing import schema
from fairweight.auditing.explain.similarity import fisher_limits
from fairweight.auditing.prediction_matrix import Answers
from fairweight.auditing.result import AuditResult
from fairweight.base.types import Floats
from fairweight.errors import InputError
from fairweight.tables.names import grouping_of

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
    rows = _chosen(result)
    whose = _levels(result)
    found = [_side(rows.drop_duplicates(_KEYS), result.baseline, "baseline", whose)]
    found += [
        _side(rows[rows["variant"] == variant], variant, "compressed", whose)
        for variant in result.variants
    ]
    if interrelation is not None and len(interrelation):
        found.append(_interrelation(interrelation, whose))
    names = list(schema.column_names("attributes"))
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
    known = []
    for setting, result in audits:
        part = attribute_values(result).assign(setting=setting)
        if result.only_task is not None:  # rows of a single task do not name it
            part["task"] = result.only_task
        known.append(part[part["task"].notna()])
    names = list(schema.column_names("settings"))
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

    return pd.concat([part for part in (whole, by) if len(part)] or [whole], ignore_index=True)


def _levels(result: AuditResult) -> dict[str, dict[str, Any]]:
    """Method and mean sparsity of every variant, as far as the variants table has them."""
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
    return schema.frame("attributes", rows)


# Label interrelation: how far the predictions of one attribute follow from those of the others.


def label_interrelation(tasks: Mapping[str, Answers]) -> pd.DataFrame:
    """In-sample R² of each attribute's predictions on all others', for every member.

    Source: Iofinova et al. 2023, label interrelation: least squares of the hard 0/1 predictions of
    one attribute on those of the others over the test examples. `r2_labels` is the same of the true
    labels: what a model without errors would show. In [0, 1]; NaN where an attribute is always
    predicted alike. Needs two attributes with two classes each, on the same examples.
    """
    rows: list[dict[str, Any]] = []
    answers = list(tasks.values())
    if len(answers) < 2:
        return schema.frame("label_interrelation", rows)
    first = answers[0]
    for task, own in tasks.items():
        if own.n_label_classes > 2:
            raise InputError(
                f"Label interrelation needs two classes per attribute; '{task}' has "
                f"{own.n_label_classes}."
            )
        ids, others = first.example_id, own.example_id
        alike = ids is None or others is None or np.array_equal(ids, others)
        if own.n_examples != first.n_examples or not alike:
            raise InputError(
                f"Label interrelation needs all attributes on the same examples; those of '{task}' "
                "are others."
            )
    codes = [a.positive if a.positive is not None else 1 for a in answers]
    labels = np.stack([a.label == code for a, code in zip(answers, codes, strict=True)], axis=1)
    of_labels = r_squared(labels.astype(float))
    for place, member in enumerate(answers[0].members):
        given = np.stack(
            [a.prediction[place] == code for a, code in zip(answers, codes, strict=True)], axis=1
        )
        found = r_squared(given.astype(float))
        for task, r2, reference in zip(tasks, found, of_labels, strict=True):
            rows.append(
                {
                    "variant": member.variant, "seed": member.seed, "task": task, "r2": r2,
                    "r2_labels": reference, "n": len(given),
                    "status": "ok" if not np.isnan(r2) else "not_estimable: one answer only",
                }
            )  # fmt: skip
    return schema.frame("label_interrelation", rows)


def r_squared(values: Floats) -> Floats:
    """R² of every column on all others with an intercept; NaN for constant columns.

    Collinear columns do no harm: the fit of least norm has the same R².

    Examples
    --------
    The third column is the sum of the first two, which are unrelated.

    >>> r_squared(np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 2.0]])).round(6).tolist()
    [1.0, 1.0, 1.0]
    >>> r_squared(np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])).round(6).tolist()
    [0.0, 0.0]
    """
    away = values - values.mean(axis=0)
    products = away.T @ away
    found = np.full(values.shape[1], np.nan)
    for column in np.flatnonzero(np.ptp(values, axis=0) > 0):
        others = np.arange(values.shape[1]) != column
        weights = np.linalg.lstsq(products[np.ix_(others, others)], products[others, column])[0]
        explained = products[others, column] @ weights / products[column, column]
        found[column] = np.clip(explained, 0.0, 1.0)
    return found


# Does compression amplify bias where the dense model already did? Compressed on dense, by pair.

METRIC = "bias_amplification"
FEWEST = 3
FEWEST_FOR_R2 = 4  # Fisher's z has n − 3 in its variance


def bias_regression(results: pd.DataFrame, *, alpha: float = 0.05) -> pd.DataFrame:
    """Least squares of compressed on dense bias amplification over (attribute, category) pairs.

    Source: Iofinova et al. 2023. An attribute is a task, a category a level of a group column; the
    two levels of a binary column speak of the same pair and count once.

    Parameters
    ----------
    results
        `AuditResult.results`; the rows of `bias_amplification` that have both values are used.

    Notes
    -----
    A slope above 1 means: where the dense model amplifies, the compressed one amplifies more. Pairs
    of one attribute are not independent, so attributes are what is sampled: the slope's interval is
    the jackknife over attributes with t(G − 1), that of R² is Fisher's z with as many observations
    as attributes (cut at 0). Both values are measured on the same examples, and the error of the
    dense ones draws the slope towards 0. An association: nothing here says that one is the cause
    of the other. Undefined with fewer than 3 attributes, or where the dense values are all equal.
    """
    rows = results[(results["metric"] == METRIC) & (results["scope"].fillna("model") == "model")]
    found = []
    for variant in dict.fromkeys(results["variant"]):
        pairs = _pairs(rows[rows["variant"] == variant])
        x = pairs["baseline"].to_numpy(dtype=np.float64)
        y = pairs["compressed"].to_numpy(dtype=np.float64)
        attribute = np.unique(pairs["task"].to_numpy(dtype=str), return_inverse=True)[1]
        groups = int(attribute.max(initial=-1)) + 1
        row: dict[str, Any] = {"variant": variant, "n_attributes": groups, "n_pairs": len(x)}
        found.append(row)
        if groups < FEWEST:
            counted = "1 attribute" if groups == 1 else f"{groups} attributes"
            row["status"] = f"not_estimable: {counted}, {FEWEST} are needed"
            continue
        if np.ptp(x) == 0:
            row["status"] = "not_estimable: the dense values are all equal"
            continue
        slope, intercept = _line(x, y)
        # Delete-one-attribute jackknife, (G − 1) / G Σ (b₋ⱼ − b)², with t(G − 1).
        without = np.array(
            [_line(x[attribute != one], y[attribute != one])[0] for one in range(groups)]
        )
        error = np.sqrt((groups - 1) / groups * ((without - slope) ** 2).sum())
        reach = float(-stdtrit(groups - 1, alpha / 2) * error)
        r = 0.0 if np.ptp(y) == 0 else float(np.corrcoef(x, y)[0, 1])
        r2_low = r2_high = float("nan")
        if groups >= FEWEST_FOR_R2:
            # Squares of Fisher's limits of r; from 0 where they lie on both sides of it.
            low, high = fisher_limits(r, groups, alpha)
            r2_low = 0.0 if low <= 0 <= high else min(low**2, high**2)
            r2_high = max(low**2, high**2)
        status = "ok"
        if np.isnan(reach):
            status = "no interval of the slope: it rests on one attribute"
        elif np.isnan(r2_low):
            status = f"no interval of R²: {groups} attributes, {FEWEST_FOR_R2} are needed"
        row |= {
            "slope": slope, "slope_low": slope - reach, "slope_high": slope + reach,
            "intercept": intercept, "r2": r**2, "r2_low": r2_low, "r2_high": r2_high,
            "status": status,
        }  # fmt: skip
    return schema.frame("bias_regression", found)


def _pairs(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with both values and an attribute; of a binary column's two levels, the first."""
    usable = rows[rows[["baseline", "compressed"]].notna().all(axis=1) & rows["task"].notna()]
    column = np.array([grouping_of(str(name)) for name in usable["group"]], dtype=object)
    keys = [usable["task"].to_numpy(), column]
    size = usable.groupby(keys, sort=False)["group"].transform("size")
    # Both levels of a binary column stand on one watched side, so their values are the same.
    place = usable.groupby(keys, sort=False).cumcount()
    first = usable.groupby(keys, sort=False)[["baseline", "compressed"]].transform("first")
    repeated = (place == 1) & (size == 2) & (first == usable[first.columns]).all(axis=1)
    return usable[~repeated]


def _line(x: Floats, y: Floats) -> tuple[float, float]:
    """Slope and intercept; NaN where x never varies."""
    if np.ptp(x) == 0:
        return float("nan"), float("nan")
    away = x - x.mean()
    slope = float(away @ (y - y.mean()) / (away @ away))
    return slope, float(y.mean() - slope * x.mean())
