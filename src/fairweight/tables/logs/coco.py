"""Detections in COCO's format, matched with the true objects: one row per object.

    instances.json   images [{id, …}], categories [{id, name}],
                     annotations [{id, image_id, category_id, bbox [x, y, w, h], area, iscrowd}]
    results.json     a list of {image_id, category_id, bbox [x, y, w, h], score}

Detections below the score threshold are left out. Of each image, detections take objects in the
order of falling score: the one with the largest IoU of at least .5 that is free, of the same
category if there is one. An object's prediction is the category of the detection that took it, or
`(missed)`. Detections that take nothing are false, unless half of them lies in a crowd
(`iscrowd`), which is no object. A mean average precision is no sum over objects, so that it gets no
interval here: its parts, recall by category and false detections per image, do.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fairweight.base.types import Floats
from fairweight.base.wording import shown
from fairweight.errors import InputError
from fairweight.tables.logs.records import Cell, json_members, plain_fields

LISTS = ("images", "annotations", "categories")
DETECTION = frozenset(("image_id", "category_id", "bbox", "score"))
MISSED = "(missed)"
IOU, SCORE = 0.5, 0.5
SIZES = ((32.0**2, "small"), (96.0**2, "medium"), (float("inf"), "large"))  # COCO's areas


@dataclass(frozen=True)
class GroundTruth:
    """The true objects of a set of images."""

    path: Path
    images: Mapping[Any, Mapping[str, Cell]]
    categories: Mapping[Any, str]
    objects: Mapping[Any, Sequence[Mapping[str, Any]]]  # by image
    crowds: Mapping[Any, Floats]  # boxes by image


@dataclass(frozen=True)
class Detections:
    """What a detector made of the images.

    Parameters
    ----------
    objects
        One row per true object: `example_id`, `image_id`, `label`, `prediction`, `size`, and the
        images' own columns.
    images
        One row per image: `example_id`, `false_detections`, and the images' own columns.
    """

    objects: pa.Table
    images: pa.Table


def is_ground_truth(path: Path) -> bool:
    """Whether a file looks like COCO's annotations: a record with two of its three lists."""
    if path.suffix != ".json" or not path.is_file():
        return False
    seen = set()
    with suppress(InputError):
        for name, _ in json_members(path, LISTS):
            seen.add(name)
            if name is None or len(seen.intersection(LISTS)) == 2:
                break
    return len(seen.intersection(LISTS)) == 2


def read_ground_truth(path: str | Path) -> GroundTruth:
    """Read `instances.json`, of each object what is compared: outlines are passed over."""
    place = Path(path)
    categories: dict[Any, str] = {}
    images: dict[Any, dict[str, Cell]] = {}
    objects: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    crowds: dict[Any, list[Any]] = defaultdict(list)
    try:
        for name, one in json_members(place, LISTS):
            if name == "categories":
                categories[one["id"]] = str(one["name"])
            elif name == "images":
                images[one["id"]] = {k: v for k, v in plain_fields(one).items() if k != "id"}
            elif name == "annotations" and one.get("iscrowd"):
                crowds[one["image_id"]].append(one["bbox"])
            elif name == "annotations":
                kept = {key: one[key] for key in ("id", "image_id", "category_id", "bbox")}
                objects[one["image_id"]].append({**kept, "area": one.get("area")})
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"'{place}' is no file of COCO annotations: {shown(str(error), 60)} is missing."
        ) from None
    for image, held in objects.items():
        for one in held:
            if image not in images or one["category_id"] not in categories:
                raise InputError(
                    f"'{place}': the annotation {shown(one['id'], 40)} is of an image or a "
                    "category that the file does not list."
                )
    boxed = {image: _boxes(found, place) for image, found in crowds.items()}
    return GroundTruth(place, images, categories, objects, boxed)


def is_results(path: Path) -> bool:
    """Whether a file is a list of detections."""
    if path.suffix != ".json" or not path.is_file():
        return False
    with suppress(InputError):
        for name, one in json_members(path):
            return name is None and isinstance(one, Mapping) and one.keys() >= DETECTION
    return False


