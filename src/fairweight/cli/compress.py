"""`fairweight compress`: a smaller copy of a trained model, or of an ONNX or .pt2 file."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from fairweight import lab
from fairweight.base.files import check_file, check_folder
from fairweight.cli import options as o
from fairweight.cli.lab import (
    DISTILLATION,
    FILES,
    PRUNING,
    Device,
    DistillationOptions,
    MethodOptions,
    Onnx,
    TrainingOptions,
    Variant,
    place_of,
    short,
    show_model,
)
from fairweight.cli.screen import bar, plain_console, training_bar
from fairweight.errors import InputError
from fairweight.specs.data import Data
from fairweight.specs.toml import read_spec
from fairweight.specs.training import Training

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairweight.lab.batches import Scaling
    from fairweight.lab.compressed_file import CompressedFile

CALIBRATION = o.panel("Calibration (of .onnx and .pt2)")
MIXED = o.panel("Mixed precision")


@o.takes
def compress(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A folder that `train` or `compress` wrote, or an .onnx or .pt2 file of any "
            "architecture.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str,
        PRUNING(
            "What is done; `fairweight methods` lists all methods.", "NAME", show_default=False
        ),
    ],
    *,
    method_fields: MethodOptions,
    remove_channels: Annotated[
        bool,
        PRUNING(
            "Structured methods: really remove the channels, which makes the model smaller "
            "and faster; zeros alone do not.",
            flag="--remove-channels",
        ),
    ] = False,
    data: o.DataFolder = None,
    dataset: Annotated[
        str | None,
        CALIBRATION(
            "Take training examples from this data set; by default the one that the file's card "
            "names.",
            "NAME",
        ),
    ] = None,
    dataset_option: Annotated[
        list[str] | None,
        CALIBRATION(
            "An option of the data set (`fairweight datasets NAME` lists them); may be repeated.",
            "NAME=VALUE",
        ),
    ] = None,
    all_examples: Annotated[
        bool,
        CALIBRATION(
            "With --dataset: from every example that it has, not from the training part.",
            flag="--all-examples",
        ),
    ] = False,
    mean: Annotated[
        str | None,
        CALIBRATION(
            "Per channel, or one number for all: what the model takes from a pixel (0 to 1).",
            "a,b,c",
        ),
    ] = None,
    std: Annotated[
        str | None, CALIBRATION("Per channel, by what it divides the rest.", "a,b,c")
    ] = None,
    calibration: Annotated[
        str | None,
        CALIBRATION(
            "An array of inputs in place of a data set (numpy.save): floats as the model takes "
            "them, or bytes (N, H, W, C) with --mean and --std.",
            "FILE.npy",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        MIXED(
            "Leave units in float until this policy (TOML) is met; chosen on validation examples, "
            "judged on test examples.",
            "FILE",
        ),
    ] = None,
    groups: Annotated[str | None, MIXED("Group columns and their combinations.", "a,b,a*b")] = None,
    unit: Annotated[
        str, MIXED("What returns to float: a layer, or a block of layers.", "layer|block")
    ] = "layer",
    max_size: Annotated[
        int | None, MIXED("The largest size of the file, in bytes.", "BYTES")
    ] = None,
    training: TrainingOptions,
    distillation: DistillationOptions,
    teacher: Annotated[
        str | None, DISTILLATION("The teacher's folder; by default MODEL itself.", "DIR")
    ] = None,
    device: Device = "cpu",
    threads: o.Threads = None,
    trust_module: o.TrustModule = None,
    trust_file: o.TrustFile = None,
    variant: Variant = None,
    onnx: Onnx = False,
    overwrite: o.Overwrite = False,
    out: Annotated[
        str | None,
        o.OUTPUT(
            "Where it goes: a folder, of int8 an .onnx file; by default beside MODEL, named "
            "VARIANT-SEED, or MODEL-METHOD.onnx of a file.",
            "PATH",
        ),
    ] = None,
) -> None:
    """Compress a trained model: prune it (and finetune), remove its channels, or make it int8.

    Without 90 % of its weights, at once; then with three epochs of finetuning:

        fairweight compress models/dense-0 --method global-magnitude --sparsity 0.9

        fairweight compress models/dense-0 --method global-magnitude --sparsity 0.9
        --epochs 3 --lr 0.01

    Half of the channels really removed; int8 that ONNX Runtime runs:

        fairweight compress models/dense-0 --method l1-structured --sparsity 0.5
        --remove-channels --epochs 3 --lr 0.01

        fairweight compress models/dense-0 --method int8-static

    int8 after two epochs that round numbers as int8 does, drawing every group as often:

        fairweight compress models/dense-0 --method int8-qat --epochs 2 --lr 0.001
        --set sampling=group-balanced --set sampling_group=race --variant int8-qat-balanced

    Held near the dense model while it is finetuned:

        fairweight compress models/dense-0 --method global-magnitude --sparsity 0.9
        --epochs 3 --lr 0.01 --distill at+kd

    The model's card says what data it was trained on; give --data DIR if that
    is read from files. Then: `fairweight predict models/* --out predictions.parquet`.

    Your own ONNX file, with inputs saved by numpy, or with images in folders:

        fairweight compress net.onnx --method int8-static --calibration inputs.npy

        fairweight compress net.onnx --method int8-static --dataset folders --data DIR
        --dataset-option size=224 --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225

        fairweight compress net.onnx --method int8-dynamic

    In int8, but with the layers in float that a policy by group needs; the exit
    code is the gate's, on test examples that decided nothing:

        fairweight compress models/dense-0 --method int8-static --policy policy.toml
        --groups race,race*gender
    """
    o.require_lab(threads)
    from fairweight.lab.compressed_file import is_model_file

    fields = method_fields.spec_fields()
    chosen = {"method": method, **fields}
    trained: dict[str, Any] = {
        "--remove-channels": remove_channels, **training.given(), **distillation.given(),
        "--teacher": teacher, "--onnx": onnx,
    }  # fmt: skip
    if policy is not None:
        whole = {"--calibration": calibration, "--all-examples": all_examples, "--variant": variant}
        _refuse(
            trained | whole,
            "with --policy, which compresses at once and needs training, validation and test "
            "examples of one data set; leave them out.",
        )
        from fairweight.cli.precision import compress_by_group

        compress_by_group(
            model,
            chosen,
            policy,
            groups=o.split_names(groups, "--groups"),
            unit=unit,
            most_bytes=max_size,
            dataset=dataset,
            dataset_options=o.assignments(dataset_option, "--dataset-option"),
            data=data,
            scaling=o.read_scaling(mean, std),
            out=out,
            overwrite=overwrite,
        )
    if groups is not None or max_size is not None or unit != "layer":
        raise InputError("--groups, --unit and --max-size need --policy FILE: they choose by it.")
    if is_model_file(model):
        _refuse(
            trained,
            f"with '{model}', an exported file, which cannot be trained or taken apart; give a "
            "folder that `train` wrote.",
        )
        _compress_file(
            model,
            chosen,
            data=data,
            dataset=dataset,
            options=o.assignments(dataset_option, "--dataset-option"),
            all_examples=all_examples,
            scaling=o.read_scaling(mean, std),
            calibration=calibration,
            variant=variant,
            out=out,
            overwrite=overwrite,
        )
        return
    calibrated = {
        "--dataset": dataset, "--dataset-option": dataset_option, "--all-examples": all_examples,
        "--mean": mean, "--std": std, "--calibration": calibration, "--trust-file": trust_file,
    }  # fmt: skip
    _refuse(
        calibrated,
        f"with '{model}': they are for .onnx and .pt2 files. A folder's card says what it was "
        "trained on; --data DIR says where that is.",
    )
    from fairweight.lab.artifacts import read_card
    from fairweight.lab.compression.registry import base_method, spec_of
    from fairweight.lab.training import variant_name

    card = read_card(Path(model))
    spec = spec_of(method, **fields)
    given = training.spec_fields(card.seed)
    # Without a number of epochs nothing is trained; other fields then mean a forgotten one.
    how = read_spec(Training, given, "The finetuning") if given.keys() - {"seed"} else None
    lesson = distillation.spec()
    if teacher is not None and lesson is None:
        raise InputError("--teacher needs --distill LOSSES, such as --distill kd.")
    called = variant or variant_name(method, spec, lesson, after=card.variant)
    suffix = ".onnx" if base_method(method).output == "onnx" else ""
    place = place_of(out, called, card.seed, Path(model).parent, suffix=suffix, overwrite=overwrite)
    read = (model, training.training, teacher)
    if place.suffix == ".onnx":
        check_file(str(place), inputs=read, overwrite=overwrite)
    else:
        check_folder(str(place), inputs=read, overwrite=overwrite, names=FILES)
    with training_bar(f"compressing {card.variant}, seed {card.seed}: {called}") as progress:
        made = lab.compress(
            model,
            chosen,
            out=place,
            training=how,
            remove_channels=remove_channels,
            distillation=lesson,
            teacher=teacher,
            variant=called,
            root=data,
            onnx=onnx,
            device=device,
            overwrite=overwrite,
            progress=progress,
        )
    show_model(made)


def _refuse(options: dict[str, Any], why: str) -> None:
    """Refuse those that were used: `--epochs, --lr cannot be used …`."""
    if used := [option for option, value in options.items() if value]:
        raise InputError(f"{', '.join(used)} cannot be used {why}")


def _compress_file(
    model: str,
    method: dict[str, Any],
    *,
    data: str | None,
    dataset: str | None,
    options: dict[str, Any],
    all_examples: bool,
    scaling: Scaling | None,
    calibration: str | None,
    variant: str | None,
    out: str | None,
    overwrite: bool,
) -> None:
    """An exported file: check everything, read calibration data, compress, and print."""
    from fairweight.data import load
    from fairweight.lab.partition import prepare

    if dataset is not None and calibration is not None:
        raise InputError(
            "--dataset and --calibration both say what to calibrate on; give one of them."
        )
    if dataset is None and (options or all_examples):
        raise InputError("--dataset-option and --all-examples need --dataset NAME.")
    source = Path(model)
    place = str(source.with_name(f"{source.stem}-{method['method']}.onnx")) if out is None else out
    check_file(place, inputs=(model, calibration), overwrite=overwrite)
    with bar() as progress:
        inputs: Any = None
        if calibration is not None:
            inputs = read_array(calibration)
        elif dataset is not None:
            progress("reading data", 0, 1)
            if all_examples:
                inputs = load(dataset, data, **options)
            else:
                spec = read_spec(Data, {"name": dataset, "options": options}, "The data")
                inputs = prepare(spec, data).train
        progress(f"compressing {source.name}", 0, 1)
        made: CompressedFile = lab.compress(
            model, method, inputs, out=place, scaling=scaling, root=data, variant=variant
        )
    console = plain_console()
    name = method["method"]
    change = made.size_bytes / made.source_bytes - 1
    size = f"{100 * abs(change):.0f} % {'smaller' if change < 0 else 'larger'}"
    console.print(
        f"{name}: {short(made.size_bytes)}B, {size} than the float model "
        f"({short(made.source_bytes)}B)"
    )
    if made.note is not None:
        console.print(f"  {made.note}", soft_wrap=True)
    if made.same_class is not None:
        console.print(
            f"  Same class as the float model on {made.same_class:,} of the {made.examples:,} "
            "examples given. An audit needs examples that were held out.",
            soft_wrap=True,
        )
    console.print(f"Written to {made.path}", soft_wrap=True)
    words = ["fairweight", "predict", f"dense={model}", f"{name}={made.path}"]
    words += ["--dataset", dataset or "NAME"]
    if data is not None or dataset is None:
        words += ["--data", data or "DIR"]
    for key, value in options.items():
        words += [
            "--dataset-option",
            f"{key}={str(value).lower() if isinstance(value, bool) else value}",
        ]
    if scaling is not None:
        for option, values in (("--mean", scaling.mean), ("--std", scaling.std)):
            words += [option, ",".join(map(str, values))]
    words += ["--all-examples"] if all_examples else []
    words += ["--trust-file", model] if source.suffix.lower() == ".pt2" else []
    console.print(f"Next: {shlex.join(words)}", soft_wrap=True)
    console.print("Then: fairweight audit predictions.parquet", soft_wrap=True)


def read_array(path: str) -> NDArray[Any]:
    """The array in an .npy file; no pickle is read."""
    try:
        held = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"--calibration: there is no file '{path}'; check the path.") from None
    except (OSError, ValueError, EOFError) as error:
        said = " ".join(str(error).split())[:200]
        raise InputError(
            f"--calibration '{path}' cannot be read as an array of numbers ({said}); write it with "
            "numpy.save."
        ) from None
    if not isinstance(held, np.ndarray):
        raise InputError(
            f"--calibration '{path}' holds several arrays; save the inputs alone with numpy.save."
        )
    if not len(held.shape) or not len(held):
        raise InputError(f"--calibration '{path}' holds no examples; give some, such as 100.")
    return held
