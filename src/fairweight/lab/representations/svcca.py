"""SVCCA: canonical correlations between the main directions of two representations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor

from fairweight.base.threads import one_thread
from fairweight.errors import InputError, UnknownNameError
from fairweight.lab.batches import as_array
from fairweight.lab.representations.moments import (
    NOT_FINITE,
    BlockDistance,
    Moments,
    RunningMoments,
    decomposed,
    eigenvalues,
    mean_and_status,
    product,
    undefined,
)
from fairweight.specs.similarity import Similarity

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


# Which directions SVCCA compares, and how it sums up their correlations.

Reduce: TypeAlias = Literal["singular-values", "variances"]
Keep: TypeAlias = Literal["below", "reach"]
Summary: TypeAlias = Literal["mean", "share"]


def _check_name(what: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise UnknownNameError(what, given, known)


@dataclass(frozen=True, kw_only=True)
class SvccaRule:
    """The choices of SVCCA; the defaults are those of Simon Says.

    Parameters
    ----------
    reduce
        By what directions are chosen: the running share of singular values or of their squares,
        or a fixed number of the largest.
    threshold, keep
        The directions whose running share lies `below` the threshold, or as many as `reach` it.
    centred
        Whether activations are centred before directions are chosen; correlations always are.
    summary, share
        `mean`: of all correlations. `share`: of the largest that make up this share of their sum.
    ridge
        Added to every direction's variance, as a share of the mean variance of those kept.
    """

    reduce: Reduce | int = "singular-values"
    threshold: float = 0.99
    centred: bool = False
    keep: Keep = "below"
    summary: Summary = "mean"
    share: float = 0.98
    ridge: float = 0.0

    def __post_init__(self) -> None:
        if isinstance(self.reduce, str):
            _check_name("reduce", self.reduce, get_args(Reduce))
        elif self.reduce < 1:
            raise InputError(f"reduce = {self.reduce} keeps no direction; use at least 1.")
        _check_name("keep", self.keep, get_args(Keep))
        _check_name("summary", self.summary, get_args(Summary))
        for name in ("threshold", "share"):
            if not 0 < getattr(self, name) <= 1:
                raise InputError(
                    f"{name} = {getattr(self, name)} cannot be used; give a share above 0 and up "
                    "to 1."
                )
        if not 0 <= self.ridge < float("inf"):
            raise InputError(f"ridge = {self.ridge} cannot be used; give 0 or more.")


# anatome's svcca with accept_rate .99, which Simon Says used.
SIMON_SAYS = SvccaRule()
# google/svcca: centred, and the mean of the coefficients up to 98 % of their sum.
RAGHU = SvccaRule(reduce="variances", centred=True, keep="reach", summary="share")


def rule_of(spec: Similarity) -> SvccaRule:
    """The rule that a spec names."""
    published = SIMON_SAYS if spec.variant == "simon-says" else RAGHU
    return replace(
        published,
        reduce=published.reduce if spec.directions is None else spec.directions,
        threshold=spec.threshold,
        centred=bool(spec.centred),
        ridge=spec.ridge,
    )


# The directions of one representation that SVCCA keeps, made uncorrelated and of variance 1.

# Of squared singular values, relative to the largest. Sums of products hold squares, whose last
# digits are rounding: below this share a direction is made of them more and more.
RESOLVED = 1e-10


@dataclass(frozen=True)
class Directions:
    """Per location, a matrix from centred features to directions of variance 1 (sum of squares).

    Parameters
    ----------
    whitening
        (locations, features, directions); columns of directions that were not kept are 0.
    kept
        (locations,) How many directions the rule kept.
    used
        (locations,) How many of them vary.
    wanted
        (locations,) How many the rule asked for, whether they can be told from rounding or not.
    zero
        (locations,) Whether there was nothing to choose from.
    """

    whitening: Tensor
    kept: Tensor
    used: Tensor
    wanted: Tensor
    zero: Tensor


def directions(covariance: Tensor, mean: Tensor, samples: int, rule: SvccaRule) -> Directions:
    """Choose directions from sums of products.

    Parameters
    ----------
    covariance
        (locations, features, features) Centred sums of products.
    mean
        (locations, features)
    """
    offset = torch.zeros_like(mean) if rule.centred else samples**0.5 * mean
    values, vectors = decomposed(covariance + offset[:, :, None] * offset[:, None, :])
    values, vectors = values.flip(-1), vectors.flip(-1)
    resolved = values > RESOLVED * values[:, :1].clamp(min=0)
    squares = torch.where(resolved, values, 0)  # of singular values
    kept = _kept(squares, resolved, rule)
    number = kept.sum(-1)
    most = int(number.max())
    kept, basis = kept[:, :most], vectors[:, :, :most]
    whitening, used = _whitening(covariance, basis, squares[:, :most], kept, offset, rule.ridge)
    wanted = number
    if isinstance(rule.reduce, int):
        wanted = torch.full_like(number, min(rule.reduce, covariance.shape[-1]))
    return Directions(whitening, number, used, wanted, ~resolved.any(-1))


def _kept(squares: Tensor, resolved: Tensor, rule: SvccaRule) -> Tensor:
    """Which directions the rule keeps, (locations, features) in descending order."""
    place = torch.arange(squares.shape[-1], device=squares.device)
    if isinstance(rule.reduce, int):
        return resolved & (place < rule.reduce)
    sizes = squares.sqrt() if rule.reduce == "singular-values" else squares
    running = sizes.cumsum(-1)
    below = running / running[:, -1:] < rule.threshold  # False where all are 0
    if rule.keep == "below":
        return below & resolved
    if rule.threshold == 1:
        return resolved
    return resolved & (place <= below.sum(-1, keepdim=True))


def _whitening(
    covariance: Tensor, basis: Tensor, squares: Tensor, kept: Tensor, offset: Tensor, ridge: float
) -> tuple[Tensor, Tensor]:
    """Whiten the kept directions; returns the matrix and how many of them vary.

    In the basis of the directions the covariance is diag(squares) − m m', where m is what the
    offset is there. Scaled by 1 / √squares it is I − u u', whose inverse root is known: it acts
    along u alone. That saves a second decomposition.
    """
    number = kept.sum(-1)
    part = (basis.mT @ offset[:, :, None])[:, :, 0] * kept
    variances = torch.where(kept, squares - part**2, 0)
    added = ridge * variances.sum(-1, keepdim=True) / number.clamp(min=1)[:, None]
    scale = torch.where(kept, (squares + added).rsqrt(), 0)
    along = part * scale
    length = along.norm(dim=-1, keepdim=True)
    along = torch.where(length > 0, along / length, 0)
    scaled = basis * scale[:, None, :]
    line = scaled @ along[:, :, None]
    # What is left along u, from centred sums: 1 − u'u would lose the digits of a large mean.
    left = (line.mT @ covariance @ line)[:, 0]
    left += added * ((along * scale) ** 2).sum(-1, keepdim=True)
    constant = (length > 0) & (left <= RESOLVED)
    stretch = torch.where(length > 0, torch.where(constant, 0, left.rsqrt()) - 1, 0)
    whitening = scaled + line * (stretch * along)[:, None, :]
    return whitening, number - constant[:, 0].long()


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
) -> BlockDistance:
    """SVCCA distance of two representations of the same samples.

    Directions of each side are chosen by its singular values, and the canonical correlations
    between them summed up: 1 − Σρ / min(k₁, k₂) with the defaults, which are those of Simon Says
    (anatome). Google's are `reduce="variances"` (or 20), `centred=True`, `keep="reach"`,
    `summary="share"`.

    Computed from sums of products in float64. Directions whose singular value is below 10⁻⁵ of
    the largest cannot be distinguished from rounding there; they are dropped, and counted in
    `dropped` if the rule asked for them. So are directions that do not vary.

    Parameters
    ----------
    x, y
        (samples, features); the same samples in the same order.
    reduce, threshold, centred, keep, summary, share, ridge
        As in `SvccaRule`.

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
    rule = SvccaRule(
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


@one_thread()
def svcca_of(moments: Moments, rule: SvccaRule) -> BlockDistance:
    """SVCCA from sums of products; of several locations, the mean of theirs."""
    n, features, locations = moments.samples, moments.features, len(moments.xx)
    if not moments.finite:
        return undefined(n, features, locations, NOT_FINITE)
    if reason := too_few(moments.samples, moments.features, rule.ridge):
        return undefined(n, features, locations, reason)
    x = directions(moments.xx, moments.mean_x, n, rule)
    y = directions(moments.yy, moments.mean_y, n, rule)
    # Canonical correlations per location, the largest first.
    cross = x.whitening.mT @ moments.xy @ y.whitening
    small = product(cross.mT if cross.shape[1] <= cross.shape[2] else cross)
    correlations = eigenvalues(small).clamp(0, 1).sqrt().flip(-1)
    number = torch.minimum(x.used, y.used)
    distances = 1 - _summary(correlations, number, rule)
    reasons = [
        _reason(x, i, "first", rule) or _reason(y, i, "second", rule) for i in range(locations)
    ]
    distance, status = mean_and_status(distances, reasons)
    return BlockDistance(
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
    """An array or tensor of shape (samples, features), in float64, or float32 as it was."""
    held = as_array(values)
    if held.ndim != 2 or not held.shape[1] or held.dtype.kind not in "fiub":
        raise InputError(
            f"{name} must be numbers of shape (samples, features), and is {held.dtype} of shape "
            f"{held.shape}; flatten or pool it first."
        )
    kind = np.float32 if held.dtype == np.float32 else np.float64
    return torch.from_numpy(np.require(held, kind, ["C", "W"]))


def _summary(correlations: Tensor, number: Tensor, rule: SvccaRule) -> Tensor:
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


def _reason(side: Directions, location: int, which: str, rule: SvccaRule) -> str | None:
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
