"""A few of many lists, so that none is forgotten."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def in_turn(lists: Collection[Sequence[Key]], most: int) -> list[Key]:
    """The first of every list, then the second of every list, each only once, up to a number.

    >>> in_turn([["a", "b", "c"], ["b", "d"], []], 3)
    ['a', 'b', 'd']
    """
    longest = max((len(own) for own in lists), default=0)
    found = dict.fromkeys(own[i] for i in range(longest) for own in lists if i < len(own))
    return list(found)[:most]
