"""What a simulation measured, and how far chance may move it.

Simulations take hours in all. With the variable `FAIRWEIGHT_SIMULATIONS` each result is kept in
that folder under the code that made it, so that a run can be stopped, and the slow tests and the
documentation rest on one run.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, wraps
from math import sqrt
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
import pandas as pd

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
    return Share(float(np.mean(values)) if values else np.nan, len(values))


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
        place = Path(folder, f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json")
        if place.exists():
            known = {**vars(sys.modules[simulation.__module__]), "Share": Share}
            return cast(T, _read(json.loads(place.read_text(encoding="utf-8")), known))
        made = simulation(*args, **kwargs)
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(_written(made)), encoding="utf-8")
        part.replace(place)
        return made

    return cast(Callable[P, T], once)


def _written(value: Any) -> Any:
    """A result as JSON: what JSON does not know is a dict with one key, its kind."""
    if is_dataclass(value) and not isinstance(value, type):
        held = {field.name: _written(getattr(value, field.name)) for field in fields(value)}
        return {"dataclass": [type(value).__name__, held]}
    if isinstance(value, dict):
        return {"dict": [[_written(key), _written(held)] for key, held in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_written(held) for held in value]}
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, pd.DataFrame):
        return {"frame": {str(name): value[name].tolist() for name in value}}
    if isinstance(value, list):
        return [_written(held) for held in value]
    return value.item() if isinstance(value, np.generic) else value


def _read(value: Any, known: dict[str, Any]) -> Any:
    """What `_written` wrote; dataclasses are those of the simulation's module."""
    if isinstance(value, list):
        return [_read(held, known) for held in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind == "dataclass":
        name, parts = held
        return known[name](**{key: _read(part, known) for key, part in parts.items()})
    if kind == "dict":
        return {_read(key, known): _read(part, known) for key, part in held}
    if kind == "tuple":
        return tuple(_read(part, known) for part in held)
    return pd.DataFrame(held) if kind == "frame" else np.array(held)


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
