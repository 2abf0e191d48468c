"""Random numbers that belong to names: the same whichever other variants are looked at."""

from __future__ import annotations

import zlib

import numpy as np


def stream(random_state: int, variant: str, task: str | None, purpose: str) -> np.random.Generator:
    """The generator of a variant, a task and a purpose.

    >>> a, b = stream(0, "int8", None, "ties"), stream(0, "int8", None, "ties")
    >>> bool(a.random() == b.random() != stream(0, "int8", None, "splits").random())
    True
    """
    key = f"{variant}\x00{task or ''}\x00exemplars {purpose}"
    return np.random.default_rng([random_state, zlib.crc32(key.encode())])
