"""The area under the ROC curve with an interval over examples: how well a number finds a set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit, ndtri

from fairweight.auditing.compare.comparison import MIN_CLUSTERS
from fairweight.base.types import Floats, Mask


@dataclass(frozen=True)
class Placements:
    """An AUC and the part that every example has in its error."""

    auc: float
    influence: Floats  # (n,); they add up to 0


def placements(value: ArrayLike, positive: Mask) -> Placements:
    """AUC of `value` for finding `positive`, ties counted half.

    The influence of a positive is (share of negatives below it − AUC) / positives, that of a
    negative (share of positives above it − AUC) / negatives: the sum of their squares is DeLong's
    variance up to m / (m − 1).

    Examples
    --------
    Values 1, 3 of positives and 0, 2 of negatives: of four pairs three are in order.

    >>> placements([1, 3, 0, 2], np.array([True, True, False, False])).auc
    0.75
    """
    x = np.asarray(value, dtype=np.float64)
    up, down = np.sort(x[positive]), np.sort(x[~positive])
    if not len(up) or not len(down):
        raise ValueError("placements need a positive and a negative example.")

    def place(points: Floats, among: Floats) -> Floats:
        left, right = np.searchsorted(among, points), np.searchsorted(among, points, side="right")
        found: Floats = (left + right) / (2 * len(among))
        return found

    below = place(x[positive], down)
    above = 1 - place(x[~positive], up)
    auc = float(below.mean())
    influence = np.empty(len(x))
    influence[positive] = (below - auc) / len(up)
    influence[~positive] = (above - auc) / len(down)
    return Placements(auc, influence)


def auc_limits(
    found: Sequence[Placements], cluster: NDArray[np.int64] | None, alpha: float
) -> tuple[float, float, float]:
    """Mean AUC over members (pairs of models, say) with limits over examples or clusters.

    Normal limits on the logit, with DeLong's variance of the mean (clusters: of sums per
    cluster). NaN limits where the AUC is 0 or 1, or with fewer than 20 clusters.
    """
    auc = float(np.mean([one.auc for one in found]))
    influence = np.mean([one.influence for one in found], axis=0)
    if cluster is not None:
        influence = np.bincount(np.unique(cluster, return_inverse=True)[1], weights=influence)
    units = len(influence)
    if not 0 < auc < 1 or units < (2 if cluster is None else MIN_CLUSTERS):
        return auc, np.nan, np.nan
    error = np.sqrt(units / (units - 1) * (influence**2).sum()) / (auc * (1 - auc))
    reach = -ndtri(alpha / 2) * error
    return auc, float(expit(logit(auc) - reach)), float(expit(logit(auc) + reach))
