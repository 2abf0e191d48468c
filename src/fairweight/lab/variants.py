"""A compressed model from a trained one: pruned (and finetuned), its channels removed, or int8."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from fairweight.errors import InputError
from fairweight.lab.artifacts import Card, load, plain
from fairweight.lab.batches import Scaling, as_array, batches_of, model_input
from fairweight.lab.compression.channels import remove_channels
from fairweight.lab.compression.int8 import Int8Model, quantize_dynamic, quantize_static
from fairweight.lab.compression.pruner import Pruner, Spec, prune
from fairweight.lab.compression.registry import spec_from
from fairweight.lab.distillation.distiller import Teacher
from fairweight.lab.flops import count_flops
from fairweight.lab.loaders import open_onnx
from fairweight.lab.loop import Progress, Trained
from fairweight.lab.masks import dense_values, load_dense_values
from fairweight.lab.measurement import measure
from fairweight.lab.models.registry import build_from_file
from fairweight.lab.onnx_models import card_of, put_card, read_onnx, to_onnx, write_onnx
from fairweight.lab.partition import Prepared, as_examples, prepare
from fairweight.lab.training import (
    DENSE,
    Made,
    compression_of,
    finish,
    first_seed,
    fit,
    leak,
    load_first_weights,
    load_teacher,
    plain_row,
    taught,
    taught_name,
    timed_example,
    variant_name,
)
from fairweight.specs.compression import (
    Int8Dynamic,
    Int8Static,
    Iterative,
    OneShot,
    Quantization,
    Structured,
)
from fairweight.specs.data import Data
from fairweight.specs.toml import read_spec
from fairweight.specs.training import Distillation, Training

# An int8 model from a trained one: exported, quantised, measured, as one ONNX file.


def quantise_model(
    network: nn.Module,
    card: Card,
    spec: Quantization,
    prepared: Prepared,
    scaling: Scaling,
    out: str | Path,
    *,
    variant: str | None = None,
) -> Made:
    """Write a model as an int8 file that ONNX Runtime runs."""
    if Path(out).suffix != ".onnx":
        raise InputError(f"int8 models are ONNX files; '{out}' must end in .onnx.")
    example = timed_example(as_examples(prepared.test), scaling)
    with tempfile.TemporaryDirectory(prefix="fairweight-") as room:
        exported = to_onnx(network, example, Path(room) / "float.onnx", card=card)
        quantised = Path(room) / "int8.onnx"
        if isinstance(spec, Int8Static):
            first = as_examples(prepared.train).images[: spec.examples]
            calibration = np.ascontiguousarray(model_input(first, scaling).numpy())
            quantize_static(
                exported,
                quantised,
                [calibration],
                examples=spec.examples,
                reduce_range=spec.reduce_range,
            )
        else:
            quantize_dynamic(exported, quantised)
        accuracy = _accuracy(quantised, prepared)
        model = read_onnx(quantised)
        held = card_of(model, f"'{out}'") or card
        row = measure(quantised, example, card=held)
    # The file computes what the network does; only its numbers are shorter.
    flops = count_flops(plain(network).cpu(), example)
    row |= {"variant": variant or held.variant, "flops": flops.dense, "flops_sparse": flops.sparse}
    held = replace(
        held,
        variant=variant or held.variant,
        training={**held.training, "test_accuracy": accuracy},
        measured=plain_row(row),
    )
    put_card(model, held)
    return Made(write_onnx(model, out), held, accuracy)


def _accuracy(file: Path, prepared: Prepared) -> float:
    opened = open_onnx(file, "The int8 model", scaling=None)
    right = []
    for batch in batches_of(prepared.test):
        output = opened.run(batch["image"])
        answer = output > 0 if prepared.test.multi_label else output.argmax(axis=1)
        right.append(answer == batch["label"])
    return float(np.concatenate(right).mean())


Compression: TypeAlias = Spec | Quantization


def compress_model(
    source: str | Path,
    method: str,
    spec: Compression,
    out: str | Path,
    *,
    training: Training | None = None,
    root: str | Path | None = None,
    prepared: Prepared | None = None,
    rewind: bool = False,
    remove: bool = False,
    data: Data | None = None,
    distillation: Distillation | None = None,
    teacher: str | Path | None = None,
    variant: str | None = None,
    onnx: bool = False,
    checkpoint: Path | None = None,
    device: str = "cpu",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Made:
    """Compress a model that `train_model` (or this function) wrote, on the data that it knows.

    Parameters
    ----------
    source
        The folder of a model.
    method, spec
        The method's name and its spec.
    out
        The folder of the compressed model; of int8, the ONNX file.
    training
        How it is finetuned; schedules that prune while training need it.
    rewind
        Whether what stays goes back to the first weights of the seed before it is trained.
    remove
        Of structured methods: whether channels are really removed, not only set to 0.
    data
        What the copy is finetuned and judged on; by default the model's own data.
    distillation, teacher
        How the copy is held near a teacher while it is finetuned, and the teacher's folder; by
        default the model itself teaches.
    prepared, checkpoint, overwrite
        As for `train_model`.
    """
    network, card = load(source)
    if not card.data or card.preprocessing is None:
        raise InputError(
            f"The card of '{source}' does not say what data the model was trained on and how "
            "pixels are scaled; compress it in Python, with fairweight.lab.compression."
        )
    data = data or read_spec(Data, card.data, f"The data in the card of '{source}'")
    prepared, scaling = prepared or prepare(data, root), card.preprocessing
    if isinstance(spec, Int8Static | Int8Dynamic):
        if training is not None or remove or distillation is not None:
            raise InputError(
                f"{method} quantises a finished model; it takes no epochs and no teacher, and "
                "removes no channels."
            )
        return quantise_model(network, card, spec, prepared, scaling, out, variant=variant)
    _check_schedule(spec, training)
    if rewind and (training is None or spec.schedule.kind != "one-shot"):
        raise InputError(
            "rewind goes back to the first weights and trains again: it needs epochs, and a method "
            "that prunes at once."
        )
    if distillation is not None and training is None:
        raise InputError(
            f"The distillation '{distillation.losses}' acts while a model trains; say for how many "
            "epochs (--epochs)."
        )
    if remove and not isinstance(spec, Structured):
        raise InputError(
            f"{method} makes single weights 0, so that no channel can be removed; use a structured "
            "method, such as l1-structured."
        )
    example = timed_example(as_examples(prepared.test), scaling)
    whole_channels = example if remove else None
    parent = card
    leaks = [leak(parent, data, prepared, root, role="model that it starts from")]
    taught_by: Teacher | None = None
    lesson: dict[str, Any] = {}
    if distillation is not None:
        taught_by, of = load_teacher(teacher or source, card.classes)
        lesson = {"distillation": taught(distillation, of)}
        leaks.insert(0, leak(of, data, prepared, root, role="teacher"))
    told = next((sentence for sentence in leaks if sentence), None)
    card = replace(
        parent,
        variant=variant or compressed_name(method, spec, parent, distillation),
        seed=parent.seed if training is None else training.seed,
        parent=f"{parent.variant}:{parent.seed}",
        data=asdict(data),
        dataset=data.name,
        compression={
            **compression_of(spec, _treatment(training, rewind)),
            "sparsity": _in_all(spec, parent),
            "channels_removed": remove,
            **lesson,
            **({} if told is None else {"leak": told}),
        },
        measured={},
    )
    if training is None:
        trained = Trained(prune(network, spec, whole_channels).eval(), scaling, (), -1)
    else:
        training = replace(training, loss="binary" if card.tasks else "cross-entropy")
        card = replace(card, training={**asdict(training), "after": parent.training})
        pruner: Pruner | None = Pruner(spec, example=whole_channels)
        if rewind:
            network, pruner = _rewound(prune(network, spec, whole_channels), card), None
        trained = fit(
            network,
            prepared,
            training,
            out,
            pruner=pruner,
            distillation=distillation,
            teacher=taught_by,
            scaling=scaling,
            checkpoint=checkpoint,
            device=device,
            progress=progress,
        )
    if remove:
        trained = replace(trained, model=remove_channels(trained.model.cpu(), None, example))
    return finish(trained, prepared, card, out, onnx=onnx, device=device, overwrite=overwrite)


def compressed_name(
    method: str, spec: Compression, card: Card, distillation: Distillation | None = None
) -> str:
    """What a compressed copy of this model is called."""
    if isinstance(spec, Int8Static | Int8Dynamic):
        return method if card.variant == DENSE else f"{card.variant}-{method}"
    return taught_name(variant_name(method, spec, after=card.variant), distillation)


def _rewound(pruned: nn.Module, card: Card) -> nn.Module:
    """The masks of a pruned model over the weights that its training began with."""
    origin = card.training
    while "after" in origin:
        origin = origin["after"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(first_seed(origin.get("seed", card.seed)))
        first = build_from_file(str(card.architecture), card.options, "The model's card")
    if origin.get("init") is not None:
        load_first_weights(first, origin["init"])
    load_dense_values(pruned, dense_values(first))
    return pruned


def _treatment(training: Training | None, rewind: bool) -> str:
    return "none" if training is None else "rewind" if rewind else "finetune"


def _in_all(spec: Spec, parent: Card) -> float:
    """The sparsity that is asked for, counting what earlier rounds have taken."""
    if getattr(spec.schedule, "of", "all") != "remaining":
        return spec.sparsity
    before = float(parent.compression.get("sparsity") or 0.0)
    return 1 - (1 - before) * (1 - spec.sparsity)


def _check_schedule(spec: Spec, training: Training | None) -> None:
    schedule = spec.schedule
    if isinstance(schedule, Iterative) and schedule.rewind_to is not None:
        raise InputError(
            "Rewinding goes back to weights of the same training, which a finished model no longer "
            "has; train with this method from the start (fairweight train --method)."
        )
    at_once = isinstance(schedule, OneShot) and schedule.epoch == 0
    if training is None and not at_once:
        raise InputError(
            f"The schedule '{schedule.kind}' prunes while a model trains; say for how many epochs "
            "(--epochs), or leave the schedule out."
        )


# A compressed copy of a model in memory: `fairweight.lab.compression`.

Given: TypeAlias = Spec | Quantization | Mapping[str, Any]


def compress(
    model: nn.Module, spec: Given, data: Iterable[Any] | None = None
) -> nn.Module | Int8Model:
    """A compressed copy of any module; the model itself stays as it is.

    Parameters
    ----------
    model
        A torch module from images (N, C, H, W) to logits.
    spec
        A spec of `fairweight.specs` (`GlobalMagnitude(sparsity=0.9)`, `Int8Static()`), or a
        dictionary with `method` and its fields. Methods prune at once: those with a schedule
        prune while a model trains, which `fairweight compress` does.
    data
        Batches of inputs as the model takes them, or (inputs, labels): int8 needs them, for the
        shape and the ranges of activations (training examples).

    Returns
    -------
    A module with masks (`fairweight.lab.masks.bake` makes the zeros permanent), or of
    int8 a function of batches that runs in ONNX Runtime and can be saved as a file.

    Examples
    --------
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> small = compress(net, {"method": "global-magnitude", "sparsity": 0.5})
    >>> int((small[1].weight == 0).sum())
    4
    """
    wanted = spec_from(spec) if isinstance(spec, Mapping) else spec
    if not isinstance(wanted, Int8Static | Int8Dynamic):
        return prune(model, wanted)
    if data is None:
        raise InputError(
            "int8 needs data: batches of inputs as the model takes them, such as the first 100 "
            "training examples."
        )
    needed = wanted.examples if isinstance(wanted, Int8Static) else 1
    inputs = _first(data, needed)
    with tempfile.TemporaryDirectory(prefix="fairweight-") as room:
        exported = to_onnx(model, inputs, Path(room) / "float.onnx")
        out = Path(room) / "int8.onnx"
        if isinstance(wanted, Int8Static):
            quantize_static(
                exported,
                out,
                [inputs.numpy()],
                examples=needed,
                reduce_range=wanted.reduce_range,
            )
        else:
            quantize_dynamic(exported, out)
        return Int8Model(out.read_bytes())


def _first(data: Iterable[Any], examples: int) -> Tensor:
    """The first inputs of an iterable of batches, as one tensor of floats."""
    batches = [data] if isinstance(data, Tensor | np.ndarray) else data
    taken: list[Tensor] = []
    for given in batches:
        array = as_array(given[0] if isinstance(given, tuple | list) else given)
        if array.ndim != 4 or array.dtype.kind != "f":
            raise InputError(
                f"A batch of data is {array.dtype} of shape {array.shape}; give floats "
                "(N, C, H, W), scaled as the model takes them."
            )
        taken.append(torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)))
        if sum(len(batch) for batch in taken) >= examples:
            break
    if not taken:
        raise InputError("data has no batches; give some, such as the first 100 training examples.")
    return torch.cat(taken)[:examples]
