"""Random numbers by name: a variant draws the same ones whichever other variants are audited."""

from __future__ import annotations

import zlib

import numpy as np

from fairweight.errors import InputError


def stream(random_state: int, *names: str) -> np.random.Generator:
    """The generator of a seed and names, such as a variant, a task and a purpose.

    >>> a, b = stream(0, "int8", "", "ties"), stream(0, "int8", "", "ties")
    >>> bool(a.random() == b.random() != stream(0, "int8", "", "splits").random())
    True
    """
    return np.random.default_rng([random_state, zlib.crc32("\x00".join(names).encode())])


# Random numbers that belong to names: what is drawn for one purpose does not move another.


def generator(random_state: int, *purpose: str) -> np.random.Generator:
    """The generator of a seed and a purpose, the same on every machine.

    >>> a, b, c = generator(0, "split"), generator(0, "split"), generator(0, "class", "cat")
    >>> bool(a.integers(1 << 30) == b.integers(1 << 30) != c.integers(1 << 30))
    True
    """
    if isinstance(random_state, bool) or random_state < 0:
        raise InputError(f"random_state is {random_state}; give a whole number from 0.")
    words = [zlib.crc32(word.encode()) for word in purpose]
    return np.random.default_rng([random_state, *words])
