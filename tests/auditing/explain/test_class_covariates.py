"""Covariates of classes, by hand and against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fairweight.auditing.explain import class_rows as module
from fairweight.auditing.explain.class_rows import class_covariates
from fairweight.data.image_properties import image_entropy
from fairweight.errors import InputError


def test_covariates_of_four_images_by_hand() -> None:
    images = np.zeros((4, 1, 4), dtype=np.uint8)
    images[1, 0] = (0, 0, 6, 8)  # shares 1/2, 1/4, 1/4: 1.5 bits
    images[3, 0] = (1, 2, 3, 4)  # four values: 2 bits
    found = class_covariates(images, [0, 0, 0, 1], ["cat", "dog", "fox"]).set_index("class")
    assert found["n_train"].tolist() == [3, 1, 0]
    assert found["imbalance"].tolist() == pytest.approx([3 / 4 - 1 / 3, 1 / 4 - 1 / 3, -1 / 3])
    assert found["class_entropy"].tolist()[:2] == pytest.approx([0.5, 2.0])
    # The mean image of cats is (0, 0, 2, 8/3); distances 10/3, 20/3 and 10/3.
    assert found["intra_class_distance"].tolist()[:2] == pytest.approx([40 / 9, 0.0])
    assert found.loc["fox", ["class_entropy", "intra_class_distance"]].isna().all()


def test_the_paper_counts_of_mnist_give_its_imbalances() -> None:
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    labels = np.repeat(np.arange(10), counts)
    images = np.zeros((len(labels), 1, 1), dtype=np.uint8)
    found = class_covariates(images, labels)["imbalance"]
    assert found.idxmax() == 1
    assert found.idxmin() == 5
    assert found[1] == pytest.approx(0.0124, abs=5e-5)
    assert found[5] == pytest.approx(-0.0097, abs=5e-5)


def test_entropy_equals_scipy_and_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (13, 5, 4, 3), dtype=np.uint8)
    images[:, :, :, 1] //= 64
    wanted = [
        stats.entropy(np.bincount(image.reshape(-1), minlength=256), base=2) for image in images
    ]
    np.testing.assert_allclose(image_entropy(images), wanted, rtol=1e-12)
    labels = rng.integers(0, 2, 13)
    whole = class_covariates(images, labels)
    monkeypatch.setattr(module, "_PIXELS_AT_ONCE", 2 * images[0].size)
    np.testing.assert_allclose(image_entropy(images), wanted, rtol=1e-12)
    pieces = class_covariates(images, labels)
    for column in whole.columns[1:]:
        np.testing.assert_allclose(pieces[column], whole[column], rtol=1e-12)


@pytest.mark.parametrize(
    ("images", "labels", "classes", "words"),
    [
        (np.zeros((2, 3, 3)), [0, 1], None, "images are float64"),
        (np.zeros((2, 9), dtype=np.uint8), [0, 1], None, "of shape \\(2, 9\\)"),
        (np.zeros((0, 3, 3), dtype=np.uint8), [], None, "at least one image"),
        (np.zeros((2, 3, 3), dtype=np.uint8), [0], None, "one label per image"),
        (np.zeros((2, 3, 3), dtype=np.uint8), [0, 2], ["a", "b"], "from 0 to 1"),
        (np.zeros((2, 3, 3), dtype=np.uint8), [0.0, np.nan], None, "missing value"),
    ],
)
def test_what_cannot_be_used_is_said(images, labels, classes, words) -> None:
    with pytest.raises(InputError, match=words):
        class_covariates(images, labels, classes)
