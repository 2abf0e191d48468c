"""Harrell and Davis' quantile: a mean of all order statistics (Biometrika 69, 635–640, 1982)."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.counts.stats import Floats


def quantile_weights(n: int, share: float) -> Floats:
    """The weight of each of n sorted values in their quantile at a share between 0 and 1.

    >>> quantile_weights(4, 0.5).round(3).tolist()
    [0.127, 0.373, 0.373, 0.127]
    """
    from scipy.special import betainc

    edges = betainc((n + 1) * share, (n + 1) * (1 - share), np.arange(n + 1) / n)
    return np.asarray(np.diff(edges))
