"""Names of units (clusters, or examples with several tasks), and the order they stand in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

HEX = 24  # characters of a digest


def digest(name: str, key: str = "") -> str:
    """A name that tells units apart without telling who they are.

    >>> digest("Ann") == digest("Ann"), digest("Ann") == digest("Bob"), len(digest("Ann"))
    (True, False, 24)
    """
    secret = hashlib.blake2b(key.encode(), digest_size=32).digest()
    return hashlib.blake2b(name.encode(), digest_size=HEX // 2, key=secret).hexdigest()


def unit_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names in the order of their digests.

    A cube on disk holds digests, a cube in memory names; both must draw the same units first, so
    that an audit of either gives the same numbers.
    """
    return tuple(sorted(set(names), key=lambda name: name if _is_digest(name) else digest(name)))


def _is_digest(name: str) -> bool:
    return len(name) == HEX and set(name) <= set("0123456789abcdef")
