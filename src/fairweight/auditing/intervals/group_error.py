"""What noisy group labels hide of an excess."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fairweight.auditing.counts.stats import Floats


def corrected_excess(
    excess: ArrayLike, share: ArrayLike, error: ArrayLike
) -> tuple[Floats, Floats]:
    """Range of the excess from the observed one to the one corrected for wrong group labels.

    Parameters
    ----------
    excess
        Shift of the level minus the shift of all others, as observed.
    share
        Share of all examples that carry this level's label, as observed.
    error
        Chance that a label is wrong, the same for members and others of the level.

    Notes
    -----
    With o the observed and s = (o − e) / (1 − 2e) the true share, the observed excess is the true
    one times P(true member | labelled so) − P(true member | not labelled so)
    = s (1 − e) / o − s e / (1 − o), provided that errors do not depend on the outcome.
    NaN where e >= o or e >= 1 − o: then the labels may be errors alone.

    Examples
    --------
    True share 0.2 and error 0.05: 0.2 · 0.95 + 0.8 · 0.05 = 0.23 are labelled so, and the factor
    is 0.19/0.23 − 0.01/0.77 = 0.813.

    >>> low, high = corrected_excess(-0.0813, 0.23, 0.05)
    >>> float(low.round(3)), float(high.round(4))
    (-0.1, -0.0813)
    """
    observed = np.asarray(excess, dtype=np.float64)
    o = np.asarray(share, dtype=np.float64)
    e = np.asarray(error, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        true_share = (o - e) / (1 - 2 * e)
        factor = true_share * (1 - e) / o - true_share * e / (1 - o)
        usable = (e >= 0) & (e < np.minimum(o, 1 - o) - 1e-12)
        corrected = np.where(usable, observed / factor, np.nan)
    shown = np.where(np.isnan(corrected), np.nan, observed)
    return np.minimum(shown, corrected), np.maximum(shown, corrected)
