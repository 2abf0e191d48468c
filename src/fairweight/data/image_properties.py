"""Properties of single images that a loss may go with: tilt, ink, contrast, distance to its class.

Everything is measured on raw values from 0 to 255, in chunks, so that images may be larger than
memory. The foreground is bright, as in handwriting on black: invert images (255 − image) of dark
strokes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.base.types import Floats
from fairweight.errors import InputError

# Groups of handwritten digits, measured on their strokes: how far they lean, how much ink.

SLANTS = ("right", "upright", "left")  # in the order of rising tilt
INKS = ("light", "medium", "heavy")


def slope(foreground: NDArray[np.bool_]) -> Floats:
    """Slope of the least-squares line of column on row over the foreground, (n, height, width).

    cov(row, column) / var(row) (Prune Responsibly). Rows are counted downwards, so 0 is upright
    and negative leans right, as `/` does. NaN where no line is determined: fewer than two rows
    have foreground.

    >>> slash = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]], dtype=bool)
    >>> slope(np.stack([slash, slash.T, slash[::-1], slash & False])).tolist()
    [-1.0, -1.0, 1.0, nan]
    """
    _, height, width = foreground.shape
    # Counted from the middle in half pixels: whole numbers, so that sums are exact.
    row = 2.0 * np.arange(height) - (height - 1)
    column = 2.0 * np.arange(width) - (width - 1)
    size = foreground.sum(axis=2, dtype=np.float64)  # of every row of pixels
    along = foreground @ column
    n = size.sum(axis=1)
    rows, columns = size @ row, along.sum(axis=1)
    together = n * (along @ row) - rows * columns
    spread = n * (size @ row**2) - rows**2
    determined = (size > 0).sum(axis=1) >= 2
    undefined = np.full(len(foreground), np.nan)
    found: Floats = np.divide(together, spread, out=undefined, where=determined)
    return found


def tilt(images: Floats, *, threshold: float = 0.5) -> Floats:
    """`slope` of the pixels above `threshold`."""
    return slope(images > threshold)


def terciles(values: Floats) -> Floats:
    """The two cuts between three parts of equal size; undefined values do not count.

    >>> terciles(np.array([0.0, 1.0, 2.0, 3.0, np.nan])).tolist()
    [1.0, 2.0]
    """
    cuts: Floats = np.nanquantile(values, [1 / 3, 2 / 3])
    return cuts


def levels(values: Iterable[float], *, cuts: Floats, names: Sequence[str]) -> list[str | None]:
    """The name of the part in which each value lies; None where the value is undefined.

    >>> levels([0.0, 1.0, 9.0, np.nan], cuts=np.array([1.0, 2.0]), names=INKS)
    ['light', 'medium', 'heavy', None]
    """
    return [
        None if np.isnan(value) else names[int(np.searchsorted(cuts, value, side="right"))]
        for value in values
    ]


Pixels: TypeAlias = NDArray[np.uint8]
Threshold: TypeAlias = int | Literal["otsu"]

# Half of full brightness, the threshold that the bundled digits are measured with too.
HALF = 127
_CHUNK_VALUES = 1 << 20  # values of images that are looked at together


def image_properties(
    images: Pixels,
    labels: NDArray[np.integer] | None = None,
    class_means: Floats | None = None,
    *,
    threshold: Threshold = HALF,
) -> dict[str, Floats]:
    """Measure every image; NaN where a property is undefined.

    Parameters
    ----------
    images
        uint8, (n, height, width) or (n, height, width, channels).
    labels, class_means
        Class of every image and the mean training image of every class (`class_means`), where the
        distance to it is wanted.
    threshold
        Values above it are foreground: a number, or `otsu` for each image's own threshold
        (Otsu 1979), which suits images whose strokes differ in brightness.

    Returns
    -------
    dict
        tilt        slope of column on row over the foreground: 0 is upright, negative leans
                    right (Prune Responsibly); undefined below two rows
        abs_tilt    its size
        ink         mean value, 0 to 255
        contrast    standard deviation of values
        entropy     Shannon entropy of the histogram of values, bits, 0 to 8
        foreground  share of pixels in the foreground
        distance    to the mean training image of the class, Euclidean, in raw values (the
                    outlierness of Prune Responsibly); undefined for a class without any

    Notes
    -----
    With several channels, tilt, contrast and foreground are those of the mean of the channels;
    the histogram pools the values of all channels; the distance runs over all of them.

    Examples
    --------
    A slash of three pixels of value 240 among nine: mean 80, entropy of (1/3, 2/3) 0.918 bits.

    >>> slash = np.array([[0, 0, 240], [0, 240, 0], [240, 0, 0]], dtype=np.uint8)
    >>> found = image_properties(slash[None])
    >>> {name: round(float(values[0]), 3) for name, values in found.items()}
    {'tilt': -1.0, 'abs_tilt': 1.0, 'ink': 80.0, 'contrast': 113.137, 'entropy': 0.918,
     'foreground': 0.333}
    """
    _check_images(images)
    _check_threshold(threshold)
    if (labels is None) != (class_means is None):
        raise InputError(
            "The distance to the class mean needs both labels and class_means; give both or none."
        )
    n = len(images)
    names = ["tilt", "abs_tilt", "ink", "contrast", "entropy", "foreground"]
    found = {name: np.full(n, np.nan) for name in names}
    if labels is not None and class_means is not None:
        _check_labels(images, labels, len(class_means))
        if class_means.shape[1:] != images.shape[1:]:
            raise InputError(
                f"class_means are of images of shape {class_means.shape[1:]}, images have "
                f"{images.shape[1:]}; compute them from training images of the same size."
            )
        found["distance"] = np.full(n, np.nan)
    for part in _chunks(images):
        pixels = np.asarray(images[part])
        grey = pixels if pixels.ndim == 3 else pixels.mean(axis=3, dtype=np.float64)
        own = grey > _thresholds(grey, threshold)[:, None, None]
        found["tilt"][part] = slope(own)
        found["foreground"][part] = own.mean(axis=(1, 2))
        found["ink"][part] = grey.mean(axis=(1, 2), dtype=np.float64)
        found["contrast"][part] = grey.std(axis=(1, 2), dtype=np.float64)
        found["entropy"][part] = _entropy(_histogram(pixels))
        if labels is not None and class_means is not None:
            apart = (pixels - class_means[labels[part]]).reshape(len(pixels), -1)
            found["distance"][part] = np.sqrt(np.einsum("ij,ij->i", apart, apart))
    found["abs_tilt"] = np.abs(found["tilt"])
    return found


def image_entropy(images: Pixels) -> Floats:
    """Shannon entropy in bits of each image's histogram of values; all channels together.

    >>> image_entropy(np.array([[[0, 0]], [[0, 9]]], dtype=np.uint8)).tolist()
    [0.0, 1.0]
    """
    _check_images(images)
    found = np.empty(len(images))
    for part in _chunks(images):
        found[part] = _entropy(_histogram(np.asarray(images[part])))
    return found


def tilt_line(image: Pixels, *, threshold: Threshold = HALF) -> tuple[float, float]:
    """Slope and intercept of the line whose slope is an image's tilt: column on row, in pixels.

    >>> slash = np.array([[0, 0, 240], [0, 240, 0], [240, 0, 0]], dtype=np.uint8)
    >>> tilt_line(slash)
    (-1.0, 2.0)
    """
    _check_images(image[None])
    _check_threshold(threshold)
    grey = image[None] if image.ndim == 2 else image[None].mean(axis=3, dtype=np.float64)
    own = grey > _thresholds(grey, threshold)[:, None, None]
    tilt = float(slope(own)[0])
    row, column = np.nonzero(own[0])
    return (tilt, float(column.mean() - tilt * row.mean())) if len(row) else (np.nan, np.nan)


def class_means(images: Pixels, labels: NDArray[np.integer], n_classes: int) -> Floats:
    """The mean image of every class, (classes, height, width[, channels]), from training images.

    NaN for a class without images.

    >>> images = np.array([[[0, 10]], [[20, 30]]], dtype=np.uint8)
    >>> class_means(images, np.array([0, 0]), 2).tolist()
    [[[10.0, 20.0]], [[nan, nan]]]
    """
    _check_images(images)
    _check_labels(images, labels, n_classes)
    total = np.zeros((n_classes, *images.shape[1:]))
    for part in _chunks(images):
        pixels, label = np.asarray(images[part]), labels[part]
        for present in np.unique(label):
            total[present] += pixels[label == present].sum(axis=0, dtype=np.int64)
    size = np.bincount(labels, minlength=n_classes).astype(np.float64)
    size[size == 0] = np.nan
    means: Floats = total / size.reshape(-1, *(1,) * (images.ndim - 1))
    return means


def _chunks(images: Pixels) -> Iterator[slice]:
    step = max(1, _CHUNK_VALUES // max(1, int(np.prod(images.shape[1:]))))
    return (slice(start, start + step) for start in range(0, len(images), step))


def _histogram(images: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How often each of the 256 values occurs in each image, (n, 256)."""
    n = len(images)
    place = images.reshape(n, -1) + 256 * np.arange(n, dtype=np.int32)[:, None]
    return np.bincount(place.ravel(), minlength=256 * n).reshape(n, 256)


