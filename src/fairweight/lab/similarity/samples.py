"""Features of a network as samples: (locations, samples, features)."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, interpolate

from fairweight.errors import InputError
from fairweight.specs.similarity import Maps


def as_samples(feature: Tensor, maps: Maps, size: int = 16, *, name: str = "x") -> Tensor:
    """A batch of features, (N, features) or maps (N, C, H, W), as (locations, samples, features).

    Parameters
    ----------
    maps
        What becomes of maps: `per-location` gives size × size locations of N samples, `pooled`
        one of N (means over space), `folded` one of N × H × W, `flattened` one of N samples with
        C × H × W features.
    name
        How messages call the feature.
    """
    if feature.dim() == 2:
        return feature[None]
    if feature.dim() != 4:
        raise InputError(
            f"Feature '{name}' has the shape {tuple(feature.shape)}; only vectors (N, features) "
            "and maps (N, C, H, W) can be compared: name a module that returns one of them."
        )
    if maps == "pooled":
        return feature.mean((2, 3))[None]
    if maps == "flattened":
        return feature.flatten(1)[None]
    if maps == "folded":
        return feature.permute(0, 2, 3, 1).reshape(1, -1, feature.shape[1])
    resized = resize(feature, size)
    if not resized.is_contiguous():  # channels last
        return resized.flatten(2).permute(2, 0, 1)
    # Two axes are transposed in blocks, three are not: a third of the time.
    places = resized.view(-1, size * size).t().contiguous()
    return places.view(size * size, len(feature), -1)


def resize(feature: Tensor, size: int) -> Tensor:
    """Maps as size × size: larger sides are pooled by averages, smaller ones bicubic."""
    height, width = feature.shape[2:]
    if height > size or width > size:
        feature = adaptive_avg_pool2d(feature, (min(height, size), min(width, size)))
    if tuple(feature.shape[2:]) == (size, size):
        return feature
    return interpolate(feature, size=(size, size), mode="bicubic", align_corners=False)
