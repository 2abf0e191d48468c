"""Label interrelation: how far the predictions of one attribute follow from those of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.explain.tables import COLUMNS
from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

INTERRELATION_COLUMNS = COLUMNS["label_interrelation"]


def label_interrelation(tasks: Mapping[str, Answers]) -> pd.DataFrame:
    """In-sample R² of each attribute's predictions on all others', for every member.

    Source: Iofinova et al. 2023, label interrelation: least squares of the hard 0/1 predictions of
    one attribute on those of the others over the test examples. `r2_labels` is the same of the true
    labels: what a model without errors would show. In [0, 1]; NaN where an attribute is always
    predicted alike. Needs two attributes with two classes each, on the same examples.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    answers = list(tasks.values())
    if len(answers) < 2:
        return pd.DataFrame(rows, columns=list(INTERRELATION_COLUMNS))
    _check(tasks)
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
    return pd.DataFrame(rows, columns=list(INTERRELATION_COLUMNS))


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


def _check(tasks: Mapping[str, Answers]) -> None:
    first = next(iter(tasks.values()))
    for task, answers in tasks.items():
        if answers.n_label_classes > 2:
            raise InputError(
                f"Label interrelation needs two classes per attribute; '{task}' has "
                f"{answers.n_label_classes}."
            )
        same = answers.n_examples == first.n_examples and (
            answers.example_id is None
            or first.example_id is None
            or np.array_equal(answers.example_id, first.example_id)
        )
        if not same:
            raise InputError(
                f"Label interrelation needs all attributes on the same examples; those of '{task}' "
                "are others."
            )
