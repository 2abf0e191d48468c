"""How networks are fitted to a width and to an image size."""

from __future__ import annotations

from typing import Literal, TypeAlias

from fairweight.errors import InputError

Scale: TypeAlias = Literal["small", "imagenet"]

LARGEST_SMALL = 64


def scaled(channels: int, width: float) -> int:
    """A layer's number of channels at a width.

    >>> scaled(64, 0.25), scaled(6, 0.1), scaled(32, 1.0)
    (16, 1, 32)
    """
    return max(1, round(channels * width))


def scale_of(argument: str, given: Scale | None, size: int) -> Scale:
    """The form that was asked for, or the one for that image size: small up to 64 pixels.

    >>> scale_of("stem", None, 32), scale_of("stem", None, 224), scale_of("stem", "small", 224)
    ('small', 'imagenet', 'small')
    """
    if given is None:
        return "small" if size <= LARGEST_SMALL else "imagenet"
    if given not in ("small", "imagenet"):
        raise InputError(f"{argument} must be 'small' or 'imagenet', not {given!r}.")
    return given
