"""What a simulation measured, and how far chance may move it.

Simulations take hours in all. With the variable `FAIRWEIGHT_SIMULATIONS` each result is kept in
that folder under the code that made it, so that a run can be stopped, and the slow tests and the
documentation rest on one run.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, wraps
from math import sqrt
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

import fairweight

P = ParamSpec("P")
T = TypeVar("T")

STORE = "FAIRWEIGHT_SIMULATIONS"
ALLOWANCE = 2.0  # standard errors of a simulated share that a bound is widened by


@dataclass(frozen=True)
class Share:
    """How often something happened.

    `of` counts independent audits. Rows of one audit are not independent, so shares over rows are
    entered as a mean per audit with the number of audits: that makes the allowance wider than it
    need be, never narrower.
    """

    value: float
    of: int

    @property
    def error(self) -> float:
        """Monte-Carlo standard error."""
        return sqrt(self.value * (1 - self.value) / self.of)

    def at_least(self, bound: float) -> bool:
        return self.value >= bound - self._allowance(bound)

    def at_most(self, bound: float) -> bool:
        return self.value <= bound + self._allowance(bound)

    def within(self, low: float, high: float) -> bool:
        return self.at_least(low) and self.at_most(high)

    def _allowance(self, bound: float) -> float:
        return ALLOWANCE * sqrt(bound * (1 - bound) / self.of)

    def __str__(self) -> str:
        return f"{100 * self.value:.1f} %"


def share(happened: Iterable[Any]) -> Share:
    """The share of audits in which it happened; an array counts with its mean.

    NaN (a row that the audit calls not estimable) is left out, and so are audits with nothing else.
    """
    arrays = [np.asarray(x, dtype=float) for x in happened]
    values = [np.nanmean(x) for x in arrays if not np.isnan(x).all()]
    return Share(float(np.mean(values)), len(values))


def stored(simulation: Callable[P, T]) -> Callable[P, T]:
    """Run it once per process, or once for this code where a folder for results is named."""

    @cache
    @wraps(simulation)
    def once(*args: P.args, **kwargs: P.kwargs) -> T:
        folder = os.environ.get(STORE)
        if not folder:
            return simulation(*args, **kwargs)
        name = f"{simulation.__module__.rpartition('.')[2]}.{simulation.__name__}"
        key = repr((name, args, sorted(kwargs.items()), code_of(simulation.__code__.co_filename)))
        place = Path(folder, f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.pickle")
        if place.exists():  # written by this function alone, in a folder of one's own
            found: T = pickle.loads(place.read_bytes())
            return found
        made = simulation(*args, **kwargs)
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(made))
        part.replace(place)
        return made

    return cast(Callable[P, T], once)


@cache
def code_of(module: str) -> str:
    """Fingerprint of the audit's code and of one module of simulations."""
    files = sorted(Path(fairweight.__file__).parent.glob("auditing/**/*.py"))
    digest = hashlib.sha256()
    for file in (*files, Path(module)):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Figures:
    """One table of the documentation."""

    name: str  # the marker in docs/statistics.md
    head: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    note: str = ""  # a line below: how many runs, which seed

    def markdown(self) -> str:
        lines = [self.head, ("---",) * len(self.head), *self.rows]
        table = "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
        return f"{table}\n\n{self.note}" if self.note else table
