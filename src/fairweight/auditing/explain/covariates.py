"""What a class is like before anything is trained: its share, its images' entropy and spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairweight.data.image_properties import image_entropy
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical, class_order

if TYPE_CHECKING:
    import pandas as pd

COVARIATE_COLUMNS: tuple[str, ...] = (
    "class", "n_train", "share", "imbalance", "class_entropy", "intra_class_distance",
)  # fmt: skip

_VALUES = 256
_PIXELS_AT_ONCE = 1 << 22


def class_covariates(
    images: NDArray[np.uint8], labels: ArrayLike, classes: Sequence[str] | None = None
) -> pd.DataFrame:
    """Covariates of every class of a data set, from its training images.

    Parameters
    ----------
    images
        uint8, (examples, height, width) or (examples, height, width, channels); may be
        memory-mapped: a few million pixels are read at a time.
    labels
        One per image: places in `classes`, or the classes themselves where `classes` is left out.
    classes
        Names of all classes; a class without images keeps its row, with NaN where a mean is asked.

    Returns
    -------
    One row per class: `class`, `n_train`, `share` (n_c), `imbalance` (r_c = n_c − 1 / C, for C
    classes), `class_entropy` (H_c: mean Shannon entropy of the images in bits) and
    `intra_class_distance` (mean Euclidean distance to the mean image of the class, on pixel
    values of 0 to 255).

    Notes
    -----
    Paganini 2020, section 3.1. The paper prints 1 / C before the sum of entropies; the mean over
    the images of the class is meant. It does not say what happens to colour: here the values of
    all channels of an image make one histogram.

    Examples
    --------
    Two flat images, and one that is half black and half white (1 bit):

    >>> images = np.zeros((3, 2, 2), dtype=np.uint8)
    >>> images[2, 0] = 255
    >>> class_covariates(images, ["a", "a", "b"])[["class", "imbalance", "class_entropy"]]
      class  imbalance  class_entropy
    0     a   0.166667            0.0
    1     b  -0.166667            1.0
    """
    import pandas as pd

    _check_images(images)
    codes, names = _codes(labels, classes, len(images))
    rows = []
    for code, name in enumerate(names):
        own = np.flatnonzero(codes == code)
        share = len(own) / len(images)
        entropy, distance = _entropy_and_distance(images, own)
        rows.append((name, len(own), share, share - 1 / len(names), entropy, distance))
    return pd.DataFrame(rows, columns=list(COVARIATE_COLUMNS))


def _entropy_and_distance(images: NDArray[np.uint8], own: NDArray[np.intp]) -> tuple[float, float]:
    """Means over the images of one class, in two passes so that none of them is kept."""
    if not len(own):
        return np.nan, np.nan
    total = np.zeros(images.shape[1:])
    entropy = distance = 0.0
    for rows in _pieces(own, images):
        piece = images[rows]
        total += piece.sum(axis=0, dtype=np.float64)
        entropy += float(image_entropy(piece).sum())
    mean = (total / len(own)).reshape(-1)
    for rows in _pieces(own, images):
        apart = images[rows].reshape(len(rows), -1) - mean
        distance += float(np.sqrt(np.einsum("ij,ij->i", apart, apart)).sum())
    return entropy / len(own), distance / len(own)


def _pieces(rows: NDArray[np.intp], images: NDArray[np.uint8]) -> Iterator[NDArray[np.intp]]:
    # A histogram takes 256 places, however small its image is.
    size = max(1, _PIXELS_AT_ONCE // max(_VALUES, int(np.prod(images.shape[1:]))))
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _check_images(images: NDArray[Any]) -> None:
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or not images.size:
        raise InputError(
            f"images are {images.dtype} of shape {images.shape}; give at least one image, uint8 of "
            "shape (examples, height, width) or (examples, height, width, channels)."
        )


def _codes(
    labels: ArrayLike, classes: Sequence[str] | None, n: int
) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    given = np.asarray(labels)
    if given.shape != (n,):
        raise InputError(
            f"labels have shape {given.shape} for {n:,} images; give one label per image."
        )
    if classes is None:
        values, places = np.unique(given, return_inverse=True)
        texts = [canonical(value) for value in values]
        if None in texts:
            raise InputError("labels have a missing value; leave those images out.")
        names = class_order([str(text) for text in texts])
        return np.array([names.index(str(text)) for text in texts], dtype=np.intp)[places], names
    if given.dtype.kind not in "iu" or not ((given >= 0) & (given < len(classes))).all():
        raise InputError(
            f"labels must be whole numbers from 0 to {len(classes) - 1}, places in `classes`."
        )
    return given.astype(np.intp), tuple(str(canonical(name)) for name in classes)
