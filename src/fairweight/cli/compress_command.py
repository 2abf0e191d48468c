"""`fairweight compress`: a pruned, smaller or int8 copy of a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairweight.cli import lab_options as o
from fairweight.cli.options import Overwrite, inputs
from fairweight.errors import InputError


def compress(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="A folder that `train` or `compress` wrote.", show_default=False
        ),
    ],
    method: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What is done; `fairweight methods` lists all methods.",
            rich_help_panel=o.PRUNING,
            show_default=False,
        ),
    ],
    sparsity: o.Sparsity = None,
    layers: o.Layers = None,
    method_option: o.MethodOptions = None,
    remove_channels: Annotated[
        bool,
        typer.Option(
            "--remove-channels",
            help="Structured methods: really remove the channels, which makes the model smaller "
            "and faster; zeros alone do not.",
            rich_help_panel=o.PRUNING,
        ),
    ] = False,
    data: o.DataFolder = None,
    epochs: o.Epochs = None,
    batch_size: o.BatchSize = None,
    lr: o.LearningRate = None,
    optimizer: o.Optimizer = None,
    augment: o.Augmentation = None,
    set_: o.TrainingSet = None,
    training: o.TrainingFile = None,
    distill: o.Distill = None,
    distill_option: o.DistillOptions = None,
    teacher: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="The teacher's folder; by default MODEL itself.",
            rich_help_panel=o.DISTILLATION,
        ),
    ] = None,
    device: o.Device = "cpu",
    threads: o.Threads = None,
    trust_module: o.TrustModule = None,
    variant: o.Variant = None,
    onnx: o.Onnx = False,
    overwrite: Overwrite = False,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Where it goes: a folder, of int8 an .onnx file; by default beside MODEL, named "
            "VARIANT-SEED.",
            rich_help_panel=o.OUTPUT,
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

    Held near the dense model while it is finetuned:

        fairweight compress models/dense-0 --method global-magnitude --sparsity 0.9
        --epochs 3 --lr 0.01 --distill at+kd

    The model's card says what data it was trained on; give --data DIR if that
    is read from files. Then: `fairweight predict models/* --out predictions.parquet`.
    """
    values = dict(locals())
    o.require_lab()
    from rich.console import Console

    from fairweight.cli.made_model import show_made
    from fairweight.cli.training_bar import training_bar
    from fairweight.lab.artifacts import read_card
    from fairweight.lab.compress.registry import spec_of
    from fairweight.lab.make.compressed import compress_model, compressed_name
    from fairweight.specs.quantization import Int8Dynamic, Int8Static
    from fairweight.specs.read_spec import read_spec
    from fairweight.specs.training import Training
    from fairweight.tables.write import check_file, check_folder
    from fairweight.trust import plain_name

    o.limit_threads(threads)
    card = read_card(Path(model))
    spec = spec_of(method, **o.method_fields(sparsity, layers, method_option))
    fields = o.training_fields(
        training,
        epochs=epochs,
        batch_size=batch_size,
        lr=lr,
        optimizer=optimizer,
        augment=augment,
        others=set_,
        seed=card.seed,
    )
    # Without a number of epochs nothing is trained; other fields then mean a forgotten one.
    how = read_spec(Training, fields, "The finetuning") if fields.keys() - {"seed"} else None
    lesson = o.distillation(distill, distill_option)
    if teacher is not None and lesson is None:
        raise InputError("--teacher needs --distill LOSSES, such as --distill kd.")
    called = variant or compressed_name(method, spec, card, lesson)
    place = Path(out) if out is not None else Path(model).parent / f"{called}-{card.seed}"
    if out is None:
        plain_name(called, "The variant's name, which becomes the folder's (give --out),")
    if out is None and isinstance(spec, Int8Static | Int8Dynamic):
        place = place.with_name(f"{place.name}.onnx")
    read = inputs(values)
    if place.suffix == ".onnx":
        check_file(str(place), inputs=read, overwrite=overwrite)
    else:
        known = ("model.json", "weights.safetensors")
        check_folder(str(place), inputs=read, overwrite=overwrite, names=known)
    with training_bar(f"compressing {card.variant}, seed {card.seed}: {called}") as progress:
        made = compress_model(
            model,
            method,
            spec,
            place,
            training=how,
            root=data,
            remove=remove_channels,
            distillation=lesson,
            teacher=teacher,
            variant=variant,
            onnx=onnx,
            device=device,
            overwrite=overwrite,
            progress=progress,
        )
    show_made(made, Console())
