"""Numbers known of every example: those that came with the answers, and those measured since."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.stats import Floats
from fairweight.errors import InputError


def measurements(answers: Answers, properties: Mapping[str, ArrayLike] | None) -> dict[str, Floats]:
    """The numeric columns of the answers and the given properties, one value per example.

    Properties stand in the order of `answers.example_id`; infinite values count as missing.
    """
    found: dict[str, Floats] = {}
    for name, values in (*answers.numbers.items(), *(properties or {}).items()):
        if name in found:
            raise InputError(
                f"The property '{name}' is a column of the data already; give it another name."
            )
        try:
            column = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(
                f"The property '{name}' is not made of numbers; give text as a group column."
            ) from None
        if column.shape != (answers.n_examples,):
            raise InputError(
                f"The property '{name}' has shape {column.shape} for {answers.n_examples} "
                "examples; give one value per example, in the order of the answers."
            )
        found[name] = np.where(np.isfinite(column), column, np.nan)
    return found
