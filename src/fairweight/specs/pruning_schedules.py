"""When a model is pruned, and how much at a time; the formulas are in lab/compress/schedules.py."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

_FROZEN = ConfigDict(extra="forbid")
Share: TypeAlias = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Count: TypeAlias = Annotated[int, Field(strict=True, ge=0)]
Positive: TypeAlias = Annotated[int, Field(strict=True, ge=1)]


def _ends_after_start(start: int, end: int) -> None:
    if end <= start:
        raise ValueError(f"ends at {end}, not after its start at {start}; use a later end")


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class OneShot:
    """All at once, at the start of an epoch (by default before training).

    Parameters
    ----------
    epoch
        At whose start; epochs count from 0.
    of
        Whether the sparsity is a share of all weights or of those that remain.
    """

    kind: Literal["one-shot"] = "one-shot"
    epoch: Count = 0
    of: Literal["all", "remaining"] = "all"


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class AGP:
    """Automated gradual pruning by epoch; the defaults are those of Simon Says (240 epochs).

    Epochs count from 1, as in the paper: epoch 1 is before any training.

    Parameters
    ----------
    initial
        The sparsity of the first update.
    start
        The epoch of the first update.
    end
        The epoch before which the last update lies.
    every
        Epochs between two updates.
    """

    kind: Literal["agp"] = "agp"
    initial: Share = 0.1
    start: Positive = 1
    end: Positive = 120
    every: Positive = 5

    @model_validator(mode="after")
    def _has_time(self) -> AGP:
        if self.end < self.start + 1 + self.every:
            raise ValueError(
                f"has no two updates between start = {self.start} and end = {self.end} with "
                f"every = {self.every}; use a later end or a smaller every"
            )
        return self


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class GMP:
    """Gradual magnitude pruning by epoch, at start, start + every, … before end; epochs from 0.

    The defaults are those of Iofinova et al. from random initialisation (100 epochs).

    Parameters
    ----------
    initial
        The sparsity of the first update.
    start
        The epoch of the first update.
    end
        The epoch before which the last update lies.
    every
        Epochs between two updates.
    finish
        The last update goes to the asked sparsity. As published (False) it stays a little below:
        0.98988 for 0.99 with the recipe `gmp-pretrained`.
    """

    kind: Literal["gmp"] = "gmp"
    initial: Share = 0.05
    start: Count = 10
    every: Positive = 10
    end: Positive = 81
    finish: bool = True

    @model_validator(mode="after")
    def _has_time(self) -> GMP:
        _ends_after_start(self.start, self.end)
        return self


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class ZhuGupta:
    """Cubic growth by optimiser step, from start to end inclusive (Hooker et al.: 10,000 steps).

    Parameters
    ----------
    initial
        The sparsity of the first update.
    start
        The number of finished steps at the first update.
    end
        The number of finished steps at the last update.
    every
        Steps between two updates.
    """

    kind: Literal["zhu-gupta"] = "zhu-gupta"
    initial: Share = 0.0
    start: Count = 1000
    every: Positive = 500
    end: Positive = 9000

    @model_validator(mode="after")
    def _has_time(self) -> ZhuGupta:
        _ends_after_start(self.start, self.end)
        return self


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Polynomial:
    """tfmot's PolynomialDecay by optimiser step; `end` belongs to the length of the training.

    Parameters
    ----------
    initial
        The sparsity of the first update.
    start
        The number of finished steps at the first update.
    end
        The number of finished steps at the last update, where `every` fits.
    every
        Steps between two updates.
    power
        How steeply the growth begins: 1 is linear, 3 cubic.
    finish
        The last update goes to the asked sparsity. tfmot (False) stays below it where `every`
        does not divide end - start.
    """

    end: Positive
    kind: Literal["polynomial"] = "polynomial"
    initial: Share = 0.0
    start: Count = 0
    every: Positive = 100
    power: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 3.0
    finish: bool = True

    @model_validator(mode="after")
    def _has_time(self) -> Polynomial:
        _ends_after_start(self.start, self.end)
        return self


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Iterative:
    """A share of what remains, again and again, with training between (Prune Responsibly).

    The asked sparsity says how many rounds that are: 1 - 0.8**19 is 19 rounds of 20 %.

    Parameters
    ----------
    share
        How much of what remains goes in each round; the last round takes less where the asked
        sparsity lies between two rounds.
    epochs
        Training before each round, and after the last.
    rewind_to
        The epoch at whose start the weights were to which they return after each round: 0 is the
        initialisation; None keeps them (finetuning).
    """

    kind: Literal["iterative"] = "iterative"
    share: Annotated[float, Field(gt=0, lt=1)] = 0.2
    epochs: Positive = 30
    rewind_to: Count | None = None

    @model_validator(mode="after")
    def _rewinds_back(self) -> Iterative:
        if self.rewind_to is not None and self.rewind_to >= self.epochs:
            raise ValueError(
                f"cannot rewind to epoch {self.rewind_to} after {self.epochs} epochs; use a "
                "rewind_to below epochs"
            )
        return self


GMP_RANDOM_INIT = GMP()
GMP_RANDOM_INIT_SHORT = GMP(start=2, every=1, end=16)  # 20 epochs
GMP_PRETRAINED = GMP(start=1, every=4, end=60)  # 80 epochs


def _named(value: object) -> object:
    """`schedule = "agp"` means that schedule with its defaults."""
    return {"kind": value} if isinstance(value, str) else value


Schedule: TypeAlias = Annotated[
    Annotated[OneShot | AGP | GMP | ZhuGupta | Polynomial | Iterative, Field(discriminator="kind")],
    BeforeValidator(_named),
]
