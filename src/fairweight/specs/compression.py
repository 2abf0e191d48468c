"""What is pruned and by which rule: one frozen dataclass per method, no torch.

`layers` are patterns over the paths of convolutions and linear layers, such as `layer1.*`; a
path also stands for everything inside it. `@first`, `@last`, `@conv` and `@linear` name layers
by place and kind, and `!` leaves out: `("*", "!@last")` is all but the last.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from fairweight.specs.pruning_schedules import Iterative, OneShot, Schedule, Share

Patterns: TypeAlias = tuple[Annotated[str, Field(min_length=1)], ...]

_FROZEN = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Pruning:
    """What all methods share.

    Parameters
    ----------
    layers
        Which layers, as patterns; left out, the method's own choice (written here when made).
    schedule
        When, and how much at a time.
    """

    layers: Patterns = ()
    schedule: Schedule = OneShot()

    @model_validator(mode="after")
    def _names_its_layers(self) -> Pruning:
        if not self.layers:
            # Written down, so that what a spec says never depends on a default of the day.
            object.__setattr__(self, "layers", self._own_layers())
        return self

    def _own_layers(self) -> tuple[str, ...]:
        return ("*",)


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class ToSparsity(Pruning):
    """Methods that reach a sparsity.

    Parameters
    ----------
    sparsity
        The share of weights, or of slices, that are removed.
    """

    sparsity: Share

    @model_validator(mode="after")
    def _can_be_reached(self) -> ToSparsity:
        if isinstance(self.schedule, Iterative) and self.sparsity == 1:
            raise ValueError(
                "cannot reach sparsity = 1 by removing shares of what remains; use a sparsity "
                "below 1, or another schedule"
            )
        return self


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class GlobalMagnitude(ToSparsity):
    """The smallest weights of all layers together."""


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class L1Unstructured(ToSparsity):
    """The smallest weights of each layer."""


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class RandomUnstructured(ToSparsity):
    """Random weights of each layer.

    Parameters
    ----------
    seed
        Decides which; every layer draws for itself.
    """

    seed: Annotated[int, Field(strict=True, ge=0)] = 0


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Structured(ToSparsity):
    """Whole slices of each layer's weights.

    Parameters
    ----------
    dim
        The axis of which slices are removed: 0 are filters (outputs), 1 are input channels.
        By default the layer that makes the classes keeps its outputs, and the layer that sees
        the image its inputs.
    """

    dim: Literal[0, 1] = 0

    def _own_layers(self) -> tuple[str, ...]:
        return ("*", "!@last") if self.dim == 0 else ("*", "!@first")


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class L1Structured(Structured):
    """The slices of the smallest sum of absolute weights."""


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class L2Structured(Structured):
    """The slices of the smallest Euclidean norm."""


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class LinfStructured(Structured):
    """The slices whose largest absolute weight is smallest."""


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class RandomStructured(Structured):
    """Random slices.

    Parameters
    ----------
    seed
        Decides which; every layer draws for itself.
    """

    seed: Annotated[int, Field(strict=True, ge=0)] = 0


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class NOfM(Pruning):
    """Of every m neighbouring input channels, the n largest weights stay (2:4, 1:4, 1:8).

    Parameters
    ----------
    n
        How many weights of each m stay; the sparsity is 1 - n / m.
    m
        How many neighbouring input channels are a group.
    indivisible
        What happens to a layer whose input channels are no multiple of m: `refuse`, or `leave`
        it as it is. By default the layer that sees the image is not pruned.
    """

    n: Annotated[int, Field(strict=True, ge=0)] = 2
    m: Annotated[int, Field(strict=True, ge=1)] = 4
    indivisible: Literal["refuse", "leave"] = "refuse"

    @model_validator(mode="after")
    def _keeps_some_of_m(self) -> NOfM:
        if self.n > self.m:
            raise ValueError(f"cannot keep n = {self.n} of m = {self.m}; use an n of at most m")
        if self.schedule != OneShot(epoch=getattr(self.schedule, "epoch", 0)):
            raise ValueError(
                "is reached at once, not gradually; leave the schedule out, or give an epoch: "
                'schedule = {kind = "one-shot", epoch = 3}'
            )
        return self

    @property
    def sparsity(self) -> float:
        """Follows from n and m."""
        return 1 - self.n / self.m

    def _own_layers(self) -> tuple[str, ...]:
        return ("*", "!@first")
