"""Audits with rows of few metrics, where no other is looked at: they take half the time.

Random numbers are drawn by variant and purpose, so that the rows that are left are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from fairweight.auditing.metrics.registry import Metric, metrics

MODULES = ("estimands", "flips", "scores", "variant")  # of auditing/compare, where rows are listed


@contextmanager
def only(names: Collection[str]) -> Iterator[None]:
    """Audits inside the block have rows of these metrics alone."""

    def few() -> tuple[Metric, ...]:
        return tuple(entry for entry in metrics() if entry.name in names)

    with ExitStack() as held:
        for module in MODULES:
            held.enter_context(patch(f"fairweight.auditing.compare.{module}.metrics", few))
        yield
