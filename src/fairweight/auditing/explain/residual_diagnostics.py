"""What residuals look like: the lower half of a regression table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_FEWEST = 8  # below this the skewness test is not defined


@dataclass(frozen=True)
class Diagnostics:
    """Durbin–Watson depends on the order of rows; normality is not needed for robust errors."""

    durbin_watson: float = np.nan  # 2: neighbouring rows are unrelated; towards 0: they are alike
    omnibus: float = np.nan  # D'Agostino and Pearson, of skewness and kurtosis together
    omnibus_p: float = np.nan
    jarque_bera: float = np.nan
    jarque_bera_p: float = np.nan
    skew: float = np.nan
    kurtosis: float = np.nan  # 3 for a normal distribution
    outside: float = np.nan  # share of fitted accuracies below 0 or above 1


def diagnostics(predicted: NDArray[np.float64], residual: NDArray[np.float64]) -> Diagnostics:
    """The paper's diagnostics, and how often the fit leaves the range of an accuracy."""
    from statsmodels.stats.stattools import durbin_watson, jarque_bera, omni_normtest

    outside = float(((predicted < 0) | (predicted > 1)).mean())
    if len(residual) < _FEWEST or np.allclose(residual, 0, atol=1e-12):
        return Diagnostics(outside=outside)
    omnibus, omnibus_p = omni_normtest(residual)
    statistic, p, skew, kurtosis = jarque_bera(residual)
    return Diagnostics(
        durbin_watson=float(durbin_watson(residual)),
        omnibus=float(omnibus),
        omnibus_p=float(omnibus_p),
        jarque_bera=float(statistic),
        jarque_bera_p=float(p),
        skew=float(skew),
        kurtosis=float(kurtosis),
        outside=outside,
    )
