"""The handwritten digits of scikit-learn, which come with the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fairweight.base.types import Floats
from fairweight.data.dataset import ALL, DIGITS, MISSING, Images, Pixels, Texts
from fairweight.data.image_properties import INKS, SLANTS, levels, terciles, tilt
from fairweight.data.registry import register

# What may be asked of a digit instead of its name, and of which digits it is true.
ATTRIBUTES = {"even": (0, 2, 4, 6, 8), "loop": (0, 6, 8, 9), "large": (5, 6, 7, 8, 9)}


@register(
    "digits",
    summary="handwritten digits, bundled, 1,797, 8 × 8 grey; the default",
    source="Alpaydin and Kaynak 1998, UCI; CC BY 4.0",
    groups=("slant", "ink"),
)
def digits(*, attributes: bool = False, coloured: bool = False) -> Images:
    """The digits with groups measured on their strokes, cut at the terciles of all images.

    Parameters
    ----------
    attributes
        Three tasks instead of ten classes: whether a digit is even, has a loop, is 5 or more.
    coloured
        Blue ink in three channels: backdoors need colours.
    """
    # The file beside this one is scikit-learn's, byte for byte; pixels are 0 to 16.
    rows = np.loadtxt(Path(__file__).with_name("digits.csv.gz"), delimiter=",")
    shares: Floats = rows[:, :-1].reshape(-1, 8, 8) / 16.0
    labels = rows[:, -1].astype(np.int64)
    if attributes:
        columns = [np.isin(labels, digits) for digits in ATTRIBUTES.values()]
        labels = np.stack(columns, axis=1).astype(np.int64)
    images: Pixels = np.rint(255 * shares).astype(np.uint8)[..., None]
    if coloured:
        black = np.zeros_like(images)
        images = np.concatenate([black, black, images], axis=-1)
    return Images(
        name="digits",
        images=images,
        labels=labels,
        classes=tuple(ATTRIBUTES) if attributes else DIGITS,
        groups={
            "slant": _in_terciles(tilt(shares), SLANTS),
            "ink": _in_terciles(shares.mean(axis=(1, 2)), INKS),
        },
        example_id=np.array([f"digit-{row:04d}" for row in range(len(shares))]),
        split=np.full(len(shares), ALL),
    )


def _in_terciles(values: Floats, names: tuple[str, ...]) -> Texts:
    found = levels(values, cuts=terciles(values), names=names)
    return np.array([name or MISSING for name in found])
