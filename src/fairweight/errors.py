"""The few exceptions of fairweight, each with a sentence that a user can act on."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable

# What somebody can do whose memory is not enough.
LESS_MEMORY = (
    "name fewer group columns (--groups), or count the table in parts (fairweight count PART "
    "--out PART.parquet) and audit the cubes together"
)


class FairweightError(Exception):
    """Base of every error that fairweight raises on purpose."""

    def __str__(self) -> str:
        """The sentence; what would steer a screen is escaped, for it may come from a file."""
        text = super().__str__()
        if text.isprintable():
            return text
        return "".join(
            mark
            if mark.isprintable() or unicodedata.category(mark) == "Zs"
            else mark.encode("unicode_escape").decode("ascii")
            for mark in text
        )


class InputError(FairweightError, ValueError):
    """What was given cannot be used: the message names it, what was expected and the remedy.

    The command line prints the message and exits with 2.
    """


class OutputError(FairweightError, OSError):
    """A result could not be written; nothing half-written is left behind."""


class UnknownNameError(InputError):
    """A name that does not exist, with the nearest one that does."""

    def __init__(self, what: str, given: str, known: Iterable[str], *, remedy: str = "") -> None:
        names = [str(name) for name in known]
        low = str(given).lower()
        # `acc` means `accuracy`, although `auc` has more letters in common with it.
        nearest = [n for n in names if len(low) > 2 and n.lower().startswith(low)]
        nearest = nearest or difflib.get_close_matches(str(given)[:200], names, n=1, cutoff=0.6)
        if not nearest:  # `pred` for `prediction`: too short to be near, but a part of it
            nearest = [n for n in names if len(n) > 2 and (n.lower() in low or low in n.lower())]
        hint = f" Did you mean '{nearest[0]}'?" if nearest else ""
        shown = ", ".join(f"'{brief(name)}'" for name in names[:20]) or "none"
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        tail = f" {remedy}" if remedy else ""
        super().__init__(
            f"{what} '{brief(given)}' does not exist; there are: {shown}{more}.{hint}{tail}"
        )


def brief(value: object, most: int = 120) -> str:
    """What was given, for a sentence: no longer than can be read.

    >>> brief("a" * 200, 5)
    'aaaaa…'
    """
    text = str(value)
    return text if len(text) <= most else f"{text[:most]}…"
