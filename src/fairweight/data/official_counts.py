"""What the official data sets hold, for costs of studies whose data are not at hand."""

from __future__ import annotations

from typing import NamedTuple


class OfficialCounts(NamedTuple):
    """Numbers of examples as their authors publish them, and the shape of an image."""

    train: int
    test: int
    size: int
    channels: int
    classes: int


OFFICIAL: dict[str, OfficialCounts] = {
    "mnist": OfficialCounts(60_000, 10_000, 28, 1, 10),
    "fashion-mnist": OfficialCounts(60_000, 10_000, 28, 1, 10),
    "kmnist": OfficialCounts(60_000, 10_000, 28, 1, 10),
    "qmnist": OfficialCounts(60_000, 60_000, 28, 1, 10),
    "emnist-byclass": OfficialCounts(697_932, 116_323, 28, 1, 62),
    "cifar10": OfficialCounts(50_000, 10_000, 32, 3, 10),
    "cifar100": OfficialCounts(50_000, 10_000, 32, 3, 100),
    "svhn": OfficialCounts(73_257, 26_032, 32, 3, 10),
    # Photographs have no common size: this is what they are read in.
    "imagenette": OfficialCounts(9_469, 3_925, 128, 3, 10),
    "imagewoof": OfficialCounts(9_025, 3_929, 128, 3, 10),
}
