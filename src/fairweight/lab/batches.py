"""Images as a model takes them: bytes in memory, floats only for the batch at hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fairweight.errors import InputError
from fairweight.lab.augment import cropped, moved
from fairweight.specs.training import Augment


@dataclass(frozen=True)
class Scaling:
    """Per channel, what is taken from a pixel (0 to 1) and what the rest is divided by."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class Examples:
    """Images (N, H, W, C) as bytes with their labels: (N,) classes, or (N, attributes) 0 and 1."""

    images: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.images)


def examples(images: NDArray[np.uint8], labels: NDArray[np.integer]) -> Examples:
    """Arrays as tensors, after a look at their shapes."""
    if images.ndim != 4 or images.dtype != np.uint8:
        raise InputError(
            f"images must be bytes of shape (N, H, W, C), and are {images.dtype} of shape "
            f"{images.shape}; single channels need a last axis of 1."
        )
    if len(images) != len(labels):
        raise InputError(f"There are {len(images):,} images and {len(labels):,} labels.")
    return Examples(
        torch.from_numpy(np.ascontiguousarray(images)),
        torch.from_numpy(np.ascontiguousarray(labels)).to(torch.int64),
    )


def scaling_of(images: Tensor) -> Scaling:
    """Mean and standard deviation of every channel over all pixels."""
    values = torch.arange(256, dtype=torch.float64) / 255
    means, deviations = [], []
    for channel in range(images.shape[-1]):
        share = torch.bincount(images[..., channel].reshape(-1).to(torch.int64), minlength=256)
        weight = share / share.sum()
        mean = float((weight * values).sum())
        variance = float((weight * (values - mean) ** 2).sum())
        means.append(mean)
        deviations.append(max(variance, 1e-12) ** 0.5)
    return Scaling(tuple(means), tuple(deviations))


def model_input(
    images: Tensor,
    scaling: Scaling,
    *,
    augment: Augment | None = None,
    random: torch.Generator | None = None,
) -> Tensor:
    """Bytes (N, H, W, C) as scaled floats (N, C, H, W), in channels-last memory."""
    if augment is not None and random is not None:
        images = cropped(images, augment, random)
    scaled = images.to(torch.float32)
    factor = torch.tensor([1 / (255 * s) for s in scaling.std])
    offset = torch.tensor([-m / s for m, s in zip(scaling.mean, scaling.std, strict=True)])
    scaled = scaled.mul_(factor).add_(offset).permute(0, 3, 1, 2)
    if augment is not None and random is not None:
        scaled = moved(scaled, augment, random)
    return scaled


def generator(*numbers: int) -> torch.Generator:
    """Random numbers that belong to these numbers (seed, epoch, step), wherever they are drawn."""
    made = torch.Generator()
    state = np.random.SeedSequence(list(numbers)).generate_state(1, np.uint64)[0]
    made.manual_seed(int(state >> np.uint64(1)))
    return made


def in_order(data: Examples, size: int, only: Sequence[int] | None = None) -> list[slice]:
    """Slices of at most `size` examples."""
    n = len(data) if only is None else len(only)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
