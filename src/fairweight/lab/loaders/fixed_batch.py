"""Models that take one batch size only, asked with batches of any size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Run = Callable[[NDArray[Any]], NDArray[Any]]


def in_batches_of(size: int, run: Run) -> Run:
    """A function that calls `run` with exactly `size` rows at a time.

    The last batch is filled up with its own last row, and what that adds is cut off.

    >>> doubled = in_batches_of(2, lambda rows: rows * 2)
    >>> doubled(np.array([[1], [2], [3]])).tolist()
    [[2], [4], [6]]
    """

    def fitted(rows: NDArray[Any]) -> NDArray[Any]:
        answers = []
        for start in range(0, len(rows), size):
            batch = rows[start : start + size]
            missing = size - len(batch)
            filled = np.concatenate([batch, np.repeat(batch[-1:], missing, axis=0)])
            answers.append(run(filled)[: len(batch)])
        return np.concatenate(answers) if answers else run(rows)

    return fitted
