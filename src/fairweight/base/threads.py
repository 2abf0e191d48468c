"""Threads of the libraries that multiply and decompose matrices."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

WITH_THREADS = ("numpy", "scipy.linalg", "torch")  # what brings libraries of its own when loaded


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread of numpy, scipy and torch where it can be set (threadpoolctl).

    On matrices of a few hundred rows several threads mostly wait for one another, and keep their
    processors busy while they do. For a whole function it stands above it: `@one_thread()`.
    """
    found = _libraries(frozenset(sys.modules.keys() & WITH_THREADS))
    if found is None:
        yield
        return
    with found.limit(limits=1):
        yield


@cache
def _libraries(loaded: frozenset[str]) -> Any:
    """The libraries of this process, looked for again (1.6 ms) when one more may be there."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
