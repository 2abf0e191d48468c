"""One number from plain arrays, without an audit: the worst group's shift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairweight.auditing.counts.arrays import count_arrays
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.arrays import wide_table
from fairweight.tables.canonical import canonical


def least_shift(
    y_true: Any,
    y_pred: Mapping[str, Any],
    sensitive_features: Any,
    *,
    baseline: str | None,
    min_group: int,
) -> float:
    """Least shift of accuracy over variants, columns and their levels of at least `min_group`."""
    table, columns = wide_table(y_true, y_pred, sensitive_features=sensitive_features)
    names = list(columns.predictions)
    first = names[0] if baseline is None else str(baseline)
    if first not in names:
        raise UnknownNameError("The baseline", first, names)
    if len(names) < 2:
        raise InputError(
            f"y_pred has only '{first}'; give the predictions of a compressed model too."
        )
    if not columns.groups:
        raise InputError("sensitive_features names no group; give at least one column.")
    shifts: list[float] = []
    for group in columns.groups:
        accuracies = {}
        # Examples without a value are no group that could pay.
        known = np.array([canonical(value) is not None for value in table[group]])
        if not known.any():
            continue
        level, label = np.asarray(table[group])[known], np.asarray(table["label"])[known]
        for name in names:
            members = [
                count_arrays(label, np.asarray(table[column])[known], level, None, None)
                for column in columns.predictions[name]
            ]
            n = members[0].n
            with np.errstate(invalid="ignore", divide="ignore"):
                accuracies[name] = np.mean([m.correct.sum(-1) / m.n for m in members], axis=0)
        enough = n >= min_group
        for name in names:
            if name != first:
                shifts += (accuracies[name] - accuracies[first])[enough].tolist()
    return round(min(shifts), 12) if shifts else float("nan")
