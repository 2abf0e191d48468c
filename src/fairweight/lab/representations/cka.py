"""Linear centred kernel alignment (CKA), of all samples or as a mean over batches."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fairweight.errors import InputError
from fairweight.lab.representations.moments import (
    CONSTANT,
    NOT_FINITE,
    BlockDistance,
    Moments,
    RunningMoments,
    mean_and_status,
    undefined,
)
from fairweight.lab.representations.svcca import as_matrix

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FEWEST = 4  # samples in a batch, because the estimator divides by n − 3
NO_VARIANCE = "the activations of the {} side do not vary"


def cka(
    x: ArrayLike | Tensor, y: ArrayLike | Tensor, *, minibatch: int | None = None
) -> BlockDistance:
    """Linear CKA distance, 1 − CKA, of two representations of the same samples.

    CKA = ‖Y'X‖² / (‖X'X‖ ‖Y'Y‖) of centred activations (Frobenius norms; Kornblith et al. 2019).
    It does not change if a side is rotated or scaled as a whole, and grows towards 1 when there
    are more features than samples, whatever the data.

    Parameters
    ----------
    x, y
        (samples, features); the same samples in the same order.
    minibatch
        Samples per batch: HSIC₁ (Song et al. 2012) is averaged over batches instead, and does not
        grow with the number of features (Nguyen et al. 2021). The last batch may be larger.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(50, 3))
    >>> round(cka(x, 2 * x[:, ::-1]).distance, 6)
    0.0
    """
    left, right = as_matrix(x, "x")[None], as_matrix(y, "y")[None]
    if minibatch is None:
        running = RunningMoments()
        running.add(left, right)
        return cka_of(running.moments())
    if left.shape[1] != right.shape[1]:
        raise InputError(
            f"The two sides have {left.shape[1]:,} and {right.shape[1]:,} samples; give the same "
            "samples in the same order."
        )
    if minibatch < FEWEST:
        raise InputError(f"minibatch = {minibatch} cannot be used; give at least {FEWEST}.")
    batches = RunningHsic()
    for part in batch_slices(left.shape[1], minibatch):
        batches.add(left[:, part], right[:, part])
    return batches.compared()


def batch_slices(n: int, size: int) -> list[slice]:
    """Slices of `size` samples; a rest that is too small for an estimate joins the last."""
    starts = list(range(0, n, size))
    if len(starts) > 1 and n - starts[-1] < FEWEST:
        starts.pop()
    return [slice(start, stop) for start, stop in pairwise([*starts, n])]


def cka_of(moments: Moments) -> BlockDistance:
    """Linear CKA from sums of products; of several locations, the mean of theirs."""
    n, features, locations = moments.samples, moments.features, len(moments.xx)
    if not moments.finite:
        return undefined(n, features, locations, NOT_FINITE)
    xx, yy, xy = (m.square().sum((1, 2)) for m in (moments.xx, moments.yy, moments.xy))
    distance, status = _from_products(xy, xx, yy)
    return BlockDistance(distance, n, features, locations=locations, status=status)


class RunningHsic:
    """Sums over batches of HSIC₁ between and within two sides."""

    def __init__(self) -> None:
        self._samples = 0
        self._features = (0, 0)
        self._sums: Tensor | None = None  # (3, locations)

    def add(self, x: Tensor, y: Tensor) -> None:
        """Add a batch (locations, samples, features) of both sides."""
        n = x.shape[1]
        if n < FEWEST:
            raise InputError(
                f"A batch of {n} samples is too small for the minibatch estimate; give batches of "
                f"at least {FEWEST}, or leave minibatch out."
            )
        first, second = _kernel(x.to(torch.float64)), _kernel(y.to(torch.float64))
        found = torch.stack([hsic(first, second), hsic(first, first), hsic(second, second)])
        self._sums = found if self._sums is None else self._sums + found
        self._samples += n
        self._features = (x.shape[2], y.shape[2])

    def refusal(self) -> str | None:
        return None

    def compared(self) -> BlockDistance:
        if self._sums is None:
            raise InputError("There are no samples to compare: the batches are empty.")
        locations = self._sums.shape[1]
        if not bool(self._sums.isfinite().all()):
            return undefined(self._samples, self._features, locations, NOT_FINITE)
        distance, status = _from_products(*self._sums)
        return BlockDistance(
            distance, self._samples, self._features, locations=locations, status=status
        )


def hsic(first: Tensor, second: Tensor) -> Tensor:
    """HSIC₁ of two kernel matrices (locations, n, n) whose diagonals are 0 (Song et al., eq. 5)."""
    n = first.shape[-1]
    rows, columns = first.sum(-1), second.sum(-1)
    together = (first * second).sum((1, 2))
    apart = rows.sum(-1) * columns.sum(-1) / ((n - 1) * (n - 2))
    mixed = 2 / (n - 2) * (rows * columns).sum(-1)
    value: Tensor = (together + apart - mixed) / (n * (n - 3))
    return value


def _kernel(x: Tensor) -> Tensor:
    # The estimate does not change with the mean; without it, it loses fewer digits.
    mean = x.mean(1, keepdim=True)
    x = x - mean
    x = torch.where(x.abs() <= CONSTANT**0.5 * mean.abs(), 0, x)
    kernel = x @ x.mT
    kernel.diagonal(dim1=1, dim2=2).zero_()
    return kernel


def _from_products(xy: Tensor, xx: Tensor, yy: Tensor) -> tuple[float, str]:
    distances = 1 - (xy / (xx * yy).clamp(min=0).sqrt()).clamp(0, 1)
    reasons = [
        NO_VARIANCE.format("first") if x <= 0 else NO_VARIANCE.format("second") if y <= 0 else None
        for x, y in zip(xx.tolist(), yy.tolist(), strict=True)
    ]
    return mean_and_status(distances, reasons)
