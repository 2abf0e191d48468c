"""`fairweight predict`: what models answer, as the tables that an audit reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from fairweight.cli import lab_options as o
from fairweight.cli.options import Overwrite, inputs
from fairweight.cli.progress import bar

if TYPE_CHECKING:
    from fairweight.lab.batches import Scaling


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
    values = dict(locals())
    o.require_lab()
    from fairweight.cli.assignments import assignments
    from fairweight.data import load
    from fairweight.errors import InputError
    from fairweight.lab.make.predicted import (
        asked,
        data_of,
        predict_models,
        training_table,
        variants_table,
        write_table,
    )
    from fairweight.lab.prepared_data import prepare
    from fairweight.specs.data import Data
    from fairweight.specs.read_spec import read_spec
    from fairweight.tables.write import check_file

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
    # The variants table is written, not read.
    read = inputs({**values, "variants": None})
    for option, target in (
        ("--out", out), ("--variants", variants), ("--train-table", train_table),
    ):  # fmt: skip
        if target is not None:
            check_file(target, inputs=read, overwrite=overwrite, option=option)
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
        path = predict_models(
            members,
            chosen,
            out,
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
    from fairweight.errors import InputError
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
