"""Random changes of a batch: a slice per image for crops and flips, one grid for the rest."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from fairweight.specs.training import Augment


def cropped(images: Tensor, spec: Augment, random: torch.Generator) -> Tensor:
    """Random crops after padding with 0, and mirrored images; (N, H, W, C) in and out.

    Works on bytes, before they become floats: a quarter of the memory to move. Slices of numpy
    arrays are quicker here than a gather over the batch, of small images as of large ones.
    """
    if not spec.crop and not spec.flip:
        return images
    n, height, width, _ = images.shape
    mirrored = (torch.rand(n, generator=random) < spec.flip / 2).tolist()
    down, right = torch.randint(0, 2 * spec.crop + 1, (2, n), generator=random).tolist()
    padded = functional.pad(images, (0, 0, *[spec.crop] * 4)).numpy()
    made = torch.empty_like(images)
    for source, target, mirror, y, x in zip(
        padded, made.numpy(), mirrored, down, right, strict=True
    ):
        part = source[y : y + height, x : x + width]
        target[:] = part[:, ::-1] if mirror else part
    return made


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
