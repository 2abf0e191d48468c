"""Data sets as uint8 images, labels, groups, ids and splits; importing this fills the registry."""

from __future__ import annotations

# The order of the registry, and of `fairweight datasets`: what needs no download comes first.
# isort: off
from fairweight.data import (  # noqa: F401
    digits,
    mnist,
    cifar,
    celeba,
    faces,
    folders,
    animals,
)

# isort: on
from fairweight.data.dataset import Images
from fairweight.data.registry import Dataset, dataset, datasets, load, register, unregister

__all__ = ["Dataset", "Images", "dataset", "datasets", "load", "register", "unregister"]
