"""The two kinds of int8 (Hooker et al.), as they run in ONNX Runtime."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

_FROZEN = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Int8Static:
    """Fixed point: weights and activations are int8.

    Parameters
    ----------
    examples
        How many training examples, the first ones, give the ranges of the activations.
    reduce_range
        Whether weights have 7 bits; by default where the processor's 8-bit sums overflow, which
        is measured. Set it where the file is to be the same on every machine.
    """

    examples: Annotated[int, Field(strict=True, ge=1)] = 100
    reduce_range: bool | None = None


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Int8Dynamic:
    """Hybrid: weights are int8, activations are quantised as they come."""


Quantization: TypeAlias = Int8Static | Int8Dynamic
