"""Logistic regression on one number, with an intercept for every class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from fairweight.auditing.counts.stats import Floats

_STEPS = 60  # of Newton's method; it needs five to ten unless the data are separated
_LARGEST_STEP = 2.0  # log odds per standard deviation that one step may move
_SEPARATED = 25.0  # log odds beyond which the estimate runs away
_CONVERGED = 1e-9
_MOST_LEVERAGE = 0.99  # of one unit on the slope
_ROUNDING = 1e-10  # share of a sum of squares below which nothing is left of it


@dataclass(frozen=True)
class ClassLogit:
    """The slope with its standard error, or why there is none."""

    slope: float
    std_error: float
    n_units: int  # sampled independently: clusters or examples
    skewness: float  # of the slope's score where the slope is 0; near 0, the error is normal
    status: str  # ok, "constant" or "separated"


def class_logit(
    x: Floats,
    events: Floats,
    trials: Floats,
    label: NDArray[np.integer],
    unit: NDArray[np.int64] | None = None,
) -> ClassLogit:
    """Log odds of an event per unit of x, adjusted for the class.

    Parameters
    ----------
    x
        (n,) finite; of about unit spread.
    events, trials
        (n,) events among trials, 0 ≤ events ≤ trials. They need not be whole: shares over
        members, weights.
    label
        (n,) class of every row. Classes in which every trial or none is an event say nothing
        about the slope and are left out, which is the limit of their maximum likelihood.
    unit
        (n,) what is sampled independently; None where each row is a single trial of its own, and
        the information of the model itself gives the error.

    Notes
    -----
    Maximum likelihood by Newton's method. The class intercepts' part of the information matrix is
    diagonal, so that a thousand classes cost what one does. With units the variance is the
    sandwich (G − 1) / G Σ (s_g / (1 − h_g))² / I², with the sums s_g of scores and the shares h_g
    of the information I: nearly the jackknife that leaves out one unit at a time. Without the
    h_g it finds too much where a few units have most of a property.
    """
    n_classes = int(label.max(initial=-1)) + 1
    had, asked = (np.bincount(label, v, minlength=n_classes) for v in (events, trials))
    mixed = ((had > 0) & (had < asked))[label] & (trials > 0)
    undefined = ClassLogit(np.nan, np.nan, 0, np.nan, "constant")
    if not mixed.any():
        return undefined
    kept, label = np.unique(label[mixed], return_inverse=True)
    x, events, trials = x[mixed], events[mixed], trials[mixed]
    intercept = np.log(had[kept] / (asked - had)[kept])
    slope, skewness = 0.0, np.nan
    for step in range(_STEPS):
        chance = expit(intercept[label] + slope * x)
        residual = events - trials * chance
        variance = trials * chance * (1 - chance)
        weight = np.bincount(label, variance)
        towards = np.bincount(label, variance * x)
        if weight.min() <= 0:
            return ClassLogit(np.nan, np.nan, 0, skewness, "separated")
        away = x - (towards / weight)[label]  # what the classes leave of x
        information = float(variance @ away**2)
        if step == 0:
            if information <= _ROUNDING * float(variance @ x**2):
                return undefined
            skewness = float((variance * (1 - 2 * chance)) @ away**3) / information**1.5
        pull = np.bincount(label, residual)
        move = np.clip(float(residual @ away) / information, -_LARGEST_STEP, _LARGEST_STEP)
        shifts = (pull - towards * move) / weight
        slope += move
        intercept = intercept + np.clip(shifts, -2 * _LARGEST_STEP, 2 * _LARGEST_STEP)
        if abs(slope) > _SEPARATED:
            break
        if abs(move) < _CONVERGED and np.abs(shifts).max() < _CONVERGED:
            units, error = _error(
                residual * away, variance * away**2, None if unit is None else unit[mixed]
            )
            return ClassLogit(slope, error, units, skewness, "ok")
    return ClassLogit(np.nan, np.nan, 0, skewness, "separated")


def _error(score: Floats, part: Floats, unit: NDArray[np.int64] | None) -> tuple[int, float]:
    """Number of units and standard error, from each row's score and its part of the information."""
    information = float(part.sum())
    if unit is None:
        return len(score), information**-0.5
    _, place = np.unique(unit, return_inverse=True)
    n = int(place.max()) + 1
    leverage = np.minimum(np.bincount(place, part) / information, _MOST_LEVERAGE)
    without = np.bincount(place, score) / (1 - leverage)
    return n, float(np.sqrt((n - 1) / n * (without @ without))) / information
