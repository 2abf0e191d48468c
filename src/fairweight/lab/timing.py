"""How long a model takes for a batch: measured calls, their median and their spread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles

import torch

REPEATS = 20
SECONDS = 1.0  # after these, no more than the least number of calls is made
LEAST_REPEATS = 5
WARM_UP = 2


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one call: the median, and the quartiles around it."""

    median_ms: float
    low_ms: float
    high_ms: float
    calls: int


def timed(call: Callable[[], object], *, repeats: int = REPEATS) -> Timing:
    """Time a function without arguments, after two calls that are not counted."""
    for _ in range(WARM_UP):
        call()
    taken: list[float] = []
    begun = time.perf_counter()
    while len(taken) < repeats:
        if len(taken) >= LEAST_REPEATS and time.perf_counter() - begun > SECONDS:
            break
        start = time.perf_counter()
        call()
        taken.append(1000 * (time.perf_counter() - start))
    low, _, high = quantiles(taken, n=4) if len(taken) > 1 else (taken[0],) * 3
    return Timing(median(taken), low, high, len(taken))


@contextmanager
def torch_threads(threads: int) -> Iterator[None]:
    """Torch with a given number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
