"""Models on disk: weights as safetensors, the card as JSON, never a pickle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.card import ZEROS_NOTE, Card, card_from_json, card_json
from fairweight.lab.flops import count_parameters
from fairweight.lab.plain_weights import plain_state
from fairweight.lab.resized_layers import resize_layers
from fairweight.lab.tensor_file import write_tensors
from fairweight.tables.write import atomic_directory, finish

WEIGHTS, MASKS, CARD = "weights.safetensors", "masks.safetensors", "model.json"
FEW_ZEROS = 0.01  # below this share nobody takes a model for a pruned one


def save(
    model: nn.Module,
    folder: str | Path,
    card: Card,
    *,
    beside: Callable[[Path, Card], object] | None = None,
    overwrite: bool = False,
) -> Card:
    """Write a model into a folder, whole or not at all; the card as it was written is returned.

    Weights are stored as they act (masks applied), masks beside them as bits, so that what is
    loaded can be pruned further. If the card names an architecture it is built once, to be sure
    that the folder can be loaded; that layers have become smaller is noted.

    Parameters
    ----------
    beside
        Writes further files into the folder that it is given.
    overwrite
        Replace files too that fairweight did not write, or that were changed since.
    """
    state = plain_state(model)
    card = _with_notes(_with_sizes(card, state), model)
    text = card_json(card)
    masks = _masks(model)
    with atomic_directory(folder, completion=(CARD,), overwrite=overwrite) as room:
        write_tensors(room / WEIGHTS, state)
        if masks:
            shapes = {n: ",".join(str(size) for size in mask.shape) for n, mask in masks.items()}
            packed = {name: _packed(mask) for name, mask in masks.items()}
            write_tensors(room / MASKS, packed, metadata=shapes)
        (room / CARD).write_text(text, encoding="utf-8")
        if beside is not None:
            beside(room, card)
    return card


def load(folder: str | Path, model: nn.Module | None = None) -> tuple[nn.Module, Card]:
    """The model in a folder, in evaluation mode with its masks, and its card.

    Parameters
    ----------
    model
        A module to load the weights into; by default the card's architecture is built. A network
        of your own (`module:function`) is built inside `fairweight.trust.trusting` only.
    """
    place = Path(folder)
    card = read_card(place)
    state = _read_tensors(place / WEIGHTS)[0]
    if model is None:
        model = _built(card, place)
    if card.channels_removed:
        resize_layers(model, state)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        raise InputError(
            f"The weights in '{place}' do not fit {card.architecture or 'the given module'} "
            f"({_reason(error)}); correct the architecture and its options in {CARD}."
        ) from None
    if (place / MASKS).is_file():
        from fairweight.lab.compress.mask import set_masks

        packed, shapes = _read_tensors(place / MASKS)
        set_masks(model, {name: _unpacked(bits, shapes[name]) for name, bits in packed.items()})
    return model.eval(), card


def read_card(folder: str | Path) -> Card:
    """The card of a model's folder."""
    finish(folder)
    file = Path(folder) / CARD
    try:
        text = file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(
            f"'{folder}' is not a saved model: it has no {CARD}; give a folder that `train` or "
            "`compress` wrote."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"'{file}' cannot be read ({error}); save the model again.") from None
    return card_from_json(text, f"'{file}'")


def _with_sizes(card: Card, state: Mapping[str, Tensor]) -> Card:
    """The card, noting smaller layers; an error if its architecture cannot hold the weights."""
    if card.architecture is None:
        return card
    from fairweight.lab.models.registry import build_from_file

    with torch.random.fork_rng(devices=[]):
        # A card may have been read from a file, whatever module it is saved with.
        built = build_from_file(card.architecture, card.options, "The card")
    plain = {name: value.shape for name, value in built.state_dict().items()}
    held = {name: value.shape for name, value in state.items()}
    if plain == held:
        return replace(card, channels_removed=False)
    resize_layers(built, state)
    if {name: value.shape for name, value in built.state_dict().items()} != held:
        changed = sorted(name for name in plain.keys() | held.keys() if _differ(name, plain, held))
        raise InputError(
            f"The model is not what its card says: '{card.architecture}' with {card.options} has "
            f"other parameters ({', '.join(changed[:3])}); correct architecture or options."
        )
    return replace(card, channels_removed=True)


def _differ(name: str, first: Mapping[str, torch.Size], second: Mapping[str, torch.Size]) -> bool:
    return first.get(name) != second.get(name)


def _with_notes(card: Card, model: nn.Module) -> Card:
    zeros = count_parameters(model).sparsity
    if not zeros > FEW_ZEROS or ZEROS_NOTE in card.notes:  # NaN without weights
        return card
    return replace(card, notes=(*card.notes, ZEROS_NOTE))


def _built(card: Card, place: Path) -> nn.Module:
    if card.architecture is None:
        raise InputError(
            f"The card in '{place}' names no architecture; give the module to load the weights "
            "into: load(folder, model=...)."
        )
    from fairweight.lab.models.registry import build_from_file

    with torch.random.fork_rng(devices=[]):
        return build_from_file(card.architecture, card.options, f"The card of '{place}'")


def _masks(model: nn.Module) -> dict[str, Tensor]:
    from fairweight.lab.compress.mask import masks

    return {name: mask.bool().cpu() for name, mask in masks(model).items()}


def _packed(mask: Tensor) -> Tensor:
    return torch.from_numpy(np.packbits(mask.numpy().reshape(-1)))


def _unpacked(bits: Tensor, shape: str) -> Tensor:
    sizes = [int(size) for size in shape.split(",")] if shape else []
    flat = np.unpackbits(bits.numpy(), count=int(np.prod(sizes, dtype=np.int64)))
    return torch.from_numpy(flat.astype(bool)).reshape(sizes)


def _read_tensors(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    from safetensors import SafetensorError, safe_open

    if file.exists() and not file.is_file():
        raise InputError(f"'{file}' is not an ordinary file; save or copy the model again.")
    try:
        with safe_open(file, framework="pt") as held:
            tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
            return tensors, dict(held.metadata() or {})
    except FileNotFoundError:
        raise InputError(
            f"The model in '{file.parent}' has no {file.name}; save the model again."
        ) from None
    except (OSError, SafetensorError, ValueError) as error:
        raise InputError(
            f"'{file}' cannot be read as safetensors ({error}); it may be cut off: save or copy "
            "the model again."
        ) from None


def _reason(error: RuntimeError) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[1 if len(lines) > 1 else 0].rstrip(". ")[:200]
