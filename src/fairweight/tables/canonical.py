"""The canonical text of labels, predictions and groups: `1`, `1.0` and `"1"` are one class."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

_INTEGRAL_TEXT = re.compile(r"[+-]?\d+\.0*")
_TRUTH_TEXT = {"true": "true", "false": "false"}


def canonical(value: Any, *, truth_as_number: bool = False) -> str | None:
    """The text under which a value is compared and shown; None where it is missing.

    With `truth_as_number` (a boolean column beside a numeric one) True is `1` and False is `0`.

    >>> [canonical(v) for v in (1, 1.0, "1", "1.0", True, "True", 2.5, None, float("nan"))]
    ['1', '1', '1', '1', 'true', 'true', '2.5', None, None]
    >>> canonical(True, truth_as_number=True)
    '1'
    """
    if value is None:
        return None
    kind = type(value).__name__
    if kind in ("NAType", "NaTType"):  # pandas' own words for missing, without importing it
        return None
    if kind in ("bool", "bool_"):
        return ("1" if value else "0") if truth_as_number else ("true" if value else "false")
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    if isinstance(value, str):
        if _INTEGRAL_TEXT.fullmatch(value):
            return str(int(float(value))) if len(value) < 16 else value.split(".")[0]
        truth = _TRUTH_TEXT.get(value.lower()) if len(value) <= 5 else None
        if truth is not None:
            return canonical(truth == "true", truth_as_number=True) if truth_as_number else truth
        return value
    if isinstance(value, float) or kind == "Decimal":
        number = float(value)
        if math.isnan(number):
            return None
        if number.is_integer() and abs(number) < 2**53:
            return str(int(number))
        return repr(number)
    return str(value)


def class_order(values: Iterable[str]) -> tuple[str, ...]:
    """Classes in the order people expect: numbers by size, then text by alphabet.

    >>> class_order(["10", "9", "b", "a", "-1"])
    ('-1', '9', '10', 'a', 'b')
    """

    def key(text: str) -> tuple[int, float, str]:
        try:
            number = float(text)
        except ValueError:
            return (1, 0.0, text)
        return (0, number, text) if math.isfinite(number) else (1, 0.0, text)

    return tuple(sorted(set(values), key=key))
