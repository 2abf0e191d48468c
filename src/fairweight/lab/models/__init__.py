"""Architectures, one per file; importing this fills the registry."""

from __future__ import annotations

# Importing a module registers its architectures; the order is the order of listings.
# isort: off
from fairweight.lab.models import lenet as _lenet
from fairweight.lab.models import alexnet as _alexnet
from fairweight.lab.models import vgg as _vgg
from fairweight.lab.models import resnet as _resnet
from fairweight.lab.models import resnet as _resnet_x4
from fairweight.lab.models import mobilenet as _mobilenet
from fairweight.lab.models import efficientnet_lite as _efficientnet_lite
from fairweight.lab.models import face_gender as _face_gender

# isort: on
from fairweight.lab.models.registry import Architecture, architecture, architectures, build

__all__ = ["Architecture", "architecture", "architectures", "build"]
_MODULES = (
    _lenet,
    _alexnet,
    _vgg,
    _resnet,
    _resnet_x4,
    _mobilenet,
    _efficientnet_lite,
    _face_gender,
)
