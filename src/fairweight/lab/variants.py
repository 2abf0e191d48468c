"""A compressed model from a trained one: pruned (and finetuned), its channels removed, or int8."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from fairweight.data.dataset import Images
from fairweight.errors import InputError
from fairweight.lab.artifacts import Card, load, plain
from fairweight.lab.batches import Scaling, as_array, batches_of, model_input
from fairweight.lab.compressed_file import CompressedFile, compress_file, is_model_file
from fairweight.lab.compression.calibration import calibration_rows, drawn_unless_chosen
from fairweight.lab.compression.channels import remove_channels as channels_removed
from fairweight.lab.compression.pruner import Pruner, prune
from fairweight.lab.compression.quantisation import Int8Model
from fairweight.lab.compression.registry import Method as Registered
from fairweight.lab.compression.registry import method_of
from fairweight.lab.compression.simulation import SimulatedInt8
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
    Made,
    Method,
    compression_of,
    finish,
    first_seed,
    fit,
    forget_checkpoint,
    leak,
    load_teacher,
    named_method,
    plain_row,
    taught,
    timed_example,
    variant_name,
)
from fairweight.lab.weights import load_first_weights, load_pretrained, pretrained_file
from fairweight.specs.compression import (
    Iterative,
    OneShot,
    Pruning,
    Quantization,
    Structured,
)
from fairweight.specs.data import Data
from fairweight.specs.toml import as_spec
from fairweight.specs.training import Distillation, Model, Training


@overload
def compress(
    model: nn.Module, spec: Method, data: Iterable[Any] | None = None
) -> nn.Module | Int8Model: ...


@overload
def compress(
    model: str | Path,
    spec: Method,
    data: Data | Mapping[str, Any] | str | None = None,
    *,
    out: str | Path,
    training: Training | Mapping[str, Any] | None = None,
    rewind: bool = False,
    remove_channels: bool = False,
    distillation: Distillation | Mapping[str, Any] | str | None = None,
    teacher: str | Path | None = None,
    variant: str | None = None,
    root: str | Path | None = None,
    prepared: Prepared | None = None,
    onnx: bool = False,
    checkpoint: Path | None = None,
    device: str = "cpu",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Made: ...


@overload
def compress(
    model: str | Path,
    spec: Method,
    data: Any,
    *,
    out: str | Path,
    variant: str | None = None,
    root: str | Path | None = None,
    scaling: Scaling | None = None,
) -> CompressedFile: ...


def compress(
    model: nn.Module | str | Path,
    spec: Method,
    data: Any = None,
    *,
    out: str | Path | None = None,
    training: Training | Mapping[str, Any] | None = None,
    rewind: bool = False,
    remove_channels: bool = False,
    distillation: Distillation | Mapping[str, Any] | str | None = None,
    teacher: str | Path | None = None,
    variant: str | None = None,
    root: str | Path | None = None,
    scaling: Scaling | None = None,
    prepared: Prepared | None = None,
    onnx: bool = False,
    checkpoint: Path | None = None,
    device: str = "cpu",
    overwrite: bool = False,
    progress: Progress | None = None,
) -> nn.Module | Int8Model | Made | CompressedFile:
    """A compressed copy: of a folder a folder (or ONNX file), of a file a file, of a module one.

    The model itself stays as it is.

    Parameters
    ----------
    model
        A folder that `train` or `compress` wrote, an ONNX file or a .pt2 file of any architecture
        (a .pt2 file inside `fairweight.base.trust.trusting(files=[...])` only), or a torch module
        that returns logits.
    spec
        The name of a method (`"int8-static"`), a dictionary with `method` and its fields, or a spec
        of `fairweight.specs.compression` (`GlobalMagnitude(sparsity=0.9)`, `Int8Static()`). By
        name or dictionary int8 calibrates on training examples drawn at random (the same ones each
        time) unless its field `calibration` says which; a spec says it always.
    data
        Of a folder: what the copy is finetuned and judged on, by default the model's own data. Of
        a module or a file: an array of inputs as the model takes them, or batches of inputs or of
        (inputs, labels), such as a DataLoader; int8-static needs them, for the ranges of
        activations (training examples), and a module for the shape of its inputs. Of a file also
        the name or spec of a data set, or its images.
    out
        The folder of the compressed model; of int8, the ONNX file. A module has none: its copy is
        returned.
    scaling
        Of a file that does not say it: how bytes of images are scaled.
    training
        How the copy is finetuned; schedules that prune while training need it.
    rewind
        Whether what stays goes back to the first weights of the seed before it is trained.
    remove_channels
        Of structured methods: whether channels are really removed, not only set to 0.
    distillation, teacher
        How the copy is held near a teacher while it is finetuned, and the teacher's folder; by
        default the model itself teaches.
    variant
        What the copy is called; by default the method with its sparsity.
    root, prepared, onnx, checkpoint, device, overwrite, progress
        As for `train`.

    Returns
    -------
    `Made` (path, card, test accuracy) of a folder, `CompressedFile` (path, sizes, agreement with
    the source) of a file. Of a module one with masks
    (`fairweight.lab.masks.bake` makes the zeros permanent), or of int8 a function of batches that
    runs in ONNX Runtime and can be saved as a file.

    Examples
    --------
    >>> net = nn.Sequential(nn.Flatten(), nn.Linear(4, 2))
    >>> small = compress(net, {"method": "global-magnitude", "sparsity": 0.5})
    >>> int((small[1].weight == 0).sum())
    4
    """
    name, wanted = named_method(spec)
    found = method_of(wanted)
    if isinstance(model, nn.Module):
        if out is not None or training is not None:
            raise InputError(
                "A module in memory is compressed at once, and its copy is returned: leave out and "
                "training away, or give the folder of a model (fairweight.lab.save writes one)."
            )
        return _in_memory(
            getattr(model, "_orig_mod", model), found, wanted, data
        )  # compiled or not
    if out is None:
        raise InputError(f"The copy of '{model}' needs a place; give out: a folder or a file.")
    if is_model_file(model):
        if training or rewind or remove_channels or distillation or teacher or onnx:
            raise InputError(
                f"'{model}' is an exported file, which cannot be trained further; leave out "
                "training, rewind, remove_channels, distillation, teacher and onnx."
            )
        if data is None or isinstance(data, str | Mapping | Data | Images):
            wanted = drawn_unless_chosen(spec, wanted)
        return compress_file(
            model, found, wanted, data, out=out, scaling=scaling, root=root, variant=variant
        )
    if scaling is not None:
        raise InputError(f"The card of '{model}' says how pixels are scaled; leave scaling out.")
    if training is not None:
        training = as_spec(Training, training, "The finetuning", "epochs")
    if distillation is not None:
        distillation = as_spec(Distillation, distillation, "The distillation", "losses")
    network, card = load(model)
    if not card.data or card.preprocessing is None:
        raise InputError(
            f"The card of '{model}' does not say what data the model was trained on and how "
            "pixels are scaled; compress it in Python, as a module: fairweight.lab.compress."
        )
    data = as_spec(Data, data or card.data, f"The data in the card of '{model}'", "name")
    prepared, scaling = prepared or prepare(data, root), card.preprocessing
    _check(name, found, wanted, training, rewind, remove_channels, distillation)
    if found.acts_on == "file" and Path(out).suffix != ".onnx":
        raise InputError(f"{found.name} writes ONNX files; '{out}' must end in .onnx.")
    called = variant or variant_name(name, wanted, distillation, after=card.variant)
    wanted = drawn_unless_chosen(spec, wanted)
    if found.acts_on == "file":
        held = replace(card, parent=f"{card.variant}:{card.seed}")
        if training is not None:
            leaked = leak(card, data, prepared, root, role="model that it starts from")
            held = replace(
                held,
                seed=training.seed,
                data=asdict(data),
                dataset=data.name,
                compression={
                    **card.compression,
                    "treatment": "quantisation-aware",
                    **({} if leaked is None else {"leak": leaked}),
                },
            )
            how = replace(training, loss="binary" if card.tasks else "cross-entropy")
            simulated = SimulatedInt8(wanted, _calibration(prepared, wanted, scaling))
            finetuned = copy.deepcopy(network)
            trained = fit(
                network,
                prepared,
                how,
                out,
                pruner=simulated,
                scaling=scaling,
                checkpoint=checkpoint,
                device=device,
                progress=progress,
            )
            load_dense_values(finetuned, dense_values(trained.model.cpu()))
            network = finetuned.eval()
            went = {"history": list(trained.history), "kept_epoch": trained.kept_epoch}
            held = replace(held, training={**asdict(how), "after": card.training, **went})
        made = _as_file(network, held, found, wanted, prepared, out, called)
        forget_checkpoint(out)
        return made
    example = timed_example(as_examples(prepared.test), scaling)
    whole_channels = example if remove_channels else None
    parent = card
    leaks = [leak(parent, data, prepared, root, role="model that it starts from")]
    taught_by: Teacher | None = None
    lesson: dict[str, Any] = {}
    if distillation is not None:
        taught_by, of = load_teacher(teacher or model, card.classes)
        lesson = {"distillation": taught(distillation, of)}
        leaks.insert(0, leak(of, data, prepared, root, role="teacher"))
    leaked = next((sentence for sentence in leaks if sentence), None)
    treatment = "none" if training is None else "rewind" if rewind else "finetune"
    sparsity = wanted.sparsity
    if getattr(wanted.schedule, "of", "all") == "remaining":  # with what earlier rounds removed
        sparsity = 1 - (1 - float(parent.compression.get("sparsity") or 0.0)) * (1 - sparsity)
    card = replace(
        parent,
        variant=called,
        seed=parent.seed if training is None else training.seed,
        parent=f"{parent.variant}:{parent.seed}",
        data=asdict(data),
        dataset=data.name,
        compression={
            **compression_of(wanted, treatment),
            "sparsity": sparsity,
            "channels_removed": remove_channels,
            **lesson,
            **({} if leaked is None else {"leak": leaked}),
        },
        measured={},
    )
    if training is None:
        trained = Trained(prune(network, wanted, whole_channels).eval(), scaling, (), -1)
    else:
        training = replace(training, loss="binary" if card.tasks else "cross-entropy")
        card = replace(card, training={**asdict(training), "after": parent.training})
        pruner: Pruner | None = Pruner(wanted, example=whole_channels)
        if rewind:
            network, pruner = _rewound(prune(network, wanted, whole_channels), card), None
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
    if remove_channels:
        trained = replace(trained, model=channels_removed(trained.model.cpu(), None, example))
    return finish(trained, prepared, card, out, onnx=onnx, device=device, overwrite=overwrite,
                  progress=progress)  # fmt: skip


def _check(
    name: str,
    found: Registered,
    spec: Pruning | Quantization,
    training: Training | None,
    rewind: bool,
    remove_channels: bool,
    distillation: Distillation | None,
) -> None:
    """Raise where the request's parts contradict each other."""
    if found.trains == "never" and training is not None:
        raise InputError(
            f"{name} acts on a finished model and takes no epochs; int8-qat finetunes a model with "
            "numbers rounded as in its file."
        )
    if found.acts_on == "file" and (rewind or remove_channels or distillation):
        raise InputError(
            f"{name} shortens numbers and removes nothing: it takes no teacher, goes back to no "
            "earlier weights, and removes no channels; give those to a compression before it."
        )
    if found.trains == "must" and training is None:
        raise InputError(f"{name} trains a model further; say for how many epochs (--epochs).")
    if isinstance(spec, Quantization):
        return
    schedule = spec.schedule
    if isinstance(schedule, Iterative) and schedule.rewind_to is not None:
        raise InputError(
            "Rewinding goes back to weights of the same training, which a finished model no longer "
            "has; train with this method from the start (fairweight train --method)."
        )
    if training is None and not (isinstance(schedule, OneShot) and schedule.epoch == 0):
        raise InputError(
            f"The schedule '{schedule.kind}' prunes while a model trains; say for how many epochs "
            "(--epochs), or leave the schedule out."
        )
    if rewind and (training is None or schedule.kind != "one-shot"):
        raise InputError(
            "rewind goes back to the first weights and trains again: it needs epochs, and a method "
            "that prunes at once."
        )
    if distillation is not None and training is None:
        raise InputError(
            f"The distillation '{distillation.losses}' acts while a model trains; say for how many "
            "epochs (--epochs)."
        )
    if remove_channels and not isinstance(spec, Structured):
        raise InputError(
            f"{name} makes single weights 0, so that no channel can be removed; use a structured "
            "method, such as l1-structured."
        )


