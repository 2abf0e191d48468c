"""Properties of the images behind answers: measured on the files, joined by identity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing import schema
from fairweight.auditing.exemplars.table import in_turn
from fairweight.auditing.explain.class_rows import class_covariates
from fairweight.auditing.prediction_matrix import Answers
from fairweight.base.streams import stream
from fairweight.base.types import Mask
from fairweight.data.codecs import png_uri, thumbnail_uri
from fairweight.data.dataset import ALL, Images
from fairweight.data.image_properties import class_means, image_properties, tilt_line
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical

Measure = Callable[[Answers], Mapping[str, NDArray[np.float64]]]


def measure(asked: Images, training: Images | None = None) -> Measure:
    """From answers to the properties of their images, in their order.

    Parameters
    ----------
    asked
        The images that models were asked about, at least.
    training
        Those of the training, whose class means the distance is measured from; none: no distance.
    """

    def measured(answers: Answers) -> dict[str, NDArray[np.float64]]:
        rows = places(answers, asked)
        means = labels = None
        if training is not None and not training.multi_label and not asked.multi_label:
            means = class_means(training.images, training.labels, len(training.classes))
            labels = asked.labels[rows]
        return image_properties(np.asarray(asked.images)[rows], labels, means)

    return measured


def measure_dataset(images: Images) -> Measure:
    """The same of a whole data set: what no model was asked about is the training."""
    train = np.flatnonzero(np.isin(images.split, ("train", ALL)))

    def measured(answers: Answers) -> Mapping[str, NDArray[np.float64]]:
        rest = np.setdiff1d(train, places(answers, images))
        return measure(images, images.select(rest) if len(rest) else None)(answers)

    return measured


def places(answers: Answers, images: Images) -> NDArray[Any]:
    """The place of every example among the images; all of them must be there."""
    if answers.example_id is None:
        raise InputError(
            "A cube does not say which examples it counts, so their images cannot be measured; "
            "give the prediction tables."
        )
    place = {canonical(name): row for row, name in enumerate(images.example_id.tolist())}
    wanted = [str(name) for name in answers.example_id.tolist()]
    absent = [name for name in wanted if name not in place]
    if absent:
        raise InputError(
            f"{len(absent):,} examples, such as '{absent[0]}', are not in the data set "
            f"'{images.name}', whose ids look like '{next(iter(place))}'; give the data set that "
            "the predictions are of."
        )
    return np.array([place[name] for name in wanted])


def training_covariates(images: Images) -> Callable[[Answers], dict[str, pd.DataFrame]]:
    """From answers to the covariates of a data set's classes, measured on its training images.

    Those are what no model was asked about, as in `measure_dataset`.
    """

    def measured(answers: Answers) -> dict[str, pd.DataFrame]:
        if images.multi_label:
            raise InputError(
                f"The data set '{images.name}' has several labels per image, so its images belong "
                "to no single class."
            )
        train = np.flatnonzero(np.isin(images.split, ("train", ALL)))
        rest = images.select(np.setdiff1d(train, places(answers, images)))
        if not len(rest):
            raise InputError(
                f"The data set '{images.name}' has no training images beside those that the models "
                "were asked about."
            )
        made = class_covariates(np.asarray(rest.images), rest.labels, rest.classes)
        return {images.name: made}

    return measured


# A few images to look at: exemplars beside others of their class, and the tilt of a digit.

PER_CLASS = 3  # pairs of an exemplar and another example
MOST = 6  # exemplars of all methods, and of one method only
TILTED = 0.9  # the quantile of |tilt| that is shown: clearly tilted, and no freak


def exemplar_images(
    answers: Answers,
    ranked: pd.DataFrame,
    masks: Mapping[str, Mask],
    images: Images,
    rows: NDArray[Any],
    random_state: int = 0,
    gallery: int = 200,
) -> pd.DataFrame:
    """The table `exemplar_images`.

    Parameters
    ----------
    ranked
        The table `exemplars`, the furthest apart first.
    masks
        Variant → its modal exemplars, (n,).
    images, rows
        The images, and the place of every example among them.
    gallery
        So many different exemplars to look through, of all variants in turn: small, and the modal
        ones first.
    """
    assert answers.example_id is not None
    place = {str(name): i for i, name in enumerate(answers.example_id.tolist())}
    made: list[dict[str, Any]] = []

    def add(variant: str, part: str, i: int) -> None:
        encoded = thumbnail_uri if part == "gallery" else png_uri
        made.append(
            {
                "variant": variant,
                "task": answers.task,
                "part": part,
                "example_id": str(answers.example_id[i]),  # type: ignore[index]
                "label": answers.classes[answers.label[i]],
                "modal_baseline": _modal(answers, answers.baseline, i),
                "modal_compressed": _modal(answers, variant, i),
                "image": encoded(np.asarray(images.images[rows[i]])),
            }
        )

    everywhere = np.logical_and.reduce(list(masks.values())) if masks else np.zeros(0, dtype=bool)
    orders: dict[str, list[int]] = {}
    for variant, mask in masks.items():
        own = ranked[ranked["variant"] == variant]
        order = [place[str(name)] for name in own["example_id"].tolist()]
        others_last = [i for i in order if not mask[i]]
        order = [i for i in order if mask[i]]
        orders[variant] = order + others_last
        draw = stream(random_state, variant, "exemplar images")
        taken: Counter[int] = Counter()
        for i in order:
            label = int(answers.label[i])
            if taken[label] >= PER_CLASS:
                continue
            others = np.flatnonzero(~mask & (answers.label == label))
            if not len(others):
                continue
            taken[label] += 1
            add(variant, "exemplar", i)
            add(variant, "non-exemplar", int(draw.choice(others)))
        others_too = [other for name, other in masks.items() if name != variant]
        alone = mask & ~np.logical_or.reduce(others_too) if others_too else np.zeros_like(mask)
        for i in [i for i in order if everywhere[i]][:MOST]:
            add(variant, "shared", i)
        for i in [i for i in order if alone[i]][:MOST]:
            add(variant, "one-only", i)
    for i in in_turn(orders.values(), gallery):  # once, however many variants it is of
        add(next(variant for variant, order in orders.items() if i in order), "gallery", i)
    return schema.frame("exemplar_images", made)


def tilt_example(
    answers: Answers, tilts: NDArray[np.float64], images: Images, rows: NDArray[Any]
) -> pd.DataFrame:
    """The table `tilt_example`: one clearly tilted image and its line."""
    assert answers.example_id is not None
    size = np.abs(tilts)
    known = np.flatnonzero(np.isfinite(size))
    made: list[dict[str, Any]] = []
    if len(known):
        wanted = np.quantile(size[known], TILTED)
        i = int(known[np.argmin(np.abs(size[known] - wanted))])
        image = np.asarray(images.images[rows[i]])
        slope, intercept = tilt_line(image)
        made.append(
            {
                "image": png_uri(image),
                "width": image.shape[1],
                "height": image.shape[0],
                "slope": slope,
                "intercept": intercept,
                "example_id": str(answers.example_id[i]),
            }
        )
    return schema.frame("tilt_example", made)


def _modal(answers: Answers, variant: str, i: int) -> str:
    """The most frequent answer of a variant's members, the first class of several."""
    votes = np.bincount(answers.of(variant)[:, i], minlength=len(answers.classes) + 1)
    best = int(votes.argmax())
    return answers.classes[best] if best < len(answers.classes) else "no answer"
