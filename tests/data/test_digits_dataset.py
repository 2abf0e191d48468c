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


def test_digits_have_attributes() -> None:
    names, few = load("digits"), load("digits", attributes=True)
    assert few.classes == ("even", "loop", "large")
    rows = {int(name): row for name, row in zip(names.labels, few.labels.tolist(), strict=True)}
    assert (rows[0], rows[5], rows[6], rows[7]) == ([1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 0, 1])
    assert few.example_id.tolist() == names.example_id.tolist()


def test_coloured_digits_are_blue() -> None:
    grey, blue = load("digits").images, load("digits", coloured=True).images
    assert blue.shape == (1797, 8, 8, 3)
    assert (blue[..., 2] == grey[..., 0]).all()
    assert not blue[..., :2].any()


def test_groups_are_thirds() -> None:
    images = load("digits")
    for column, names in (("slant", "right upright left"), ("ink", "light medium heavy")):
        found, sizes = np.unique(images.groups[column], return_counts=True)
        assert set(found) == set(names.split())
        assert sizes.min() > 0.3 * 1797  # ties at the cuts keep thirds from being exact
