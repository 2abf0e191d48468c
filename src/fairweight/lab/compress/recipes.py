"""Names of the papers for a method with a schedule: `gmp-random-init`, `zhu-gupta` …"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairweight.specs.pruning_schedules import (
    AGP,
    GMP_PRETRAINED,
    GMP_RANDOM_INIT,
    GMP_RANDOM_INIT_SHORT,
    Iterative,
    ZhuGupta,
)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A method with some of its fields given; whoever uses it may give others."""

    method: str
    fields: Mapping[str, Any]
    summary: str
    source: str


RECIPES: dict[str, Recipe] = {
    "agp-filters": Recipe(
        method="l1-structured",
        fields={"schedule": AGP(), "layers": ("@conv",)},
        summary="Filters of the smallest L1 norm, gradually over 120 epochs",
        source="Simon Says",
    ),
    "agp-weights": Recipe(
        method="l1-unstructured",
        fields={"schedule": AGP(), "layers": ("*", "!@last")},
        summary="The smallest weights of each layer, gradually over 120 epochs",
        source="Simon Says (code)",
    ),
    "gmp-random-init": Recipe(
        method="global-magnitude",
        fields={"schedule": GMP_RANDOM_INIT},
        summary="The smallest weights of all, gradually over 100 epochs from scratch",
        source="Iofinova et al.",
    ),
    "gmp-random-init-short": Recipe(
        method="global-magnitude",
        fields={"schedule": GMP_RANDOM_INIT_SHORT},
        summary="The smallest weights of all, gradually over 20 epochs from scratch",
        source="Iofinova et al.",
    ),
    "gmp-pretrained": Recipe(
        method="global-magnitude",
        fields={"schedule": GMP_PRETRAINED},
        summary="The smallest weights of all, gradually over 80 epochs from a trained model",
        source="Iofinova et al.",
    ),
    "zhu-gupta": Recipe(
        method="l1-unstructured",
        fields={"schedule": ZhuGupta()},
        summary="The smallest weights of each layer, gradually by step (1,000 to 9,000)",
        source="Hooker et al.",
    ),
    "iterative-magnitude": Recipe(
        method="global-magnitude",
        fields={"schedule": Iterative(rewind_to=0)},
        summary="20 % of the remaining weights after every 30 epochs, rewound to the start",
        source="Paganini",
    ),
}
