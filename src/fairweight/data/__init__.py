"""Data sets as uint8 images, labels, groups, ids and splits; importing this fills the registry."""

from __future__ import annotations

# The order of the registry, and of `fairweight datasets`: what needs no download comes first.
# isort: off
from fairweight.data import digits as _digits
from fairweight.data import mnist as _mnist
from fairweight.data import mnist as _emnist
from fairweight.data import mnist as _qmnist
from fairweight.data import cifar as _cifar
from fairweight.data import svhn as _svhn
from fairweight.data import celeba as _celeba
from fairweight.data import faces as _fairface
from fairweight.data import faces as _utkface
from fairweight.data import folders as _class_folders
from fairweight.data import animals as _awa2
from fairweight.data import animals as _iwildcam
from fairweight.data import folders as _own_parquet

# isort: on
from fairweight.data.dataset import Images
from fairweight.data.registry import Dataset, dataset, datasets, load, register, unregister

__all__ = ["Dataset", "Images", "dataset", "datasets", "load", "register", "unregister"]
_MODULES = (
    _digits, _mnist, _emnist, _qmnist, _cifar, _svhn, _celeba, _fairface, _utkface,
    _class_folders, _awa2, _iwildcam, _own_parquet,
)  # fmt: skip
