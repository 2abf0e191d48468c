"""Detections matched with true objects, on boxes whose overlaps can be computed by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairweight.errors import InputError
from fairweight.tables.logs.coco import MISSED, Detections, match, read_ground_truth


def truth_file(tmp_path: Path, *annotations: dict[str, Any]) -> Path:
    file = tmp_path / "instances.json"
    held = {
        "images": [{"id": 1, "light": "day"}, {"id": 2, "light": "night"}],
        "categories": [{"id": 7, "name": "cat"}, {"id": 8, "name": "dog"}],
        "annotations": [{"id": n, **one} for n, one in enumerate(annotations)],
    }
    file.write_text(json.dumps(held))
    return file


def true(category: int, *box: float, image: int = 1, **more: Any) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": list(box), **more}


def found(category: int, score: float, *box: float, image: int = 1) -> dict[str, Any]:
    return {"image_id": image, "category_id": category, "bbox": list(box), "score": score}


def matched(tmp_path: Path, objects: list[Any], detections: list[Any]) -> Detections:
    results = tmp_path / "results.json"
    results.write_text(json.dumps(detections))
    return match(read_ground_truth(truth_file(tmp_path, *objects)), results)


def predictions(made: Detections) -> list[str]:
    return list(made.objects["prediction"].to_pylist())


def false(made: Detections) -> list[float]:
    return list(made.images["false_detections"].to_pylist())


def test_an_iou_of_one_half_is_enough(tmp_path: Path) -> None:
    """10 × 10 against 10 × 20 around it: 100 / 200. One pixel more is too much."""
    made = matched(tmp_path, [true(7, 0, 0, 10, 10)], [found(7, 0.9, 0, 0, 10, 20)])
    assert predictions(made) == ["cat"]
    made = matched(tmp_path, [true(7, 0, 0, 10, 10)], [found(7, 0.9, 0, 0, 10, 21)])
    assert predictions(made) == [MISSED]
    assert false(made) == [1, 0]


def test_another_category_is_a_wrong_prediction_and_no_miss(tmp_path: Path) -> None:
    made = matched(tmp_path, [true(7, 0, 0, 10, 10)], [found(8, 0.9, 0, 0, 10, 10)])
    assert predictions(made) == ["dog"]
    assert false(made) == [0, 0]


def test_the_same_category_comes_before_a_larger_overlap(tmp_path: Path) -> None:
    """The dog's box lies on the cat, but a dog with IoU 100 / 120 is free too."""
    objects = [true(7, 0, 0, 10, 10), true(8, 0, 0, 10, 12)]
    assert predictions(matched(tmp_path, objects, [found(8, 0.9, 0, 0, 10, 10)])) == [MISSED, "dog"]


def test_the_higher_score_takes_an_object_and_the_other_is_false(tmp_path: Path) -> None:
    detections = [found(8, 0.6, 0, 0, 10, 10), found(7, 0.8, 0, 0, 10, 11)]
    made = matched(tmp_path, [true(7, 0, 0, 10, 10)], detections)
    assert predictions(made) == ["cat"]
    assert false(made) == [1, 0]


def test_low_scores_are_left_out(tmp_path: Path) -> None:
    made = matched(tmp_path, [true(7, 0, 0, 10, 10)], [found(7, 0.49, 0, 0, 10, 10)])
    assert (predictions(made), false(made)) == ([MISSED], [0, 0])


def test_crowds_are_no_objects_and_what_lies_in_them_is_not_false(tmp_path: Path) -> None:
    objects = [true(7, 0, 0, 100, 100, iscrowd=1)]
    detections = [found(7, 0.9, 95, 0, 10, 10), found(7, 0.9, 96, 50, 10, 10)]
    made = matched(tmp_path, objects, detections)  # 5 of 10 columns inside, and 4 of 10
    assert len(made.objects) == 0
    assert false(made) == [1, 0]


def test_sizes_images_and_clusters(tmp_path: Path) -> None:
    """32² is small, 96² is medium; images without objects count for false detections."""
    objects = [
        true(7, 0, 0, 32, 32), true(7, 0, 0, 33, 32), true(8, 0, 0, 97, 96, image=2),
        true(8, 0, 0, 97, 96, image=2, area=500.0),
    ]  # fmt: skip
    made = matched(tmp_path, objects, [])
    assert made.objects["size"].to_pylist() == ["small", "medium", "large", "small"]
    assert made.objects["image_id"].to_pylist() == ["1", "1", "2", "2"]
    assert made.objects["light"].to_pylist() == ["day", "day", "night", "night"]


@pytest.mark.parametrize(
    ("detection", "said"),
    [
        ({"image_id": 1}, "detection 1: it needs image_id, category_id, bbox and score"),
        (found(9, 1.0, 0, 0, 1, 1), "category_id 9 is not in"),
        (found(7, 1.0, 0, 0, 1, 1, image=3), "image_id 3 is not in"),
        (found(7, 1.0, 0, 0, 1), "a box that is not four numbers"),
        (found(7, 1.0, 0, 0, -1, 1), "negative or infinite"),
    ],
)
def test_detections_of_another_form_are_named(tmp_path: Path, detection: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        matched(tmp_path, [true(7, 0, 0, 10, 10)], [detection])


def test_annotations_of_unknown_images_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="annotation 0 is of an image or a category"):
        read_ground_truth(truth_file(tmp_path, true(7, 0, 0, 1, 1, image=5)))