def _entropy(histogram: NDArray[np.int64]) -> Floats:
    share = histogram / histogram.sum(axis=1, keepdims=True)
    bits = np.log2(share, out=np.zeros_like(share), where=share > 0)
    entropy: Floats = np.abs((share * bits).sum(axis=1))  # the sum is never positive
    return entropy


def _thresholds(grey: NDArray[np.uint8] | Floats, threshold: Threshold) -> Floats:
    if threshold != "otsu":
        return np.full(len(grey), float(threshold))
    whole = np.rint(grey).astype(np.uint8)
    return otsu(_histogram(whole))


def otsu(histogram: NDArray[np.int64]) -> Floats:
    """Otsu's threshold: the cut of the histogram with the largest variance between the two sides.

    Where several values part it alike (an empty stretch between two peaks), the middle one. An
    image of one value has no foreground: its threshold is 255.

    >>> two_peaks = np.zeros((1, 256), dtype=np.int64)
    >>> two_peaks[0, [10, 20]] = 5
    >>> otsu(two_peaks).tolist()
    [14.5]
    """
    value = np.arange(256.0)
    below = np.cumsum(histogram, axis=1).astype(np.float64)
    mass = np.cumsum(histogram * value, axis=1)
    size, total = below[:, -1:], mass[:, -1:]
    above = size - below
    product = below * above
    between = np.divide(
        (mass * size - total * below) ** 2, product, out=np.zeros_like(product), where=product > 0
    )
    best = between.max(axis=1)
    tied = between == best[:, None]
    middle = (tied * value).sum(axis=1) / tied.sum(axis=1)
    return np.where(best > 0, middle, 255.0)


def _check_images(images: Pixels) -> None:
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or 0 in images.shape[1:]:
        raise InputError(
            f"Images are {images.dtype} of shape {images.shape}; give uint8 of shape (n, height, "
            "width) or (n, height, width, channels)."
        )


def _check_threshold(threshold: Threshold) -> None:
    whole = isinstance(threshold, int | np.integer) and not isinstance(threshold, bool)
    if threshold != "otsu" and not (whole and 0 <= int(threshold) <= 255):
        raise InputError(
            f"threshold is {threshold!r}; give a whole number from 0 to 255 or 'otsu'."
        )


def _check_labels(images: Pixels, labels: NDArray[np.integer], n_classes: int) -> None:
    if labels.shape != (len(images),):
        raise InputError(
            f"labels have shape {labels.shape} for {len(images)} images; give one per image."
        )
    if len(labels) and not (labels.min() >= 0 and labels.max() < n_classes):
        raise InputError(
            f"labels run from {labels.min()} to {labels.max()} for {n_classes} classes; give "
            "places in the list of classes."
        )
