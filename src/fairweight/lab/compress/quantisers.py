"""The kinds of int8 by name; they are specs like those of pruning, but act on an exported model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairweight.specs.quantization import Int8Dynamic, Int8Static


@dataclass(frozen=True, kw_only=True)
class Quantiser:
    name: str
    spec: type[Any]
    summary: str
    source: str


QUANTISERS: dict[str, Quantiser] = {
    "int8-static": Quantiser(
        name="int8-static",
        spec=Int8Static,
        summary="Weights and activations in int8 (fixed point), ranges from 100 examples",
        source="Hooker et al.",
    ),
    "int8-dynamic": Quantiser(
        name="int8-dynamic",
        spec=Int8Dynamic,
        summary="Weights in int8, activations quantised as they come (hybrid)",
        source="Hooker et al.",
    ),
}
