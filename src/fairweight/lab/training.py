"""A model from its specs: read the data, build the network, train it, write the folder."""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from fairweight.base.trust import modules_of, trusting
from fairweight.errors import InputError
from fairweight.lab import loop
from fairweight.lab.artifacts import Card, load, read_card, save
from fairweight.lab.batches import Examples, Scaling, generator, model_input
from fairweight.lab.compression.pruner import Pruner, Spec
from fairweight.lab.compression.registry import fields_of, method_of, spec_from, spec_of
from fairweight.lab.compression.simulation import SimulatedInt8
from fairweight.lab.distillation.distiller import (
    Distiller,
    Teacher,
    initial_distiller,
    initial_folder,
    initialise,
)
from fairweight.lab.loop import Progress, Trained, evaluate
from fairweight.lab.measurement import measure
from fairweight.lab.models.registry import build, require_own
from fairweight.lab.onnx_models import to_onnx
from fairweight.lab.partition import Prepared, as_examples, prepare, prepare_once
from fairweight.lab.weights import load_first_weights, load_pretrained, pretrained_file
from fairweight.specs.compression import Pruning, Quantization
from fairweight.specs.data import Data
from fairweight.specs.toml import as_spec, read_spec
from fairweight.specs.training import Distillation, Model, Training

# A finished model as a folder: weights, card with its measured row, and ONNX if wanted.

ONNX = "model.onnx"


def write_model(
    model: nn.Module,
    folder: Path,
    card: Card,
    example: Tensor,
    *,
    onnx: bool,
    overwrite: bool = False,
) -> Card:
    """Measure a model and write it; an ONNX file of an earlier model does not stay behind."""
    card = replace(card, measured=plain_row(measure(model, example, card=card)))

    export = lambda place, written: to_onnx(model, example, place / ONNX, card=written)  # noqa: E731
    return save(model, folder, card, beside=export if onnx else None, overwrite=overwrite)


def plain_row(row: dict[str, Any]) -> dict[str, Any]:
    """A measured row as JSON can hold it: what is undefined is None."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


# Train a network and write it beside its checkpoint: what all ways to a model share.

SAVE_EVERY = 15.0  # seconds of work that an interruption may cost
TIMED_AT_ONCE = 64  # images in the batch that is timed


@dataclass(frozen=True)
class Made:
    """A model as it was written, and its accuracy on the examples held out."""

    path: Path
    card: Card
    test_accuracy: float


def fit(
    network: nn.Module,
    prepared: Prepared,
    training: Training,
    out: str | Path,
    *,
    pruner: Pruner | SimulatedInt8 | None,
    distillation: Distillation | None = None,
    teacher: Teacher | None = None,
    scaling: Scaling | None = None,
    checkpoint: Path | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Trained:
    """Train a network; an interrupted run goes on from its checkpoint, by default beside `out`."""
    place = checkpoint or _checkpoint(out)
    if pruner is not None:
        steps = max(1, -(-len(prepared.train) // training.batch_size))
        pruner.check_length(training.epochs, steps)
    data, distiller = as_examples(prepared.train), None
    if distillation is not None and teacher is not None:
        distiller = Distiller(distillation, teacher)
        initialise(
            network,
            data,
            training,
            initial_distiller(distillation, teacher),
            pruner=pruner,
            scaling=scaling,
            device=_checked(device),
            checkpoint=place,
            save_every=SAVE_EVERY,
            progress=progress,
        )
    return loop.train(
        network,
        data,
        None if prepared.validation is None else as_examples(prepared.validation),
        training,
        pruner=pruner,
        distiller=distiller,
        scaling=scaling,
        device=_checked(device),
        checkpoint=place,
        save_every=SAVE_EVERY,
        progress=progress,
    )


def finish(
    trained: Trained,
    prepared: Prepared,
    card: Card,
    out: str | Path,
    *,
    onnx: bool,
    device: str = "cpu",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Made:
    """Judge a model on the examples held out, write it, and forget the checkpoint."""
    held_out = as_examples(prepared.test)
    network, scaling = trained.model.to(device), trained.scaling
    loss = "binary" if card.tasks else "cross-entropy"
    asked = evaluate(network, held_out, scaling, loss=loss, device=device, progress=progress)
    accuracy = asked["accuracy"]
    went: dict[str, Any] = {"test_accuracy": accuracy}
    if trained.history:
        went |= {"history": list(trained.history), "kept_epoch": trained.kept_epoch}
    card = replace(card, preprocessing=scaling, training={**card.training, **went})
    example = timed_example(held_out, scaling)
    written = write_model(network.cpu(), Path(out), card, example, onnx=onnx, overwrite=overwrite)
    forget_checkpoint(out)
    return Made(Path(out), written, accuracy)


def forget_checkpoint(out: str | Path) -> None:
    """Remove what an interrupted training of this model left beside it."""
    for place in (_checkpoint(out), initial_folder(_checkpoint(out))):
        shutil.rmtree(place, ignore_errors=True)


def timed_example(data: Examples, scaling: Scaling) -> Tensor:
    """One batch of real inputs: what models are exported with, and timed on."""
    return model_input(data.images[:TIMED_AT_ONCE], scaling).contiguous()


def compression_of(pruning: Spec, treatment: str) -> dict[str, Any]:
    """What was done, as plain values for a card."""
    return {**fields_of(pruning), "sparsity": pruning.sparsity, "treatment": treatment}


def _checkpoint(out: str | Path) -> Path:
    folder = Path(out)
    return folder.parent / f".{folder.name}.training"


def _checked(device: str) -> str:
    """The device; an error if torch does not have it."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = (str(error).strip().splitlines() or ["unknown"])[0][:120]
        raise InputError(
            f"device = '{device}' cannot be used here ({reason}); use cpu, cuda or mps, as far as "
            "this machine and this torch have them."
        ) from None
    return device


