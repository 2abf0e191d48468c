"""SVCCA: canonical correlations between the main directions of two representations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from fairweight.errors import InputError
from fairweight.lab.loaders.inputs import as_array
from fairweight.lab.similarity.compared import (
    NOT_FINITE,
    Compared,
    mean_and_status,
    undefined,
)
from fairweight.lab.similarity.directions import Directions, directions
from fairweight.lab.similarity.moments import Moments, RunningMoments
from fairweight.lab.similarity.rule import Keep, Reduce, Rule, Summary

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def svcca(
    x: ArrayLike | Tensor,
    y: ArrayLike | Tensor,
    *,
    reduce: Reduce | int = "singular-values",
    threshold: float = 0.99,
    centred: bool = False,
    keep: Keep = "below",
    summary: Summary = "mean",
    share: float = 0.98,
    ridge: float = 0.0,
) -> Compared:
    """SVCCA distance of two representations of the same samples.

    Directions of each side are chosen by its singular values, and the canonical correlations
    between them summed up: 1 − Σρ / min(k₁, k₂) with the defaults, which are those of Simon Says
    (anatome). Google's are `reduce="variances"` (or 20), `centred=True`, `keep="reach"`,
    `summary="share"`.

    Computed from sums of products in float64. Directions whose singular value is below 10⁻⁵ of
    the largest cannot be told from rounding there; they are dropped, and counted in `dropped` if
    the rule asked for them. So are directions that do not vary.

    Parameters
    ----------
    x, y
        (samples, features); the same samples in the same order.
    reduce, threshold, centred, keep, summary, share, ridge
        As in `Rule`.

    Returns
    -------
    Compared
        NaN with a reason where no direction is kept. More features than samples are refused,
        because canonical correlations are then 1 whatever the data, unless `ridge` is above 0.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(500, 6))
    >>> mixed = x @ np.random.default_rng(1).normal(size=(6, 6))
    >>> round(svcca(x, mixed, reduce=6).distance, 6)
    0.0
    """
    rule = Rule(
        reduce=reduce,
        threshold=threshold,
        centred=centred,
        keep=keep,
        summary=summary,
        share=share,
        ridge=ridge,
    )
    running = RunningMoments()
    running.add(as_matrix(x, "x")[None], as_matrix(y, "y")[None])
    moments = running.moments()
    if reason := too_few(moments.samples, moments.features, rule.ridge):
        raise InputError(f"{reason[0].upper()}{reason[1:]}.")
    return svcca_of(moments, rule)


def svcca_of(moments: Moments, rule: Rule) -> Compared:
    """SVCCA from sums of products; of several locations, the mean of theirs."""
    n, features, locations = moments.samples, moments.features, len(moments.xx)
    if not moments.finite:
        return undefined(n, features, locations, NOT_FINITE)
    if reason := too_few(moments.samples, moments.features, rule.ridge):
        return undefined(n, features, locations, reason)
    x = directions(moments.xx, moments.mean_x, n, rule)
    y = directions(moments.yy, moments.mean_y, n, rule)
    correlations = _correlations(x.whitening, moments.xy, y.whitening)
    number = torch.minimum(x.used, y.used)
    distances = 1 - _summary(correlations, number, rule)
    reasons = [
        _reason(x, i, "first", rule) or _reason(y, i, "second", rule) for i in range(locations)
    ]
    distance, status = mean_and_status(distances, reasons)
    return Compared(
        distance=distance,
        samples=n,
        features=features,
        directions=(float(x.used.double().mean()), float(y.used.double().mean())),
        dropped=int((x.wanted - x.used + y.wanted - y.used).sum()),
        locations=locations,
        status=status,
    )


def too_few(samples: int, features: tuple[int, int], ridge: float) -> str | None:
    """Why there are too few samples for their features, if so."""
    most = max(features)
    if ridge > 0 or samples > most:
        return None
    return (
        f"{most:,} features need more than {most:,} samples, and there are {samples:,}; "
        "give more examples, pool the maps (maps = 'pooled'), or regularise (ridge = 0.01)"
    )


def as_matrix(values: ArrayLike | Tensor, name: str) -> Tensor:
    """An array or tensor of shape (samples, features), in float64."""
    held = as_array(values)
    if held.ndim != 2 or not held.shape[1] or held.dtype.kind not in "fiub":
        raise InputError(
            f"{name} must be numbers of shape (samples, features), and is {held.dtype} of shape "
            f"{held.shape}; flatten or pool it first."
        )
    return torch.from_numpy(held.astype(np.float64))


def _correlations(x: Tensor, xy: Tensor, y: Tensor) -> Tensor:
    """Canonical correlations per location, the largest first."""
    cross = x.mT @ xy @ y
    small = cross @ cross.mT if cross.shape[1] <= cross.shape[2] else cross.mT @ cross
    squares: Tensor = torch.linalg.eigvalsh(small)
    return squares.clamp(0, 1).sqrt().flip(-1)


def _summary(correlations: Tensor, number: Tensor, rule: Rule) -> Tensor:
    """One similarity per location; `number` of the correlations stand for directions."""
    place = torch.arange(correlations.shape[-1], device=correlations.device)
    held = torch.where(place < number[:, None], correlations, 0)
    counted = number
    if rule.summary == "share":
        running = held.cumsum(-1)
        before = (running < rule.share * running[:, -1:]).sum(-1)
        counted = torch.minimum(before + 1, number)
        held = torch.where(place < counted[:, None], held, 0)
    return held.sum(-1) / counted


def _reason(side: Directions, location: int, which: str, rule: Rule) -> str | None:
    """Why a side has no direction to compare at a location, if so."""
    if side.used[location] > 0:
        return None
    what = "constant" if rule.centred else "0"
    if side.zero[location]:
        return f"all activations of the {which} side are {what}"
    if side.kept[location] == 0:
        return (
            f"no direction of the {which} side is kept, because the largest alone reaches "
            f"{rule.threshold:.0%} (keep = 'reach' keeps it)"
        )
    return f"no kept direction of the {which} side varies"
