"""Groups measured on strokes, by hand and beside least squares."""

from __future__ import annotations

import numpy as np
import pytest

from fairweight.data.image_properties import levels, terciles, tilt


def test_tilt_by_hand() -> None:
    # Pixels (row, column): (0, 3) (1, 2) (1, 1) (2, 0). Means: row 1, column 1.5.
    # Σ (row−1)(column−1.5) = (−1)(1.5) + 0 + 0 + (1)(−1.5) = −3;  Σ (row−1)² = 1 + 0 + 0 + 1 = 2.
    image = np.array([[0, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]], dtype=float)
    assert tilt(image[None]).tolist() == [-1.5]
    assert tilt(image[None, :, ::-1]).tolist() == [1.5]  # the mirror image leans the other way


def test_tilt_is_the_slope_of_least_squares() -> None:
    images = np.random.default_rng(0).random((5, 8, 8))
    expected = [np.polyfit(*np.nonzero(image > 0.5), deg=1)[0] for image in images]
    assert tilt(images) == pytest.approx(np.array(expected), abs=1e-12)


def test_tilt_is_undefined_without_two_rows() -> None:
    flat = np.zeros((1, 3, 3))
    flat[0, 1] = 1.0
    assert np.isnan(tilt(np.concatenate([flat, np.zeros((1, 3, 3))]))).all()


def test_terciles_part_the_values_evenly() -> None:
    values = np.arange(9.0)
    names = levels(values, cuts=terciles(values), names=("low", "middle", "high"))
    assert names == ["low"] * 3 + ["middle"] * 3 + ["high"] * 3
