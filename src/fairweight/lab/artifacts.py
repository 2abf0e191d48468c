"""Models on disk: weights as safetensors, the card as JSON, never a pickle."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import safetensors.torch
import torch
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator
from pydantic.dataclasses import dataclass
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from fairweight.base.files import atomic_directory, finish
from fairweight.errors import InputError
from fairweight.lab.batches import Scaling
from fairweight.lab.flops import count_parameters
from fairweight.lab.masks import bake, masks, set_masks
from fairweight.lab.models.registry import build_from_file

# The card of a model: everything but the weights that is needed to use it and to judge it.

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


# Tensors as a safetensors file.


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write a file; a full disk is an ordinary OSError, which safetensors' own writer hides."""
    held = None if metadata is None else dict(metadata)
    path.write_bytes(safetensors.torch.save(dict(tensors), metadata=held))


# Layers of another size than an architecture builds: what removing channels leaves behind.


def resize_layers(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Replace the layers whose stored weights (or biases) differ by layers that fit them.

    Convolutions, linear layers and batch norms are replaced; what else differs is left, and
    loading the weights will say so. A depthwise convolution stays one.
    """
    for path, module in list(model.named_modules()):
        weight = state.get(f"{path}.weight" if path else "weight")
        own = getattr(module, "weight", None)
        if weight is None or not isinstance(own, Tensor):
            continue
        # What a removed channel always sent may have become a bias that the layer had not.
        bias = f"{path}.bias" in state
        if own.shape == weight.shape and bias == (getattr(module, "bias", None) is not None):
            continue
        fitted = _fitted(module, weight, bias=bias)
        if fitted is not None:
            parent, _, name = path.rpartition(".")
            setattr(model.get_submodule(parent), name, fitted)


def _fitted(module: nn.Module, weight: Tensor, *, bias: bool) -> nn.Module | None:
    """A copy of a layer for weights of this shape; its kind, stride and padding stay."""
    fitted = copy.deepcopy(module)
    if isinstance(fitted, nn.Conv2d) and weight.dim() == 4:
        if fitted.groups == fitted.in_channels > 1:
            fitted.groups = weight.shape[0]
        fitted.out_channels, fitted.in_channels = weight.shape[0], weight.shape[1] * fitted.groups
    elif isinstance(fitted, nn.Linear) and weight.dim() == 2:
        fitted.out_features, fitted.in_features = weight.shape
    elif isinstance(module, nn.BatchNorm2d | nn.BatchNorm1d) and weight.dim() == 1:
        return type(module)(
            len(weight),
            eps=module.eps,
            momentum=module.momentum,
            affine=module.affine,
            track_running_stats=module.track_running_stats,
        )
    else:
        return None
    fitted.weight = nn.Parameter(torch.zeros_like(weight))
    fitted.bias = nn.Parameter(torch.zeros(weight.shape[0])) if bias else None
    return fitted


# A model's weights as they act: masks applied, one plain tensor per parameter.


def plain(model: nn.Module) -> nn.Module:
    """A copy without masks, in evaluation mode: what is exported, stored and timed."""
    return bake(copy.deepcopy(model)).eval()


def plain_state(model: nn.Module) -> dict[str, Tensor]:
    """The state of the plain copy, on the CPU, each tensor with memory of its own."""
    return {
        name: value.detach().cpu().contiguous().clone()
        for name, value in plain(model).state_dict().items()
    }


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
    card = _with_sizes(card, state)
    zeros = count_parameters(model).sparsity  # NaN without weights
    if zeros > FEW_ZEROS and ZEROS_NOTE not in card.notes:
        card = replace(card, notes=(*card.notes, ZEROS_NOTE))
    text = card_json(card)
    own = {name: mask.bool().cpu() for name, mask in masks(model).items()}
    with atomic_directory(folder, completion=(CARD,), overwrite=overwrite) as unfinished:
        write_tensors(unfinished / WEIGHTS, state)
        if own:
            shapes = {n: ",".join(str(size) for size in mask.shape) for n, mask in own.items()}
            packed = {
                name: torch.from_numpy(np.packbits(mask.numpy().reshape(-1)))
                for name, mask in own.items()
            }
            write_tensors(unfinished / MASKS, packed, metadata=shapes)
        (unfinished / CARD).write_text(text, encoding="utf-8")
        if beside is not None:
            beside(unfinished, card)
    return card


def load(folder: str | Path, model: nn.Module | None = None) -> tuple[nn.Module, Card]:
    """The model in a folder, in evaluation mode with its masks, and its card.

    Parameters
    ----------
    model
        A module to load the weights into; by default the card's architecture is built. A network
        of your own (`module:function`) is built inside `fairweight.base.trust.trusting` only.
    """
    place = Path(folder)
    card = read_card(place)
    state = _read_tensors(place / WEIGHTS)[0]
    if model is None:
        if card.architecture is None:
            raise InputError(
                f"The card in '{place}' names no architecture; give the module to load the weights "
                "into: load(folder, model=...)."
            )
        with torch.random.fork_rng(devices=[]):
            model = build_from_file(card.architecture, card.options, f"The card of '{place}'")
    if card.channels_removed:
        resize_layers(model, state)
    try:
        model.load_state_dict(state)
    except RuntimeError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[1 if len(lines) > 1 else 0].rstrip(". ")[:200]
        raise InputError(
            f"The weights in '{place}' do not fit {card.architecture or 'the given module'} "
            f"({reason}); correct the architecture and its options in {CARD}."
        ) from None
    if (place / MASKS).is_file():
        packed, shapes = _read_tensors(place / MASKS)
        kept: dict[str, Tensor] = {}
        for name, bits in packed.items():
            sizes = [int(size) for size in shapes[name].split(",")] if shapes[name] else []
            flat = np.unpackbits(bits.numpy(), count=int(np.prod(sizes, dtype=np.int64)))
            kept[name] = torch.from_numpy(flat.astype(bool)).reshape(sizes)
        set_masks(model, kept)
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
    """The card with sizes of smaller layers; an error if the weights fit no such architecture."""
    if card.architecture is None:
        return card
    with torch.random.fork_rng(devices=[]):
        # A card may have been read from a file, whatever module it is saved with.
        built = build_from_file(card.architecture, card.options, "The card")
    plain = {name: value.shape for name, value in built.state_dict().items()}
    held = {name: value.shape for name, value in state.items()}
    if plain == held:
        return replace(card, channels_removed=False)
    resize_layers(built, state)
    if {name: value.shape for name, value in built.state_dict().items()} != held:
        names = plain.keys() | held.keys()
        changed = sorted(name for name in names if plain.get(name) != held.get(name))
        raise InputError(
            f"The model is not what its card says: '{card.architecture}' with {card.options} has "
            f"other parameters ({', '.join(changed[:3])}); correct architecture or options."
        )
    return replace(card, channels_removed=True)


def _read_tensors(file: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
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
