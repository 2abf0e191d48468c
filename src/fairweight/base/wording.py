"""Numbers and the words that go with them."""

from __future__ import annotations

import math
from typing import Any

NOTHING = "—"


def counted(number: int, noun: str) -> str:
    """A number with its noun, plural where there are more than one.

    >>> counted(1, "example"), counted(2500, "example")
    ('1 example', '2,500 examples')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def have(number: int) -> str:
    """The verb after a number of things.

    >>> have(1), have(3)
    ('has', 'have')
    """
    return "has" if number == 1 else "have"


def are(number: int) -> str:
    """The verb after a number of things.

    >>> are(1), are(3)
    ('is', 'are')
    """
    return "is" if number == 1 else "are"


def missing(value: Any) -> bool:
    """Whether a cell of a frame holds nothing (None, NaN or pandas' NA)."""
    if value is None:
        return True
    if isinstance(value, str):  # most cells
        return False
    if isinstance(value, float):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType") or value != value


def real(value: Any) -> float:
    """A cell as a float; NaN where it holds nothing."""
    if isinstance(value, float):  # most cells
        return float(value)
    return math.nan if missing(value) else float(value)


def text(value: Any) -> str | None:
    """A cell as text; None where it holds nothing."""
    return None if missing(value) else str(value)


def whole(value: Any) -> int | None:
    """A cell as a whole number; None where it holds nothing."""
    return None if missing(value) else int(value)


def shown(name: Any, limit: int | None = None) -> str:
    r"""A name on one line: control and invisible characters written out, long ones cut.

    Names come from users' files; a raw escape sequence must not reach a terminal, and two names
    that differ in an invisible character must look different.

    >>> shown("two\nlines\x1b[31m")
    'two\\nlines\\x1b[31m'
    >>> shown("abcdefgh", limit=5)
    'abcd…'
    """
    if missing(name):
        return NOTHING
    plain = str(name)
    if not plain.isprintable():
        plain = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in plain
        )
    if limit is not None and len(plain) > limit:
        return plain[: limit - 1] + "…"
    return plain