def first_seed(seed: int) -> int:
    """The seed of the first weights, separate from that of the order of images."""
    return int(torch.randint(2**62, (1,), generator=generator(seed)))


# Who teaches a student, and whether the teacher saw examples that the student may not.


def load_teacher(path: str | Path, classes: tuple[str, ...]) -> tuple[Teacher, Card]:
    """The model of a folder as a teacher of these classes."""
    network, card = load(path)
    if card.preprocessing is None:
        raise InputError(
            f"The card of the teacher '{path}' does not say how pixels are scaled; give a model "
            "that `fairweight train` wrote."
        )
    if card.classes != classes:
        raise InputError(
            f"The teacher '{path}' knows {len(card.classes)} classes ({_few(card.classes)}), and "
            f"the student {len(classes)} ({_few(classes)}); both must have the same in one order."
        )
    return Teacher(network, card.preprocessing), card


def taught(distillation: Distillation, teacher: Card) -> dict[str, Any]:
    """What a card says of a distillation."""
    return {**asdict(distillation), "teacher": f"{teacher.variant}:{teacher.seed}"}


def leak(
    before: Card, own: Data, prepared: Prepared, root: str | Path | None, *, role: str
) -> str | None:
    """A sentence where a model was trained on examples that its successor's training set lacks.

    Parameters
    ----------
    before
        Of the teacher, or of the model that a copy starts from.
    own, prepared
        The successor's data.
    role
        How the sentence calls it: `teacher`, `model that it starts from`.
    """
    inherited = before.compression.get("leak")
    if not before.data:
        return inherited
    other = read_spec(Data, before.data, f"The data in the card of '{before.variant}'")
    if other == own:
        return inherited
    if other.name != own.name:
        return f"The {role} was trained on another data set, '{other.name}'."
    seen = prepare_once(other, root).train.example_id
    more = int((~np.isin(seen, prepared.train.example_id)).sum())
    if not more:
        return inherited
    return f"The {role} saw {more:,} training examples that this model's training set leaves out."


def _few(classes: tuple[str, ...]) -> str:
    return ", ".join(classes[:3]) + (", …" if len(classes) > 3 else "")


# How variants are called: by what was done to the model.

DENSE = "dense"


# A spec, its fields with the key `method`, or a method's name where no field must be given.
Method: TypeAlias = Pruning | Quantization | Mapping[str, Any] | str


def named_method(given: Method) -> tuple[str, Any]:
    """The name of a method (or of a recipe, as it was given) and its spec."""
    if isinstance(given, str):
        return given, spec_of(given)
    if isinstance(given, Mapping):
        spec = spec_from(given)
        return str(given["method"]), spec
    return method_of(given).name, given


