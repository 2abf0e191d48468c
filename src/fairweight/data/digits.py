"""scikit-learn's handwritten digits: bundled, so nothing has to be downloaded."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fairweight.data.dataset import ALL, MISSING, Images, Pixels, Texts, Whole
from fairweight.data.in_splits import DIGITS
from fairweight.data.registry import register
from fairweight.data.strokes import INKS, SLANTS, Floats, levels, terciles, tilt
from fairweight.errors import InputError

# What may be asked of a digit instead of its name, and of which digits it is true.
ATTRIBUTES = {"even": (0, 2, 4, 6, 8), "loop": (0, 6, 8, 9), "large": (5, 6, 7, 8, 9)}


@register(
    "digits",
    summary="handwritten digits bundled with scikit-learn, 1,797, 8 × 8 grey; the default",
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
    pixels, labels = _bundled()
    shares: Floats = pixels / 16.0  # pixels are 0 to 16
    grey: Pixels = np.rint(255 * shares).astype(np.uint8)[..., None]
    return Images(
        name="digits",
        images=_in_blue(grey) if coloured else grey,
        labels=_attributes(labels) if attributes else labels,
        classes=tuple(ATTRIBUTES) if attributes else DIGITS,
        groups={
            "slant": _in_terciles(tilt(shares), SLANTS),
            "ink": _in_terciles(shares.mean(axis=(1, 2)), INKS),
        },
        example_id=np.array([f"digit-{row:04d}" for row in range(len(shares))]),
        split=np.full(len(shares), ALL),
    )


def _bundled() -> tuple[Floats, Whole]:
    """Pixels (n, 8, 8) and labels, from the file of scikit-learn that holds them.

    Importing scikit-learn itself takes longer than training a small network on its digits.
    """
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise InputError(
            "The bundled digits need scikit-learn, which is not installed: "
            "pip install 'fairweight[demo]'."
        )
    file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    try:
        rows = np.loadtxt(file, delimiter=",")
    except (OSError, ValueError) as error:
        raise InputError(
            f"The bundled digits cannot be read from '{file}' ({error}); install scikit-learn "
            "again."
        ) from None
    return rows[:, :-1].reshape(-1, 8, 8), rows[:, -1].astype(np.int64)


def _attributes(labels: Whole) -> Whole:
    columns = [np.isin(labels, digits) for digits in ATTRIBUTES.values()]
    return np.stack(columns, axis=1).astype(np.int64)


def _in_blue(grey: Pixels) -> Pixels:
    return np.concatenate([np.zeros_like(grey), np.zeros_like(grey), grey], axis=-1)


def _in_terciles(values: Floats, names: tuple[str, ...]) -> Texts:
    found = levels(values, cuts=terciles(values), names=names)
    return np.array([name or MISSING for name in found])
