"""Data sets that come as one array per split."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fairweight.data.dataset import Images, Pixels, Whole

SPLITS = ("train", "test")
DIGITS = tuple("0123456789")


def joined(
    name: str, parts: Mapping[str, tuple[Pixels, Whole]], classes: tuple[str, ...]
) -> Images:
    """Splits one after another; ids are the split and the place in its file."""
    sizes = {split: len(label) for split, (_, label) in parts.items()}
    return Images(
        name=name,
        images=np.concatenate([pixels for pixels, _ in parts.values()]),
        labels=np.concatenate([label for _, label in parts.values()]),
        classes=classes,
        groups={},
        example_id=np.array([f"{split}-{i}" for split, n in sizes.items() for i in range(n)]),
        split=np.repeat(list(sizes), list(sizes.values())),
    )
