"""Times as people write and read them."""

from __future__ import annotations

import re

from fairweight.errors import InputError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(text: str, option: str) -> float:
    """`90s`, `60m`, `1.5h` or `2d` in seconds.

    >>> seconds_of("60m", "--budget")
    3600.0
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd])", text.strip())
    if match is None or float(match[1]) == 0:
        raise InputError(f"{option} {text!r} is no time; write 90s, 60m, 8h or 2d.")
    return float(match[1]) * _UNITS[match[2]]


def time_text(seconds: float) -> str:
    """Seconds as a rough time.

    >>> time_text(4.2), time_text(400), time_text(9000), time_text(2e6)
    ('4 s', '7 min', '2.5 h', '23 days')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.0f} days"
