"""What every kind of model becomes: a function of a batch, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from fairweight.lab.card import Outputs


@dataclass(frozen=True)
class Loaded:
    """A model that can be asked.

    run        a batch of inputs to outputs, one row per example
    classes    names of the outputs in their order; None where the model does not say
    tasks      whether the outputs are several binary tasks; None where it does not say
    outputs    what they are; None where it does not say
    identity   digest of everything that decides the answers; None where that cannot be known
    """

    run: Callable[[Any], NDArray[Any]]
    classes: tuple[str, ...] | None = None
    tasks: bool | None = None
    outputs: Outputs | None = None
    identity: str | None = None
