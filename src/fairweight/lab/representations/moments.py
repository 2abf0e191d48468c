"""Sums of products of two representations, added up batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan, nan

import numpy as np
import torch
from torch import Tensor

from fairweight.base.threads import one_thread
from fairweight.errors import InputError

AT_ONCE = 16  # locations: neighbours in memory, so that maps are read once and not strewn
SAMPLES = 2_048  # at a time, so that what is made of them stays in the processor's cache
SHIFT_FROM = 256  # samples whose mean is near enough to the mean of all
MOST_BYTES = 4 * 2**30
# A feature's variance relative to its squared mean below which it is rounding of a constant.
CONSTANT = 1e-24


@dataclass(frozen=True)
class Moments:
    """Centred sums of products, (locations, features, features), and means, in float64."""

    samples: int
    xx: Tensor
    yy: Tensor
    xy: Tensor
    mean_x: Tensor  # (locations, features)
    mean_y: Tensor

    @property
    def features(self) -> tuple[int, int]:
        return self.xx.shape[-1], self.yy.shape[-1]

    @property
    def finite(self) -> bool:
        return all(bool(sums.isfinite().all()) for sums in (self.xx, self.yy, self.xy))


class RunningMoments:
    """Moments of samples that come in batches; nothing but sums is kept."""

    def __init__(self) -> None:
        self._samples = 0

    @property
    def samples(self) -> int:
        return self._samples

    @property
    def features(self) -> tuple[int, int]:
        return self._xx.shape[-1], self._yy.shape[-1]

    @one_thread()
    def add(self, x: Tensor, y: Tensor) -> None:
        """Add samples (locations, samples, features) of both sides."""
        if not self._samples:
            self._begin(x, y)
        locations, p, q = self._xy.shape
        if x.shape[1] != y.shape[1]:
            raise InputError(
                f"The two sides have {x.shape[1]:,} and {y.shape[1]:,} samples; give the same "
                "samples in the same order."
            )
        if x.shape[::2] != (locations, p) or y.shape[::2] != (locations, q):
            raise InputError(
                f"Batches of shape {tuple(x.shape)} and {tuple(y.shape)} do not fit those before "
                f"them ({locations} locations, {p} and {q} features); give batches of one kind."
            )
        self._samples += x.shape[1]
        for start in range(0, len(x), AT_ONCE):
            # Products of values near 0 lose no digits when the means are taken off at the end.
            places = slice(start, start + AT_ONCE)
            for first in range(0, x.shape[1], SAMPLES):
                part = slice(first, first + SAMPLES)
                left = self._shifted_x(x[:, part], places)
                right = self._shifted_y(y[:, part], places)
                self._sum_x[places] += _sum(left)
                self._sum_y[places] += _sum(right)
                self._xx[places] += product(left)
                self._yy[places] += product(right)
                self._xy[places] += product(left, right)

    @one_thread()
    def moments(self) -> Moments:
        if not self._samples:
            raise InputError("There are no samples to compare: the batches are empty.")
        n, x, y = self._samples, self._sum_x, self._sum_y
        mean_x, mean_y = self._shifted_x.shift[:, 0] + x / n, self._shifted_y.shift[:, 0] + y / n
        xx, yy = self._xx - _outer(x, x) / n, self._yy - _outer(y, y) / n
        xy = self._xy - _outer(x, y) / n
        in_x, in_y = _varies(xx, mean_x, n), _varies(yy, mean_y, n)
        return Moments(
            samples=n,
            xx=xx * _outer(in_x, in_x),
            yy=yy * _outer(in_y, in_y),
            xy=xy * _outer(in_x, in_y),
            mean_x=mean_x,
            mean_y=mean_y,
        )

    def _begin(self, x: Tensor, y: Tensor) -> None:
        locations, p, q = x.shape[0], x.shape[2], y.shape[2]
        needed = 8 * locations * (p * p + q * q + p * q)
        if needed > MOST_BYTES:
            raise InputError(
                f"{p:,} and {q:,} features at {locations:,} locations need "
                f"{needed / 2**30:,.1f} GB of sums (at most {MOST_BYTES // 2**30} GB are taken); "
                "pool the maps (maps = 'pooled'), or make them smaller (size = 8)."
            )
        self._shifted_x, self._shifted_y = _Shifted(x), _Shifted(y)
        zeros = partial(x.new_zeros, dtype=torch.float64)
        self._sum_x, self._sum_y = zeros(locations, p), zeros(locations, q)
        self._xx, self._yy = zeros(locations, p, p), zeros(locations, q, q)
        self._xy = zeros(locations, p, q)


class _Shifted:
    """Samples less a mean of the first of them, in float64, in memory that is used again."""

    def __init__(self, first: Tensor) -> None:
        near = first[:, :SHIFT_FROM].to(torch.float64)
        self.shift = near.mean(1, keepdim=True).nan_to_num()
        self._buffer = near.new_empty(0)

    def __call__(self, samples: Tensor, places: slice) -> Tensor:
        held = samples[places]
        if held.shape != self._buffer.shape:
            self._buffer = self._buffer.new_empty(held.shape)
        # In two steps: to subtract while converting takes three times as long.
        return self._buffer.copy_(held).sub_(self.shift[places])


# On a processor numpy multiplies and decomposes: x'x by halves, which torch does not, and symmetric
# matrices of 512 in a tenth less time, their eigenvalues alone in a fifth less.


def product(x: Tensor, y: Tensor | None = None) -> Tensor:
    """x'y, or x'x, per location."""
    if x.device.type != "cpu":
        return x.mT @ (x if y is None else y)
    left = x.numpy()
    right = left if y is None else y.numpy()
    with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is reported at the end
        return torch.from_numpy(left.transpose(0, 2, 1) @ right)


def decomposed(symmetric: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues per location, the smallest first, and their vectors."""
    if symmetric.device.type != "cpu":
        values, vectors = torch.linalg.eigh(symmetric)
        return values, vectors
    found = np.linalg.eigh(symmetric.numpy())
    return torch.from_numpy(found.eigenvalues), torch.from_numpy(found.eigenvectors)