def _rewound(pruned: nn.Module, card: Card) -> nn.Module:
    """The masks of a pruned model over the weights that its training began with."""
    origin = card.training
    while "after" in origin:
        origin = origin["after"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(first_seed(origin.get("seed", card.seed)))
        first = build_from_file(str(card.architecture), card.options, "The model's card")
    if origin.get("weights_sha256") is not None:
        model = {"architecture": card.architecture, "init": origin["init"]}
        model["weights"] = origin["weights_sha256"]
        file = Path(str(origin.get("weights")))
        wanted = as_spec(Model, model, "The network in the model's card", "architecture")
        found = pretrained_file(wanted, [file] if file.is_file() else [])
        load_pretrained(first, found, card.classes)
    elif origin.get("init") is not None:
        load_first_weights(first, origin["init"])
    load_dense_values(pruned, dense_values(first))
    return pruned


# Methods that act on an exported model: exported, compressed, measured, as one ONNX file.


def _as_file(
    network: nn.Module,
    card: Card,
    method: Registered,
    spec: Quantization,
    prepared: Prepared,
    out: str | Path,
    variant: str,
) -> Made:
    scaling = card.preprocessing
    assert scaling is not None  # checked by `compress`
    example = timed_example(as_examples(prepared.test), scaling)
    inputs = np.ascontiguousarray(_calibration(prepared, spec, scaling).numpy())
    with tempfile.TemporaryDirectory(prefix="fairweight-") as folder:
        compressed = _exported(network, example, Path(folder), method, spec, inputs, card)
        opened = open_onnx(compressed, "The compressed model", scaling=None)
        right = []
        for batch in batches_of(prepared.test):
            output = opened.run(batch["image"])
            answer = output > 0 if prepared.test.multi_label else output.argmax(axis=1)
            right.append(answer == batch["label"])
        accuracy = float(np.concatenate(right).mean())
        model = read_onnx(compressed)
        held = card_of(model, f"'{out}'") or card
        row = measure(compressed, example, card=held)
    # The file computes what the network does; only its numbers are shorter.
    flops = count_flops(plain(network).cpu(), example)
    row |= {"variant": variant, "flops": flops.dense, "flops_sparse": flops.sparse}
    held = replace(
        held,
        variant=variant,
        parent=card.parent,
        training={**held.training, "test_accuracy": accuracy},
        measured=plain_row(row),
    )
    put_card(model, held)
    return Made(write_onnx(model, out), held, accuracy)


def _calibration(prepared: Prepared, spec: Quantization, scaling: Scaling) -> Tensor:
    """The training examples that a spec calibrates with, as the network takes them."""
    rows = torch.from_numpy(calibration_rows(prepared.train, spec))
    return model_input(as_examples(prepared.train).images[rows], scaling)


def _exported(
    network: nn.Module,
    example: Tensor,
    folder: Path,
    method: Registered,
    spec: Quantization,
    inputs: NDArray[Any],
    card: Card | None = None,
) -> Path:
    """The file that a method makes of an exported network."""
    target = folder / "compressed.onnx"
    source = to_onnx(network, example, folder / "float.onnx", card=card)
    method.function(source, target, inputs, spec)
    return target


# A compressed copy of a model in memory.


def _in_memory(
    model: nn.Module, method: Registered, spec: Any, data: Iterable[Any] | None
) -> nn.Module | Int8Model:
    if method.acts_on == "weights":
        return prune(model, spec)
    if method.trains == "must":
        raise InputError(
            f"{method.name} trains a model further, and a module in memory is compressed at once; "
            "save it as a folder (fairweight.lab.save), and compress that."
        )
    if data is None:
        raise InputError(
            f"{method.name} needs data: batches of inputs as the model takes them, such as the "
            "first 100 training examples."
        )
    inputs = _first(data, spec.calibration_examples)
    with tempfile.TemporaryDirectory(prefix="fairweight-") as folder:
        file = _exported(model, inputs, Path(folder), method, spec, inputs.numpy())
        return Int8Model(file.read_bytes())


def _first(data: Iterable[Any], examples: int) -> Tensor:
    """The first inputs of an iterable of batches, as one tensor of floats."""
    batches = [data] if isinstance(data, Tensor | np.ndarray) else data
    taken: list[Tensor] = []
    for given in batches:
        array = as_array(given[0] if isinstance(given, tuple | list) else given)
        if array.ndim < 2 or array.dtype.kind != "f":
            raise InputError(
                f"A batch of data is {array.dtype} of shape {array.shape}; give floats as the "
                "model takes them: (N, C, H, W) of images, (N, columns) of tables."
            )
        taken.append(torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32)))
        if sum(len(batch) for batch in taken) >= examples:
            break
    if not taken:
        raise InputError("data has no batches; give some, such as the first 100 training examples.")
    return torch.cat(taken)[:examples]
