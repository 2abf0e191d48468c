"""scikit-learn's handwritten digits: bundled, so nothing has to be downloaded."""

from __future__ import annotations

import numpy as np

from fairweight.data.dataset import ALL, MISSING, Images, Texts
from fairweight.data.in_splits import DIGITS
from fairweight.data.registry import register
from fairweight.data.strokes import INKS, SLANTS, Floats, levels, terciles, tilt
from fairweight.errors import InputError


@register(
    "digits",
    summary="handwritten digits bundled with scikit-learn, 1,797, 8 × 8 grey; the default",
    source="Alpaydin and Kaynak 1998, UCI; CC BY 4.0",
    groups=("slant", "ink"),
)
def digits() -> Images:
    """The digits with groups measured on their strokes, cut at the terciles of all images."""
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise InputError(
            "The bundled digits need scikit-learn, which is not installed: "
            "pip install 'fairweight[demo]'."
        ) from None
    held = load_digits()
    shares: Floats = held.images / 16.0  # pixels are 0 to 16
    return Images(
        name="digits",
        images=np.rint(255 * shares).astype(np.uint8)[..., None],
        labels=held.target.astype(np.int64),
        classes=DIGITS,
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