def eigenvalues(symmetric: Tensor) -> Tensor:
    """Eigenvalues alone, the smallest first."""
    if symmetric.device.type != "cpu":
        values: Tensor = torch.linalg.eigvalsh(symmetric)
        return values
    return torch.from_numpy(np.linalg.eigvalsh(symmetric.numpy()))


def _sum(x: Tensor) -> Tensor:
    """Over samples, as a product, which is quicker than a sum over rows."""
    return (x.new_ones(len(x), 1, x.shape[1]) @ x)[:, 0]


def _varies(sums: Tensor, mean: Tensor, samples: int) -> Tensor:
    """1 for features that vary, 0 for constants, NaN counting as the first."""
    return (~(sums.diagonal(dim1=1, dim2=2) <= CONSTANT * samples * mean**2)).to(sums.dtype)


def _outer(x: Tensor, y: Tensor) -> Tensor:
    return x[:, :, None] * y[:, None, :]


# The outcome of comparing two representations.

DEFINED = "ok"
NOT_FINITE = "activations hold NaN or infinite numbers"


@dataclass(frozen=True)
class BlockDistance:
    """How far apart two representations of the same samples are.

    Parameters
    ----------
    distance
        From 0 (alike up to what the measure ignores) to 1; NaN where undefined. Of several
        locations the mean over those where it is defined.
    samples
        Rows that were compared.
    features
        Columns of the two sides.
    directions
        Of SVCCA, how many directions of each side were compared (mean over locations).
    dropped
        Of the directions that the rule asked for, how many could not be told from rounding or do
        not vary (both sides, all locations).
    locations
        Of a convolutional map; 1 otherwise.
    status
        `ok`, or why it is undefined (at some locations).
    """

    distance: float
    samples: int
    features: tuple[int, int]
    directions: tuple[float, float] = (nan, nan)
    dropped: int = 0
    locations: int = 1
    status: str = DEFINED

    @property
    def similarity(self) -> float:
        return 1 - self.distance


def undefined(
    samples: int, features: tuple[int, int], locations: int, reason: str
) -> BlockDistance:
    """No distance, and why."""
    return BlockDistance(nan, samples, features, locations=locations, status=reason)


def mean_and_status(distances: Tensor, reasons: Sequence[str | None]) -> tuple[float, str]:
    """The mean over locations that have no reason to be undefined, and what to say of the rest."""
    undefined_for = [reason for reason in reasons if reason is not None]
    values = [
        float(value)
        for value, reason in zip(distances.tolist(), reasons, strict=True)
        if reason is None
    ]
    mean = min(1.0, max(0.0, sum(values) / len(values))) if values else nan
    if not undefined_for:
        return mean, DEFINED
    if isnan(mean):
        return nan, undefined_for[0]
    n = len(undefined_for)
    return mean, f"{n} of {len(reasons)} locations are left out: {undefined_for[0]}"
