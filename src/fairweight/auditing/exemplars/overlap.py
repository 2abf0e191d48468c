"""Which exemplars two variants share."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from fairweight.auditing.exemplars.modal import Mask


def overlap_row(first: Mask, second: Mask) -> dict[str, Any]:
    """How many two sets share, and how many they would if they were drawn independently.

    >>> row = overlap_row(np.array([True, True, False, False]), np.array([True, False, True, True]))
    >>> row["n_both"], row["jaccard"], row["expected_both"]
    (1, 0.25, 1.5)
    """
    n_first, n_second = int(first.sum()), int(second.sum())
    both = int(np.count_nonzero(first & second))
    either = n_first + n_second - both
    return {
        "n_first": n_first,
        "n_second": n_second,
        "n_both": both,
        "jaccard": both / either if either else np.nan,
        "expected_both": n_first * n_second / len(first) if len(first) else np.nan,
    }


def overlaps(masks: Mapping[tuple[str, str, float | None], Mask]) -> list[dict[str, Any]]:
    """Rows of all pairs of variants, for every kind and percentile that both have."""
    rows = []
    cuts = dict.fromkeys((kind, percentile) for _, kind, percentile in masks)
    for kind, percentile in cuts:
        held = {v: mask for (v, k, q), mask in masks.items() if (k, q) == (kind, percentile)}
        for one, other in combinations(held, 2):
            rows.append(
                {
                    "kind": kind,
                    "percentile": np.nan if percentile is None else percentile,
                    "first": one,
                    "second": other,
                }
                | overlap_row(held[one], held[other])
            )
    return rows