def variant_name(
    method: str,
    spec: Pruning | Quantization,
    distillation: Distillation | None = None,
    *,
    after: str = DENSE,
) -> str:
    """The name of a compressed variant; after an earlier compression, both names.

    >>> from fairweight.specs.compression import GlobalMagnitude, NOfM
    >>> variant_name("global-magnitude", GlobalMagnitude(sparsity=0.95))
    'global-magnitude-95'
    >>> variant_name("n-of-m", NOfM(n=2, m=4), Distillation(losses="kd"), after="int8-static")
    'int8-static-2-of-4-kd'
    """
    own = spec.variant(method)
    return taught_name(own if after == DENSE else f"{after}-{own}", distillation)


def taught_name(name: str, distillation: Distillation | None) -> str:
    """The name with the losses of its teacher, if it has one.

    >>> taught_name("dense", Distillation(losses="at+kd"))
    'dense-at-kd'
    """
    return name if distillation is None else f"{name}-{distillation.losses.replace('+', '-')}"


def train(
    data: Data | Mapping[str, Any] | str,
    model: Model | Mapping[str, Any] | str,
    training: Training | Mapping[str, Any],
    out: str | Path,
    *,
    pruning: Pruning | Mapping[str, Any] | None = None,
    distillation: Distillation | Mapping[str, Any] | str | None = None,
    teacher: str | Path | None = None,
    init: str | Path | None = None,
    weights: str | Path | None = None,
    variant: str | None = None,
    root: str | Path | None = None,
    prepared: Prepared | None = None,
    onnx: bool = False,
    checkpoint: Path | None = None,
    device: str = "cpu",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Made:
    """Train a network on a data set and write it as a folder with its card.

    A run that was interrupted goes on where it stopped when it is asked for again.

    Parameters
    ----------
    data
        The name of a data set (`digits`), or its spec: a dictionary of fields, or `Data`.
    model
        The name of an architecture (`lenet`, `module:function`), or the fields of `Model`.
    training
        The fields of `Training`, such as `{"epochs": 20, "lr": 0.05, "seed": 1}`.
    out
        The folder of the model.
    pruning
        A method that prunes from the first weights on: a dictionary with `method` and its fields,
        or a spec.
    distillation, teacher
        How the network is held near a teacher (`at+kd`, or the fields of `Distillation`), and the
        teacher's folder.
    init
        A safetensors file, or the folder of a model, whose weights are the start.
    weights
        Of a network with `init = "imagenet"` or `"shipped"`: the file with its published weights;
        by default that of the installed package.
    variant
        What the model is called; by default `dense`, or the method with its sparsity.
    root
        The folder with data sets.
    prepared
        The parts of the data, where they were read before.
    onnx
        Also write `model.onnx` into the folder.
    checkpoint
        The folder of the half-done training; by default hidden beside `out`.
    device
        `cpu`, `cuda` or `mps`.
    overwrite
        Replace files too that fairweight did not write, or that were changed since.
    progress
        Called with numbers (loss, accuracy, sparsity), steps done and steps in all.
    """
    data = as_spec(Data, data, "The data", "name")
    model = as_spec(Model, model, "The network", "architecture")
    training = as_spec(Training, training, "The training", "epochs")
    if distillation is not None:
        distillation = as_spec(Distillation, distillation, "The distillation", "losses")
    method, spec = ("", None) if pruning is None else named_method(pruning)
    if spec is not None and method_of(spec).acts_on == "file":
        raise InputError(
            f"{method} acts on a finished model; train it first, then: fairweight compress "
            f"MODEL --method {method}"
        )
    if (distillation is None) != (teacher is None):
        raise InputError(
            "A distillation (--distill) needs a teacher (--teacher), and a teacher a distillation; "
            "give both or neither."
        )
    if ":" in model.architecture:
        require_own(model.architecture, "The network")
    if model.init == "random" and weights is not None:
        raise InputError(
            "weights name a file of published weights, but the network starts from random ones; "
            'add init = "imagenet" or "shipped" (--init imagenet, --init shipped), or give your '
            "own weights as init (--init FILE)."
        )
    if model.init != "random" and init is not None:
        raise InputError(
            f"The network cannot start from published weights and from '{init}'; give one of them."
        )
    pretrained = None
    if model.init != "random":
        pretrained = pretrained_file(model, [] if weights is None else [weights])
    prepared = prepared or prepare(data, root)
    # Attributes are learnt with a binary loss each, classes with cross-entropy.
    loss: Any = "binary" if prepared.train.multi_label else "cross-entropy"
    training = replace(training, loss=loss)
    network, options = _network(model, prepared, training.seed)
    begun: dict[str, Any] = {"init": None if init is None else str(init)}
    if init is not None:
        load_first_weights(network, init)
    if pretrained is not None:
        load_pretrained(network, pretrained, prepared.train.classes)
        begun = {
            "init": model.init,
            "weights": str(pretrained.path),
            "weights_sha256": pretrained.sha256,
        }
    compression = {} if spec is None else compression_of(spec, "from the first weights")
    taught_by: Teacher | None = None
    if distillation is not None and teacher is not None:
        taught_by, of = load_teacher(teacher, prepared.train.classes)
        told = leak(of, data, prepared, root, role="teacher")
        compression |= {"distillation": taught(distillation, of)}
        compression |= {"leak": told} if told else {}
    card = Card(
        architecture=model.architecture,
        options=options,
        classes=prepared.train.classes,
        tasks=prepared.train.multi_label,
        variant=variant or trained_name(pruning, distillation),
        seed=training.seed,
        dataset=data.name,
        data=asdict(data),
        training={**asdict(training), **begun},
        compression=compression,
    )
    pruner = None if spec is None else Pruner(spec)
    trained = fit(
        network,
        prepared,
        training,
        out,
        pruner=pruner,
        distillation=distillation,
        teacher=taught_by,
        scaling=None if pretrained is None or model.scaling == "data" else pretrained.scaling,
        checkpoint=checkpoint,
        device=device,
        progress=progress,
    )
    with trusting(modules=modules_of(model.architecture)):  # the caller named it
        return finish(trained, prepared, card, out, onnx=onnx, device=device, overwrite=overwrite,
                      progress=progress)  # fmt: skip


def trained_name(pruning: Method | None, distillation: Distillation | None) -> str:
    """What a model that is trained from its first weights is called."""
    if pruning is None:
        return taught_name(DENSE, distillation)
    return variant_name(*named_method(pruning), distillation)


def distil(
    teacher: str | Path,
    distillation: Distillation | Mapping[str, Any] | str,
    model: Model | Mapping[str, Any] | str,
    training: Training | Mapping[str, Any],
    out: str | Path,
    *,
    data: Data | Mapping[str, Any] | str | None = None,
    pruning: Pruning | Mapping[str, Any] | None = None,
    init: str | Path | None = None,
    weights: str | Path | None = None,
    variant: str | None = None,
    root: str | Path | None = None,
    onnx: bool = False,
    device: str = "cpu",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Made:
    """Train a network that is held near a teacher, by default on the teacher's own data.

    A copy of the teacher that is pruned and held near it is made by `compress`.

    Parameters
    ----------
    teacher
        A folder that `train` or `compress` wrote.
    distillation
        One loss or a sum (`kd`, `at+kd`), or the fields of `Distillation`.
    model, training, out, data, pruning, init, weights, variant
        As for `train`.
    root, onnx, device, overwrite, progress
        As for `train`.
    """
    known = read_card(teacher).data
    if data is None and not known:
        raise InputError(
            f"The card of the teacher '{teacher}' does not say what data it was trained on; give "
            "data."
        )
    return train(
        known if data is None else data,
        model,
        training,
        out,
        pruning=pruning,
        distillation=distillation,
        teacher=teacher,
        init=init,
        weights=weights,
        variant=variant,
        root=root,
        onnx=onnx,
        device=device,
        overwrite=overwrite,
        progress=progress,
    )


def _network(model: Model, prepared: Prepared, seed: int) -> tuple[nn.Module, dict[str, Any]]:
    _, height, width, channels = prepared.train.images.shape
    if height != width:
        raise InputError(
            f"The images of '{prepared.train.name}' are {width} × {height} pixels, but networks "
            "take squares; read them in one size (option size, such as size=64)."
        )
    options: dict[str, Any] = {
        "classes": len(prepared.train.classes),
        "channels": channels,
        "size": height,
        "width": model.width,
        **model.options,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(first_seed(seed))
        return build(model.architecture, **options), options
