"""`fairweight train`: a network from a data set, as a folder that can be compressed and asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fairweight.cli import lab_options as o
from fairweight.cli.options import Overwrite, inputs

EPOCHS = 20


def train(
    dataset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What to train on; `fairweight datasets` lists them.",
            rich_help_panel=o.DATA,
        ),
    ] = "digits",
    data: o.DataFolder = None,
    dataset_option: o.DatasetOptions = None,
    tasks: o.Tasks = None,
    size: Annotated[
        int | None,
        typer.Option(help="Bring square images to this side, in pixels.", rich_help_panel=o.DATA),
    ] = None,
    validation: Annotated[
        float,
        typer.Option(
            help="Share of the training examples by which the best epoch is chosen; 0 keeps the "
            "last.",
            rich_help_panel=o.DATA,
        ),
    ] = 0.1,
    test: Annotated[
        float,
        typer.Option(
            help="Share that is held out, where the data set has no such part.",
            rich_help_panel=o.DATA,
        ),
    ] = 0.3,
    split_by: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Keep examples with the same value (writer, person) in one part.",
            rich_help_panel=o.DATA,
        ),
    ] = None,
    split_seed: Annotated[
        int,
        typer.Option(
            help="Of the parts; leave it alone when you train a population.",
            rich_help_panel=o.DATA,
        ),
    ] = 0,
    share: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CLASS=SHARE",
            help="Keep only this share of a class's training examples; may be repeated.",
            rich_help_panel=o.DATA,
        ),
    ] = None,
    backdoor: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Marked examples, as saved.", rich_help_panel=o.DATA),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="An architecture (`fairweight methods` lists them), or your own module:function.",
            rich_help_panel=o.NETWORK,
        ),
    ] = "lenet",
    width: Annotated[
        float, typer.Option(help="Factor on all numbers of channels.", rich_help_panel=o.NETWORK)
    ] = 1.0,
    model_option: Annotated[
        list[str] | None,
        typer.Option(
            "--model-option",
            metavar="NAME=VALUE",
            help="An option of the architecture: stem=imagenet; may be repeated.",
            rich_help_panel=o.NETWORK,
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Start from these weights (.safetensors, or a model's folder).",
            rich_help_panel=o.NETWORK,
        ),
    ] = None,
    epochs: o.Epochs = None,
    batch_size: o.BatchSize = None,
    lr: o.LearningRate = None,
    optimizer: o.Optimizer = None,
    augment: o.Augmentation = None,
    set_: o.TrainingSet = None,
    training: o.TrainingFile = None,
    seed: Annotated[
        int,
        typer.Option(
            help="Decides first weights and order of examples: another seed, another member.",
            rich_help_panel=o.TRAINING,
        ),
    ] = 0,
    device: o.Device = "cpu",
    threads: o.Threads = None,
    trust_module: o.TrustModule = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Prune while training, from the first weights on: gmp-random-init, zhu-gupta, "
            "iterative-magnitude.",
            rich_help_panel=o.PRUNING,
        ),
    ] = None,
    sparsity: o.Sparsity = None,
    layers: o.Layers = None,
    method_option: o.MethodOptions = None,
    distill: o.Distill = None,
    distill_option: o.DistillOptions = None,
    teacher: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The teacher's folder.", rich_help_panel=o.DISTILLATION),
    ] = None,
    variant: o.Variant = None,
    onnx: o.Onnx = False,
    overwrite: Overwrite = False,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Where the model goes; by default models/VARIANT-SEED.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
) -> None:
    """Train a network and write it as a folder: weights (safetensors), card (JSON), ONNX if wanted.

    A small network on the bundled digits, in seconds:

        fairweight train

    LeNet on MNIST, two members of a population:

        fairweight train --dataset mnist --data DIR --epochs 10 --lr 0.05 --seed 0

        fairweight train --dataset mnist --data DIR --epochs 10 --lr 0.05 --seed 1

    Pruned while it trains, with rewinding to the first weights:

        fairweight train --dataset mnist --data DIR --epochs 40 --lr 0.05
        --method iterative-magnitude --sparsity 0.6 --method-option schedule.epochs=8

    Asked for again after an interruption, it goes on where it stopped. Then:
    `fairweight compress`, `fairweight predict`, `fairweight audit`.
    """
    values = dict(locals())
    o.require_lab()
    from rich.console import Console

    from fairweight.cli.assignments import assignments
    from fairweight.cli.made_model import show_made
    from fairweight.cli.options import split_names
    from fairweight.cli.training_bar import training_bar
    from fairweight.errors import InputError
    from fairweight.lab.compress.registry import spec_of
    from fairweight.lab.make.trained import train_model, trained_name
    from fairweight.specs.data import Data
    from fairweight.specs.model import Model
    from fairweight.specs.read_spec import read_spec
    from fairweight.specs.training import Training
    from fairweight.tables.write import check_folder
    from fairweight.trust import plain_name

    o.limit_threads(threads)
    which = read_spec(
        Data,
        {
            "name": dataset,
            "options": assignments(dataset_option, "--dataset-option"),
            "size": size,
            "validation": validation,
            "test": test,
            "split_by": split_by,
            "split_seed": split_seed,
            "tasks": tuple(split_names(tasks, "--tasks") or ()),
            "shares": assignments(share, "--share"),
            "backdoor": backdoor,
        },
        "The data",
    )
    network = read_spec(
        Model,
        {
            "architecture": model,
            "width": width,
            "options": assignments(model_option, "--model-option"),
        },
        "The network",
    )
    how = read_spec(
        Training,
        {"epochs": EPOCHS}
        | o.training_fields(
            training,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            optimizer=optimizer,
            augment=augment,
            others=set_,
            seed=seed,
        ),
        "The training",
    )
    fields = o.method_fields(sparsity, layers, method_option)
    if method is None and fields:
        raise InputError(
            f"{', '.join(sorted(fields))} say how to prune, but no method is named; add --method "
            "NAME (fairweight methods lists them)."
        )
    pruning = None if method is None else _pruning(spec_of(method, **fields), method)
    lesson = o.distillation(distill, distill_option)
    called = variant or trained_name(method, pruning, lesson)
    place = Path(out) if out is not None else Path("models") / f"{called}-{seed}"
    if out is None:
        plain_name(called, "The variant's name, which becomes the folder's (give --out),")
    given = inputs({**values, "model": None})
    known = ("model.json", "weights.safetensors")
    check_folder(str(place), inputs=given, overwrite=overwrite, names=known)
    with training_bar(f"training {called}, seed {seed}") as progress:
        made = train_model(
            which,
            network,
            how,
            place,
            root=data,
            method=method,
            pruning=pruning,
            distillation=lesson,
            teacher=teacher,
            init=init,
            variant=variant,
            onnx=onnx,
            device=device,
            overwrite=overwrite,
            progress=progress,
        )
    show_made(made, Console())


def _pruning(spec: Any, method: str) -> Any:
    from fairweight.errors import InputError
    from fairweight.specs.quantization import Int8Dynamic, Int8Static

    if isinstance(spec, Int8Static | Int8Dynamic):
        raise InputError(
            f"{method} quantises a finished model; train it first, then: fairweight compress "
            f"MODEL --method {method}"
        )
    return spec
