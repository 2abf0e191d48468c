"""A compressed model from a trained one: pruned (and finetuned), its channels removed, or int8."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import nn

from fairweight.errors import InputError
from fairweight.lab.artifacts import load
from fairweight.lab.card import Card
from fairweight.lab.compress.mask import dense_values, load_dense_values
from fairweight.lab.compress.prune import Spec, prune
from fairweight.lab.compress.pruner import Pruner
from fairweight.lab.compress.remove import remove_channels
from fairweight.lab.distill.teacher import Teacher
from fairweight.lab.make.first_weights import first_seed, load_first_weights
from fairweight.lab.make.fitted import Made, compression_of, finish, fit, timed_example
from fairweight.lab.make.quantised import quantise_model
from fairweight.lab.make.taught import leak, load_teacher, taught
from fairweight.lab.make.variant_name import DENSE, taught_name, variant_name
from fairweight.lab.models.registry import build_from_file
from fairweight.lab.prepared_data import Prepared, as_examples, prepare
from fairweight.lab.train import Progress, Trained
from fairweight.specs.compression import Structured
from fairweight.specs.data import Data
from fairweight.specs.distillation import Distillation
from fairweight.specs.pruning_schedules import Iterative, OneShot
from fairweight.specs.quantization import Int8Dynamic, Int8Static, Quantization
from fairweight.specs.read_spec import read_spec
from fairweight.specs.training import Training

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
            "pixels are scaled; compress it in Python, with fairweight.lab.compress."
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
