"""Audits with rows of few metrics, where no other is looked at: they take a third less, or more.

The rows that are left are those of the whole audit (simulations/test_simulated_audits.py).
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
