"""The canonical text of labels, predictions, ids and groups: `1`, `1.0` and `"1"` are one class.

Two twins say the same: `canonical` of a Python value, `canonical_sql` of a column.

- Whole numbers are one value however they are written: text of up to 15 digits with an optional
  minus, without leading zeros, perhaps with `.` and zeros behind it; or a typed number of that
  value. `-0` is 0. Whole typed numbers with more digits are those digits, floats up to 2⁵³.
- `true` and `false` are one value each, in upper, lower or mixed case.
- Other typed floats are written with the fewest digits that tell them apart.
- Any other text is the text it is: `007`, `1e2`, `0x10`, `+5`, ` 5`, 20-digit codes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from fairweight.tables.connection import is_float, is_text

# Fewer digits than a double holds, so that no two of these texts are one number by rounding.
_WHOLE = "-?(0|[1-9][0-9]{0,14})"
_WHOLE_TEXT = re.compile(rf"{_WHOLE}(\.0*)?")
_TRUTHS = frozenset(("true", "false"))
_EXACT = 2**53  # whole floats below it are that number and no other


def canonical(value: Any, *, truth_as_number: bool = False) -> str | None:
    """The text under which a value is compared and shown; None where it is missing.

    With `truth_as_number` (a boolean column beside a numeric one) True is `1` and False is `0`.

    >>> [canonical(v) for v in (1, 1.0, "1", "1.0", "1.", True, "TRUE", 2.5, None, float("nan"))]
    ['1', '1', '1', '1', '1', 'true', 'true', '2.5', None, None]
    >>> [canonical(v) for v in ("007", "1e2", "0x10", "+5", " 5", "-0", "12345678901234567890")]
    ['007', '1e2', '0x10', '+5', ' 5', '0', '12345678901234567890']
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
    # As a double 0.1 in single precision would have eight more digits.
    shortest = float(str(value)) if kind in ("float16", "float32") else None
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, bytes):
        value = value.decode("utf-8", errors="replace")
    if isinstance(value, str):
        if is_whole(value):
            digits = value.partition(".")[0]
            return "0" if digits == "-0" else digits
        truth = value.lower() if len(value) <= 5 else value
        if truth in _TRUTHS:
            return canonical(truth == "true", truth_as_number=truth_as_number)
        return value
    if isinstance(value, float):
        if math.isnan(value):
            return None
        if value.is_integer() and abs(value) < _EXACT:
            return str(int(value))
        return repr(value if shortest is None else shortest)
    if kind == "Decimal":
        if value.is_nan():
            return None
        return str(int(value)) if value == value.to_integral_value() else f"{value.normalize():f}"
    return str(value)


def is_whole(text: str) -> bool:
    """Whether a text is read as a whole number.

    >>> [is_whole(text) for text in ("7", "-7.00", "007", "7.5", "1234567890123456")]
    [True, True, False, False, False]
    """
    return _WHOLE_TEXT.fullmatch(text) is not None


def canonical_sql(value: str, kind: str) -> str:
    """SQL for the canonical text of an expression of a DuckDB type; NULL where it is missing."""
    text = f"CAST({value} AS VARCHAR)"
    if is_float(kind):
        return (
            f"CASE WHEN isnan({value}) THEN NULL "
            f"WHEN {value} = trunc({value}) AND abs({value}) < {_EXACT} "
            f"THEN CAST(CAST({value} AS BIGINT) AS VARCHAR) ELSE {text} END"
        )
    if kind.startswith("DECIMAL"):
        trimmed = f"rtrim(rtrim({text}, '0'), '.')"
        return f"CASE WHEN contains({text}, '.') THEN {trimmed} ELSE {text} END"
    if not is_text(kind):
        return text
    text = value if kind == "VARCHAR" else text
    # Most texts are settled by their first bytes or their length; only the others are matched.
    return (
        f"CASE WHEN ({text} >= '-' AND {text} < ':' OR strlen({text}) < 6) AND "
        f"regexp_full_match({text}, '{_WHOLE}[.]0*|-0|(?i)(true|false)') "
        f"THEN CASE WHEN starts_with({text}, '-0') THEN '0' "
        f"ELSE lower(split_part({text}, '.', 1)) END ELSE {text} END"
    )


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
