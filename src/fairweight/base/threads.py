"""Threads of the libraries that multiply and decompose matrices."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread of numpy, scipy and torch where it can be set (threadpoolctl).

    On matrices of a few hundred rows several threads mostly wait for one another, and keep their
    processors busy while they do. For a whole function it stands above it: `@one_thread()`.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1):
        yield
