"""The parts of a model's card that an ONNX file carries, so that the file can be used alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairweight.lab.card import Card, card_from_json, card_json

if TYPE_CHECKING:
    import onnx

KEY = "fairweight"


def put_card(model: onnx.ModelProto, card: Card) -> None:
    """Write the card into the file's metadata, in place of an earlier one."""
    kept = [(entry.key, entry.value) for entry in model.metadata_props if entry.key != KEY]
    del model.metadata_props[:]
    for key, value in (*kept, (KEY, card_json(card))):
        model.metadata_props.add(key=key, value=value)


def card_of(model: onnx.ModelProto, where: str) -> Card | None:
    """The card in the file's metadata; None if it has none."""
    held = {entry.key: entry.value for entry in model.metadata_props}
    return card_from_json(held[KEY], f"The card in {where}") if KEY in held else None
