"""Properties of the images behind answers: measured on the files, joined by identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.data.dataset import ALL, Images
from fairweight.data.image_properties import class_means, image_properties
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical

if TYPE_CHECKING:
    import pandas as pd

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
    from fairweight.auditing.explain.covariates import class_covariates

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
