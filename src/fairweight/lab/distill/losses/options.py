"""Options of losses that users set: a sentence for every value that cannot be used."""

from __future__ import annotations

import math
from typing import Any

from fairweight.errors import InputError


def positive(loss: str, option: str, value: Any) -> float:
    """A number above 0."""
    if not _is_number(value) or value <= 0:
        raise _refused(loss, option, value, "a number above 0")
    return float(value)


def share(loss: str, option: str, value: Any) -> float:
    """A number from 0 to 1."""
    if not _is_number(value) or not 0 <= value <= 1:
        raise _refused(loss, option, value, "a number from 0 to 1")
    return float(value)


def count(loss: str, option: str, value: Any) -> int:
    """A whole number from 1."""
    if not _is_number(value) or value != int(value) or value < 1:
        raise _refused(loss, option, value, "a whole number from 1")
    return int(value)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _refused(loss: str, option: str, value: Any, need: str) -> InputError:
    return InputError(
        f"The option {option} of the loss '{loss}' must be {need}, not {value!r}: "
        f"options = {{{loss} = {{{option} = …}}}}."
    )
