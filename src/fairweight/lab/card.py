"""The card of a model: everything but the weights that is needed to use it and to judge it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, field
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from fairweight.errors import InputError
from fairweight.lab.batches import Scaling

SCHEMA = 1
Outputs: TypeAlias = Literal["logits", "probabilities"]

ZEROS_NOTE = (
    "Zeros inside dense tensors bring no speed in torch or ONNX Runtime, and make only a "
    "compressed file smaller; removing channels or int8 brings speed."
)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Card:
    """What a model is and where it comes from; `model.json` beside its weights.

    Parameters
    ----------
    architecture, options
        What `fairweight.lab.models.registry.build` needs to make the network again. Without an
        architecture the weights can only be loaded into a module of the caller.
    classes
        Names of the outputs in their order: classes of one task, or several binary tasks.
    tasks
        Whether the outputs are several binary tasks, one logit each.
    preprocessing
        Mean and standard deviation per channel by which pixels (0 to 1) are scaled.
    outputs
        What the network gives.
    variant, seed, parent
        Which member of which population it is, and the member that it was derived from
        (`dense:3`; None for a model trained afresh).
    dataset, data
        The name of the data set that it was trained on, and the spec of its parts.
    training, compression
        How it was trained, and what was done to it, as plain values.
    channels_removed
        Whether layers are smaller than the architecture builds them.
    measured
        Its row of the variants table.
    notes
        Sentences for the reader.
    """

    architecture: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    tasks: bool = False
    preprocessing: Scaling | None = None
    outputs: Outputs = "logits"
    variant: str = "dense"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    parent: str | None = None
    dataset: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    training: dict[str, Any] = field(default_factory=dict)
    compression: dict[str, Any] = field(default_factory=dict)
    channels_removed: bool = False
    measured: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _scales_pixels(self) -> Card:
        held = self.preprocessing
        if held is None:
            return self
        if not held.mean or len(held.mean) != len(held.std):
            raise ValueError("preprocessing needs a mean and a deviation for every channel")
        if not all(map(math.isfinite, (*held.mean, *held.std))) or min(held.std) <= 0:
            raise ValueError("preprocessing needs finite means, and deviations above 0")
        return self


def card_json(card: Card) -> str:
    """The card as JSON text, the same for the same card."""
    try:
        return json.dumps({"schema": SCHEMA, **asdict(card)}, indent=2, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The card of '{card.variant}' cannot be written as JSON ({error}); put only text, "
            "finite numbers, lists and dictionaries into it."
        ) from None


def card_from_json(text: str, where: str) -> Card:
    """Read a card; `where` names its file in messages."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        said = str(error)[:200]
        raise InputError(f"{where} is not JSON ({said}); save the model again.") from None
    if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
        raise InputError(
            f"{where} is not a model card of this version (schema {SCHEMA}); save the model again."
        )
    fields = {name: value for name, value in document.items() if name != "schema"}
    try:
        return TypeAdapter(Card).validate_python(fields)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])[:80]
        raise InputError(
            f"{where} is not a valid model card: '{name}': {first['msg']}; correct it, or save "
            "the model again."
        ) from None
