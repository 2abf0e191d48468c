"""The bundled digits: nothing to download, groups measured on strokes."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from fairweight.data import load


def test_the_digits_are_those_of_scikit_learn() -> None:
    images, held = load("digits"), load_digits()
    assert images.images.shape == (1797, 8, 8, 1)
    assert images.labels.tolist() == held.target.tolist()
    assert np.rint(images.images[..., 0] * (16 / 255)).tolist() == held.images.tolist()
    assert set(images.split.tolist()) == {"all"}
    assert images.example_id[[0, -1]].tolist() == ["digit-0000", "digit-1796"]


def test_groups_are_thirds() -> None:
    images = load("digits")
    for column, names in (("slant", "right upright left"), ("ink", "light medium heavy")):
        found, sizes = np.unique(images.groups[column], return_counts=True)
        assert set(found) == set(names.split())
        assert sizes.min() > 0.3 * 1797  # ties at the cuts keep thirds from being exact
