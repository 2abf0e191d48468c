"""Paired counts of two models: on the same examples, where do their answers differ?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.counts.cube import Cube
from fairweight.auditing.counts.groupings import Grouping
from fairweight.auditing.counts.stats import Floats
from fairweight.auditing.counts.sums import sums


@dataclass(frozen=True)
class Pairs:
    """Counts of examples per slice and class, shape (S, C) unless said otherwise.

    `lost`: the baseline is right and the compressed model wrong, by label; `gained` the reverse.
    `fp_lost`: the baseline alone wrongly predicts the class; `fp_gained`: the compressed one alone.
    """

    label: Floats
    correct: tuple[Floats, Floats]  # baseline, compressed
    predicted: tuple[Floats, Floats]
    lost: Floats
    gained: Floats
    fp_lost: Floats
    fp_gained: Floats
    changed: Floats  # predictions differ, by label
    abstained: tuple[Floats, Floats]  # (S,)
    abstained_lost: Floats  # (S,): the baseline alone abstains
    abstained_gained: Floats  # (S,)

    @property
    def n(self) -> Floats:
        total: Floats = self.label.sum(axis=-1)
        return total


def pairs(cube: Cube, grouping: Grouping, baseline: int, compressed: int) -> Pairs:
    """Paired counts of two members in the slices of a grouping (unweighted examples)."""
    n_slices, n_classes = len(grouping.levels), len(cube.label_classes)
    slice_start = grouping.code.astype(np.int64) * n_classes
    label = cube.label
    first, second = cube.prediction[:, baseline], cube.prediction[:, compressed]

    def by_class(code: NDArray[np.int32], where: NDArray[np.bool_] | None = None) -> Floats:
        known = (code >= 0) & (code < n_classes)
        keep = known if where is None else known & where
        counted = sums((slice_start + code)[keep], cube.count[keep], n_slices * n_classes)
        return counted.reshape(n_slices, n_classes)

    def by_slice(where: NDArray[np.bool_]) -> Floats:
        return sums(grouping.code[where], cube.count[where], n_slices)

    right = (first == label, second == label)
    silent = (first < 0, second < 0)
    return Pairs(
        label=by_class(label),
        correct=(by_class(label, right[0]), by_class(label, right[1])),
        predicted=(by_class(first), by_class(second)),
        lost=by_class(label, right[0] & ~right[1]),
        gained=by_class(label, ~right[0] & right[1]),
        fp_lost=by_class(first, ~right[0] & (first != second)),
        fp_gained=by_class(second, ~right[1] & (first != second)),
        changed=by_class(label, first != second),
        abstained=(by_slice(silent[0]), by_slice(silent[1])),
        abstained_lost=by_slice(silent[0] & ~silent[1]),
        abstained_gained=by_slice(~silent[0] & silent[1]),
    )
