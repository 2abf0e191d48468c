"""Random changes of a whole batch at once: a gather for crops and flips, one grid for the rest."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from fairweight.specs.training import Augment


def cropped(images: Tensor, spec: Augment, random: torch.Generator) -> Tensor:
    """Random crops after padding with 0, and mirrored images; (N, H, W, C) in and out.

    Works on bytes, before they become floats: a quarter of the memory to move.
    """
    if not spec.crop and not spec.flip:
        return images
    n, height, width, _ = images.shape
    rows = torch.arange(height).expand(n, height)
    columns = torch.arange(width).expand(n, width)
    if spec.flip:
        mirrored = torch.rand(n, 1, generator=random) < 0.5
        columns = torch.where(mirrored, width - 1 - columns, columns)
    if spec.crop:
        pad = spec.crop
        images = functional.pad(images, (0, 0, pad, pad, pad, pad))
        rows = rows + torch.randint(0, 2 * pad + 1, (n, 1), generator=random)
        columns = columns + torch.randint(0, 2 * pad + 1, (n, 1), generator=random)
    every = torch.arange(n)[:, None, None]
    return images[every, rows[:, :, None], columns[:, None, :]]


def moved(images: Tensor, spec: Augment, random: torch.Generator) -> Tensor:
    """Random rotations, shifts and zooms by one bilinear grid; floats (N, C, H, W) in and out."""
    if not spec.rotate and not spec.shift and not spec.zoom:
        return images
    n = len(images)

    def between(reach: float) -> Tensor:
        return (2 * torch.rand(n, generator=random) - 1) * reach

    angle = between(math.radians(spec.rotate))
    size = 1 + between(spec.zoom)
    # The grid is in units of half an image, hence the factor 2.
    right, down = between(2 * spec.shift), between(2 * spec.shift)
    cosine, sine = torch.cos(angle) / size, torch.sin(angle) / size
    matrix = torch.stack(
        [torch.stack([cosine, -sine, right], 1), torch.stack([sine, cosine, down], 1)], 1
    )
    grid = functional.affine_grid(matrix, list(images.shape), align_corners=False)
    return functional.grid_sample(images, grid.to(images.device), align_corners=False)
