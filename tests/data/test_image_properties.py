"""Properties of images, by hand and beside plain numpy."""

from __future__ import annotations

import numpy as np
import pytest

from fairweight.data import image_properties as properties
from fairweight.data.image_properties import class_means, image_properties, otsu, tilt_line
from fairweight.errors import InputError


def picture(*rows: list[int]) -> np.ndarray:
    return np.array([rows], dtype=np.uint8)


def test_every_property_by_hand() -> None:
    # Foreground (> 127): (0, 1) (1, 0) (1, 1). Means: row 2/3, column 2/3.
    # Σ (row − 2/3)(column − 2/3) = −2/9 − 2/9 + 1/9 = −1/3; Σ (row − 2/3)² = 4/9 + 1/9 + 1/9 = 2/3.
    image = picture([0, 200], [200, 200])
    means = np.array([[[0.0, 197.0], [200.0, 204.0]]])  # off by 0, 3, 0, 4: distance 5
    found = image_properties(image, np.array([0]), means)
    assert {name: values[0] for name, values in found.items()} == pytest.approx(
        {
            "tilt": -0.5,
            "abs_tilt": 0.5,
            "ink": 150.0,
            "contrast": 100 * 0.75**0.5,  # values 150 ± : (150² + 3 · 50²) / 4 = 7,500
            "entropy": 2 - 0.75 * np.log2(3),  # of (1/4, 3/4)
            "foreground": 0.75,
            "distance": 5.0,
        }
    )


def test_the_line_of_the_tilt_is_that_of_least_squares() -> None:
    image = np.random.default_rng(6).integers(0, 256, (9, 7), dtype=np.uint8)
    assert tilt_line(image) == pytest.approx(np.polyfit(*np.nonzero(image > 127), deg=1))
    assert tilt_line(image)[0] == pytest.approx(image_properties(image[None])["tilt"][0])
    assert np.isnan(tilt_line(0 * image)).all()


def test_an_image_without_foreground_has_no_tilt_but_the_rest() -> None:
    found = image_properties(picture([0, 0], [0, 0]))
    assert np.isnan(found["tilt"]).all()
    assert np.isnan(found["abs_tilt"]).all()
    assert [found[name][0] for name in ("ink", "contrast", "entropy", "foreground")] == [0] * 4


def test_the_threshold_is_exclusive_and_may_be_each_image_s_own() -> None:
    image = picture([0, 0, 90], [0, 90, 0], [80, 0, 0])
    assert np.isnan(image_properties(image)["tilt"][0])
    assert image_properties(image, threshold=89)["foreground"][0] == pytest.approx(2 / 9)
    assert image_properties(image, threshold=90)["foreground"][0] == 0
    own = image_properties(image, threshold="otsu")
    assert (own["tilt"][0], own["foreground"][0]) == (-1.0, pytest.approx(3 / 9))


def test_otsu_parts_with_the_largest_variance_between() -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(60, 10, 300), rng.normal(180, 20, 100)]).clip(0, 255)
    whole = values.astype(np.uint8)
    found = otsu(np.bincount(whole, minlength=256)[None])[0]

    def between(cut: float) -> float:
        low, high = whole[whole <= cut], whole[whole > cut]
        return len(low) * len(high) * (low.mean() - high.mean()) ** 2

    assert between(found) == pytest.approx(
        max(between(cut) for cut in range(int(whole.min()), int(whole.max())))
    )
    assert otsu(np.bincount([7] * 4, minlength=256)[None]).tolist() == [255.0]


def test_colours_are_averaged_for_shape_and_pooled_for_entropy() -> None:
    image = np.array([[[[0, 200], [200, 0]]]], dtype=np.uint8)  # 1 × 2 pixels, 2 channels
    found = image_properties(image, threshold=99)
    assert found["foreground"][0] == 1  # both pixels are 100 on average
    assert found["contrast"][0] == 0
    assert found["entropy"][0] == 1  # half of the values are 0, half 200


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (23, 5, 4, 3), dtype=np.uint8)
    labels = rng.integers(0, 3, 23)
    means = class_means(images, labels, 3)
    assert means == pytest.approx(np.stack([images[labels == c].mean(axis=0) for c in range(3)]))
    at_once = image_properties(images, labels, means)
    monkeypatch.setattr(properties, "_CHUNK_VALUES", 4 * 60)
    in_parts = image_properties(images, labels, class_means(images, labels, 3))
    assert at_once.keys() == in_parts.keys()
    for name, values in at_once.items():
        assert in_parts[name] == pytest.approx(values), name


def test_a_class_without_training_images_has_no_distance() -> None:
    images = np.zeros((2, 2, 2), dtype=np.uint8)
    means = class_means(images[:1], np.array([0]), 2)
    found = image_properties(images, np.array([0, 1]), means)["distance"]
    assert found[0] == 0
    assert np.isnan(found[1])


def test_no_images_give_no_values() -> None:
    found = image_properties(np.empty((0, 3, 3), dtype=np.uint8))
    assert {len(values) for values in found.values()} == {0}


IMAGES = np.zeros((2, 3, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((IMAGES.astype(float),), {}, "Images are float64 of shape"),
        ((IMAGES[0],), {}, "give uint8 of shape"),
        ((IMAGES,), {"threshold": "half"}, "threshold is 'half'"),
        ((IMAGES,), {"threshold": 300}, "from 0 to 255"),
        ((IMAGES, np.array([0, 1])), {}, "both labels and class_means"),
        ((IMAGES, np.array([0]), np.zeros((1, 3, 3))), {}, "one per image"),
        ((IMAGES, np.array([0, 1]), np.zeros((1, 3, 3))), {}, "from 0 to 1 for 1 classes"),
        ((IMAGES, np.array([0, 0]), np.zeros((1, 2, 2))), {}, "of the same size"),
    ],
)
def test_what_cannot_be_measured_is_said(arguments: tuple, options: dict, said: str) -> None:
    with pytest.raises(InputError, match=said):
        image_properties(*arguments, **options)
