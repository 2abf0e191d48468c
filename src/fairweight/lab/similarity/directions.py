"""The directions of one representation that SVCCA keeps, made uncorrelated and of variance 1."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairweight.lab.similarity.rule import Rule

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


def directions(covariance: Tensor, mean: Tensor, samples: int, rule: Rule) -> Directions:
    """Choose directions from sums of products.

    Parameters
    ----------
    covariance
        (locations, features, features) Centred sums of products.
    mean
        (locations, features)
    """
    offset = torch.zeros_like(mean) if rule.centred else samples**0.5 * mean
    values, vectors = torch.linalg.eigh(covariance + offset[:, :, None] * offset[:, None, :])
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


def _kept(squares: Tensor, resolved: Tensor, rule: Rule) -> Tensor:
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
