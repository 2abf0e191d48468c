"""A measure that is fed batch by batch."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

from fairweight.lab.similarity.cka import RunningHsic, cka_of
from fairweight.lab.similarity.compared import Compared
from fairweight.lab.similarity.moments import RunningMoments
from fairweight.lab.similarity.rule import Rule, rule_of
from fairweight.lab.similarity.svcca import svcca_of, too_few
from fairweight.specs.similarity import Similarity


class Running(Protocol):
    """Takes samples (locations, samples, features) of two sides and compares them at the end."""

    def add(self, x: Tensor, y: Tensor) -> None: ...

    def refusal(self) -> str | None:
        """Why the samples that came are too few, if so."""
        ...

    def compared(self) -> Compared: ...


class RunningSvcca:
    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._sums = RunningMoments()

    def add(self, x: Tensor, y: Tensor) -> None:
        self._sums.add(x, y)

    def refusal(self) -> str | None:
        return too_few(self._sums.samples, self._sums.features, self._rule.ridge)

    def compared(self) -> Compared:
        return svcca_of(self._sums.moments(), self._rule)


class RunningCka:
    def __init__(self) -> None:
        self._sums = RunningMoments()

    def add(self, x: Tensor, y: Tensor) -> None:
        self._sums.add(x, y)

    def refusal(self) -> str | None:
        return None

    def compared(self) -> Compared:
        return cka_of(self._sums.moments())


def running(spec: Similarity) -> Running:
    """What a spec asks for, with nothing added yet."""
    if spec.measure == "svcca":
        return RunningSvcca(rule_of(spec))
    return RunningHsic() if spec.minibatch else RunningCka()
