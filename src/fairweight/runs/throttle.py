"""News of a running stage, as often as somebody can read them."""

from __future__ import annotations

import time
from collections.abc import Callable

from fairweight.runs.context import OutOfTime
from fairweight.runs.worker import Report


def throttled(
    tell: Callable[[int, int, str], None], every: float, stopping: Callable[[], bool]
) -> Report:
    """Pass on what a stage reports at most once in `every` seconds, and stop it when asked to."""
    last = 0.0

    def report(done: int, total: int, words: str) -> None:
        nonlocal last
        if stopping():
            raise OutOfTime
        now = time.monotonic()
        if now - last >= every:
            last = now
            tell(done, total, words)

    return report
