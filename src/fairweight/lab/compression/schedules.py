"""How much is pruned when: pure functions of the epoch or of the optimiser's step.

Every gradual schedule is a polynomial from `initial` to `final` that is read at its updates and
held between them. An `initial` above `final` counts as `final`: nothing grows back.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from fairweight.specs.compression import (
    AGP,
    GMP,
    Iterative,
    OneShot,
    Polynomial,
    Schedule,
    ZhuGupta,
)


@dataclass(frozen=True)
class Step:
    """What is due now: `amount` of `all` weights (slices), or of those that remain."""

    amount: float
    of: Literal["all", "remaining"] = "all"
    update: int = 1  # the how-many-th one of the schedule


def agp(
    epoch: int,
    *,
    final: float,
    initial: float = 0.1,
    start: int = 1,
    end: int = 120,
    every: int = 5,
) -> float:
    """Automated gradual pruning as Simon Says runs it; epochs count from 1.

    s(e) = final + (initial - final) (1 - (e - start) / span)³ with
    span = ((end - start - 1) // every) · every, at the epochs start, start + every, …

    >>> [round(agp(epoch, final=0.45), 4) for epoch in (1, 5, 6, 116, 240)]
    [0.1, 0.1, 0.1437, 0.45, 0.45]
    """
    span = (end - start - 1) // every * every
    return _gradual(epoch, initial, final, start, start + span, every, span)


def gmp(
    epoch: int,
    *,
    final: float,
    initial: float = 0.05,
    start: int = 10,
    every: int = 10,
    end: int = 81,
    finish: bool = True,
) -> float:
    """Gradual magnitude pruning as Iofinova et al. run it; epochs count from 0.

    s(e) = final - (final - initial) (1 - (e - start) / (end - start))³ at the epochs
    range(start, end, every). The last of them is before `end`, so that as published `final` is
    never quite reached; with `finish` the last update goes there.

    >>> round(gmp(57, final=0.99, start=1, every=4, end=60, finish=False), 5)
    0.98988
    >>> gmp(57, final=0.99, start=1, every=4, end=60)
    0.99
    """
    last = range(start, end, every)[-1]
    return _gradual(epoch, initial, final, start, last, every, end - start, finish=finish)


def zhu_gupta(
    step: int,
    *,
    final: float,
    initial: float = 0.0,
    start: int = 1000,
    every: int = 500,
    end: int = 9000,
) -> float:
    """Cubic growth by finished optimiser steps, as Hooker et al. run it.

    >>> [round(zhu_gupta(step, final=0.8), 9) for step in (999, 5000, 5499, 9000)]
    [0.0, 0.7, 0.7, 0.8]
    """
    return polynomial(step, final=final, initial=initial, start=start, every=every, end=end)


def polynomial(
    step: int,
    *,
    final: float,
    end: int,
    initial: float = 0.0,
    start: int = 0,
    every: int = 100,
    power: float = 3.0,
    finish: bool = True,
) -> float:
    """tfmot's PolynomialDecay by finished optimiser steps, at range(start, end + 1, every).

    >>> [round(polynomial(step, final=0.8, end=1000), 9) for step in (0, 500, 1000)]
    [0.0, 0.7, 0.8]
    """
    last = range(start, end + 1, every)[-1]
    return _gradual(
        step, initial, final, start, last, every, end - start, power=power, finish=finish
    )


def iterative(rounds: int, *, share: float = 0.2) -> float:
    """The sparsity after a share of what remained was removed so many times.

    >>> round(iterative(19), 5)
    0.98559
    """
    return 1 - (1 - share) ** rounds


def n_rounds(sparsity: float, share: float = 0.2) -> int:
    """How many rounds of that share reach the sparsity.

    >>> n_rounds(1 - 0.8**19), n_rounds(0.5), n_rounds(0.0)
    (19, 4, 0)
    """
    # The tolerance is for 1 - 0.8**19, which is 19 rounds and not 19 and a rounding error.
    return math.ceil(math.log1p(-sparsity) / math.log1p(-share) - 1e-6)


def updates(schedule: AGP | GMP | ZhuGupta | Polynomial) -> range:
    """The epochs or the numbers of finished steps at which a gradual schedule acts."""
    # Schedules by epoch stop before their end, those by step include it.
    end = schedule.end + (0 if isinstance(schedule, AGP | GMP) else 1)
    return range(schedule.start, end, schedule.every)


def n_updates(schedule: Schedule, sparsity: float, *, epoch: int, steps: int) -> int:
    """How many updates are due in `epoch` (from 0), after so many finished steps in all."""
    if isinstance(schedule, OneShot):
        return int(epoch >= schedule.epoch)
    if isinstance(schedule, Iterative):
        return min(epoch // schedule.epochs, n_rounds(sparsity, schedule.share))
    by_epoch = epoch + 1 if isinstance(schedule, AGP) else epoch
    now = by_epoch if isinstance(schedule, AGP | GMP) else steps
    return bisect_right(updates(schedule), now)


def n_updates_in_all(schedule: Schedule, sparsity: float) -> int:
    """How many updates the whole schedule has."""
    if isinstance(schedule, OneShot):
        return 1
    if isinstance(schedule, Iterative):
        return n_rounds(sparsity, schedule.share)
    return len(updates(schedule))


def due(schedule: Schedule, sparsity: float, update: int) -> Step:
    """What the how-many-th update (from 1) asks for."""
    if isinstance(schedule, OneShot):
        return Step(sparsity, schedule.of, update)
    if isinstance(schedule, Iterative):
        left = (1 - schedule.share) ** (update - 1)  # before this round
        last = update == n_rounds(sparsity, schedule.share)
        share = 1 - (1 - sparsity) / left if last else schedule.share
        # As a share of all, slices of small layers would die out: 6 channels would end as 0.
        return Step(min(share, schedule.share), "remaining", update)
    options = asdict(schedule)
    formula = _FORMULAS[options.pop("kind")]
    return Step(formula(updates(schedule)[update - 1], final=sparsity, **options), "all", update)


def _gradual(
    now: int,
    initial: float,
    final: float,
    start: int,
    last: int,
    every: int,
    span: int,
    *,
    power: float = 3.0,
    finish: bool = True,
) -> float:
    if now < start:
        return 0.0
    at = min(start + (now - start) // every * every, last)
    if at == last and finish:
        return final
    left = max(0.0, 1 - (at - start) / span)
    return final + (min(initial, final) - final) * math.pow(left, power)


_FORMULAS: dict[str, Callable[..., float]] = {
    "agp": agp,
    "gmp": gmp,
    "zhu-gupta": zhu_gupta,
    "polynomial": polynomial,
}
