"""How a student is held near its teacher while it trains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, TypeAlias

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

Weight: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]

INITIAL_EPOCHS = 30  # as RepDistiller


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Distillation:
    """A sum of losses between the features of a student and of its teacher.

    Parameters
    ----------
    losses
        One loss or a sum: `kd`, `at+kd` (`fairweight methods` lists them).
    weights
        Of the losses and of the cross-entropy (`ce`); by default those that were published.
    options
        Of the losses: `{"kd": {"temperature": 2}}`.
    features, teacher_features
        For a network of your own: where its features are, `{"block1": "encoder.0"}`; the teacher's
        where they differ.
    initial_epochs
        Length of the stage before the training, for losses that act only there (`fsp`).
    cache
        Compute the teacher's features once for all training examples and keep them in memory; for
        small data sets without random changes of the images.
    """

    losses: Annotated[str, Field(min_length=1)]
    weights: Mapping[str, Weight] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    features: Mapping[str, str] = field(default_factory=dict)
    teacher_features: Mapping[str, str] = field(default_factory=dict)
    initial_epochs: Annotated[int, Field(ge=1)] = INITIAL_EPOCHS
    cache: bool = False
