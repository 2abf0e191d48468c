"""What is pruned and by which rule: one frozen dataclass per method, no torch.

`layers` are patterns over the paths of convolutions and linear layers, such as `layer1.*`; a
path also stands for everything inside it. `@first`, `@last`, `@conv` and `@linear` name layers
by place and kind, and `!` leaves out: `("*", "!@last")` is all but the last.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from fairweight.specs.fields import later

# When a model is pruned, and how much at a time; the formulas are in lab/compression/schedules.py.

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


Patterns: TypeAlias = tuple[Annotated[str, Field(min_length=1)], ...]


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

    def variant(self, method: str) -> str:
        """The name of a model that was compressed in this way."""
        return method


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

    def variant(self, method: str) -> str:
        """The method and the sparsity in per cent.

        >>> GlobalMagnitude(sparsity=0.95).variant("global-magnitude")
        'global-magnitude-95'
        """
        return f"{method}-{100 * self.sparsity:.6g}"


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
    """Random slices of each layer.

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

    def variant(self, method: str) -> str:
        return f"{self.n}-of-{self.m}"


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Control(Pruning):
    """Nothing is removed: the model is trained on, for as long as the compressed ones.

    What the extra epochs alone do stands beside what pruning with the same epochs does.
    """

    @model_validator(mode="after")
    def _has_no_schedule(self) -> Control:
        if self.schedule != OneShot(of=getattr(self.schedule, "of", "all")):
            raise ValueError("removes nothing, so it has no schedule; leave the schedule out")
        return self

    @property
    def sparsity(self) -> float:
        return 0.0


# Methods that shorten the numbers of an exported model, as they run in ONNX Runtime.

CORRECTED_ON = 100  # examples that biases are corrected on, where a method needs none else
Ranges: TypeAlias = Literal["min-max", "percentile", "entropy"]


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Quantization:
    """What all of them share.

    Parameters
    ----------
    layers
        Which layers of the exported file, as patterns: those that are left out stay in float.
    bias_correction
        Whether biases are moved so that the mean outputs of a layer stay as they were before its
        weights were rounded; measured on the calibration examples.
    """

    layers: Patterns = later(("*",))
    bias_correction: bool = later(False)

    def variant(self, method: str) -> str:
        return f"{method}-bias" if self.bias_correction else method

    @property
    def calibration_examples(self) -> int:
        """How many examples a model must see; one, for the shape of its inputs."""
        return CORRECTED_ON if self.bias_correction else 1


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Int8Static(Quantization):
    """Fixed point: weights and activations are int8.

    Parameters
    ----------
    examples
        How many training examples give the ranges of the activations.
    reduce_range
        Whether weights have 7 bits; by default where the processor's 8-bit sums overflow, which
        is measured. Set it where the file is to be the same on every machine.
    calibration
        Which training examples: the `first` ones, or drawn at `random`, as many of each class
        (`class-balanced`) or of each group (`group-balanced`).
    group
        Of `group-balanced`: the group column.
    calibration_seed
        Of the draw.
    ranges
        How the range of an activation follows from what was seen: `min-max`, `percentile` or
        `entropy`, as ONNX Runtime has them.
    """

    examples: Annotated[int, Field(strict=True, ge=1)] = 100
    reduce_range: bool | None = None
    calibration: Literal["first", "random", "class-balanced", "group-balanced"] = later("first")
    group: str | None = later(None)
    calibration_seed: Annotated[int, Field(strict=True, ge=0)] = later(0)
    ranges: Ranges = later("min-max")

    @model_validator(mode="after")
    def _names_its_group(self) -> Int8Static:
        if (self.calibration == "group-balanced") != (self.group is not None):
            raise ValueError(
                "group is the column by which calibration examples are balanced: give both "
                'calibration = "group-balanced" and group, or neither'
            )
        return self

    def variant(self, method: str) -> str:
        """How ranges are set is part of the name where it is not the usual way."""
        drawn = "" if self.calibration == "first" else self.calibration
        ranges = "" if self.ranges == "min-max" else self.ranges
        return "-".join(filter(None, (super().variant(method), drawn, ranges)))

    @property
    def calibration_examples(self) -> int:
        return self.examples


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Int8Qat(Int8Static):
    """Fixed point after a finetuning that rounds numbers as the file will (quantisation-aware).

    The file is the one that `int8-static` makes of the finetuned weights. While they train, a
    weight has 8 bits unless `reduce_range` is true, and ranges are those from min to max.
    """

    @model_validator(mode="after")
    def _simulates_these_ranges(self) -> Int8Qat:
        if self.ranges != "min-max":
            raise ValueError(
                f"trains with ranges from min to max, so that a file with ranges = "
                f'"{self.ranges}" would round other numbers; leave ranges out'
            )
        return self


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Int8Dynamic(Quantization):
    """Hybrid: weights are int8, activations are quantised as they come."""


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class WeightBits(Quantization):
    """Weights rounded to a few bits, by a scale of each output channel.

    The file holds the rounded weights as floats: its size is counted as if they were packed, and
    no speed is claimed.

    Parameters
    ----------
    bits
        Of a weight; 4 bits are the 15 whole numbers from -7 to 7, times the channel's scale.
    """

    bits: Annotated[int, Field(strict=True, ge=2, le=8)]

    def variant(self, method: str) -> str:
        return super().variant(f"{method}-{self.bits}")