def match(truth: GroundTruth, results: str | Path, *, score: float = SCORE) -> Detections:
    """Match a detector's results with the true objects.

    Parameters
    ----------
    score
        Detections with a lower score are left out.
    """
    place = Path(results)
    found: dict[Any, list[Mapping[str, Any]]] = defaultdict(list)
    for number, (name, one) in enumerate(json_members(place), start=1):
        if name is not None:
            raise InputError(
                f"'{place}' is no list of detections (image_id, category_id, bbox, score)."
            )
        if not isinstance(one, Mapping) or not one.keys() >= DETECTION:
            raise InputError(
                f"'{place}', detection {number:,}: it needs image_id, category_id, bbox and score."
            )
        for field, known in (("image_id", truth.images), ("category_id", truth.categories)):
            if one[field] not in known:
                raise InputError(
                    f"'{place}', detection {number:,}: {field} {shown(one[field], 40)} is not in "
                    f"'{truth.path}'; give the annotations that the detector was run on."
                )
        sure = one["score"]
        if not isinstance(sure, int | float) or isinstance(sure, bool) or not math.isfinite(sure):
            raise InputError(f"'{place}', detection {number:,}: its score is no number.")
        if sure >= score:
            found[one["image_id"]].append({key: one[key] for key in DETECTION})
    rows: list[dict[str, Any]] = []
    images: list[dict[str, Any]] = []
    for image, facts in truth.images.items():
        objects = truth.objects.get(image, ())
        detections = sorted(found.get(image, ()), key=lambda one: -one["score"])
        taken, false = _matched(objects, detections, truth.crowds.get(image), place)
        images.append({"example_id": str(image), "false_detections": float(false), **facts})
        for one, by in zip(objects, taken, strict=True):
            area = float(one.get("area") or one["bbox"][2] * one["bbox"][3])
            rows.append(
                {
                    "example_id": str(one["id"]),
                    "image_id": str(image),
                    "label": truth.categories[one["category_id"]],
                    "prediction": MISSED if by is None else truth.categories[by["category_id"]],
                    "size": next(name for most, name in SIZES if area <= most),
                    **facts,
                }
            )
    return Detections(pa.Table.from_pylist(rows), pa.Table.from_pylist(images))


def _boxes(found: Sequence[Any], place: Path) -> Floats:
    """Corners (x0, y0, x1, y1) of boxes (x, y, width, height)."""
    try:
        boxes = np.asarray(found, dtype=np.float64).reshape(len(found), 4)
    except (TypeError, ValueError):
        raise InputError(f"'{place}' has a box that is not four numbers (x, y, w, h).") from None
    if not np.isfinite(boxes).all() or (boxes[:, 2:] < 0).any():
        raise InputError(f"'{place}' has a box with a negative or infinite side.")
    return np.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], axis=1)


def _shared(first: Floats, second: Floats) -> Floats:
    """Areas that every box of the first shares with every box of the second."""
    low = np.maximum(first[:, None, :2], second[None, :, :2])
    high = np.minimum(first[:, None, 2:], second[None, :, 2:])
    sides = np.clip(high - low, 0, None)
    return np.asarray(sides[..., 0] * sides[..., 1])


def _areas(boxes: Floats) -> Floats:
    return np.asarray((boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]))


def _matched(
    objects: Sequence[Mapping[str, Any]],
    detections: Sequence[Mapping[str, Any]],
    crowds: Floats | None,
    place: Path,
) -> tuple[list[Mapping[str, Any] | None], int]:
    """The detection that took each object, and how many took none."""
    taken: list[Mapping[str, Any] | None] = [None] * len(objects)
    if not detections:
        return taken, 0
    boxes = _boxes([one["bbox"] for one in detections], place)
    iou = np.zeros((len(detections), 0))
    if objects:
        true = _boxes([one["bbox"] for one in objects], place)
        shared = _shared(boxes, true)
        union = _areas(boxes)[:, None] + _areas(true)[None, :] - shared
        iou = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    categories = np.array([one["category_id"] for one in objects])
    free = np.ones(len(objects), dtype=bool)
    false = 0
    for row, detection in enumerate(detections):
        fits = free & (iou[row] >= IOU)
        same = fits & (categories == detection["category_id"]) if len(objects) else fits
        among = same if same.any() else fits
        if among.any():
            best = int(np.argmax(np.where(among, iou[row], -1.0)))
            taken[best], free[best] = detection, False
        elif crowds is None or not _inside(boxes[row], crowds):
            false += 1
    return taken, false


def _inside(box: Floats, crowds: Floats) -> bool:
    """Whether half of a box lies in a crowd."""
    area = float(_areas(box[None])[0])
    return bool(area > 0 and (_shared(box[None], crowds)[0] >= IOU * area).any())
