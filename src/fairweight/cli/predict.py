"""`fairweight predict` and `similarity`: what models answer, and how alike they see images."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, dataclass
from math import isnan
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from fairweight import lab
from fairweight.base.files import atomic_file, check_file
from fairweight.cli import options as o
from fairweight.cli.screen import bar, listing, plain_console
from fairweight.errors import InputError
from fairweight.specs.data import Data
from fairweight.specs.similarity import Similarity
from fairweight.specs.toml import read_spec
from fairweight.tables.spec import read_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairweight.data.dataset import Images
    from fairweight.lab.batches import Scaling
    from fairweight.lab.partition import Prepared
    from fairweight.lab.prediction import ModelFile
    from fairweight.lab.representations import BlockDistance

AskedPart: TypeAlias = Annotated[
    str, o.DATA("Which examples, as the models' cards divide them.", "test|validation|train")
]


@dataclass(frozen=True)
class ExampleOptions(o.OptionGroup):
    """The examples that models are run on, and what models do with a pixel."""

    dataset: o.DatasetName = None
    data: o.DataFolder = None
    dataset_option: o.DatasetOptions = None
    part: AskedPart = "test"
    all_examples: Annotated[
        bool,
        o.DATA("With --dataset: every example that it has, not a part.", flag="--all-examples"),
    ] = False
    mean: o.Mean = None
    std: o.Deviation = None

    def scaling(self) -> Scaling | None:
        """What a model takes from a pixel, if that is said."""
        return o.read_scaling(self.mean, self.std)

    def check(self) -> None:
        """Refuse options of a data set where none is named."""
        if self.dataset is None and (self.dataset_option or self.all_examples):
            raise InputError("--dataset-option and --all-examples need --dataset NAME.")

    def read(self, models: Sequence[str | ModelFile]) -> tuple[Images, Prepared | None]:
        """The examples, and the prepared data with all parts unless every example was asked for."""
        options = o.assignments(self.dataset_option, "--dataset-option")
        if self.dataset is not None and self.all_examples:
            from fairweight.data import load

            return load(self.dataset, self.data, **options), None
        prepared = prepared_data(models, self.dataset, options, self.data)
        return prepared.part(self.part), prepared


def prepared_data(
    models: Sequence[str | ModelFile],
    dataset: str | None,
    options: dict[str, Any],
    data: str | None,
) -> Prepared:
    """Parts of the data set that is named, or else of the one that the models' cards name."""
    from fairweight.lab.partition import prepare
    from fairweight.lab.prediction import data_of, model_files

    if dataset is None:
        return prepare(data_of(model_files(models)), data)
    return prepare(read_spec(Data, {"name": dataset, "options": options}, "The data"), data)


@o.takes
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
    *,
    examples: ExampleOptions,
    scores: Annotated[
        bool, o.OUTPUT("Also the probabilities of all classes.", flag="--scores")
    ] = False,
    ranks: Annotated[bool, o.OUTPUT("Also the rank of the true label.", flag="--ranks")] = False,
    variants: Annotated[
        str | None,
        o.OUTPUT(
            "Also write what each model costs and what it comes from (for audit --variants).",
            "FILE",
        ),
    ] = None,
    remeasure: Annotated[
        bool,
        o.OUTPUT(
            "Time all models now, side by side; by default as their cards say.", flag="--remeasure"
        ),
    ] = False,
    train_table: Annotated[
        str | None,
        o.OUTPUT(
            "Also write labels and groups of the training examples (for audit --train).", "FILE"
        ),
    ] = None,
    batch_size: Annotated[int, o.OUTPUT("Examples at a time.")] = 256,
    threads: o.Threads = None,
    trust_module: o.TrustModule = None,
    trust_file: o.TrustFile = None,
    anew: Annotated[
        bool, o.OUTPUT("Start again instead of continuing an interrupted run.", flag="--anew")
    ] = False,
    overwrite: o.Overwrite = False,
    out: Annotated[str, o.OUTPUT("The prediction table.", "FILE")] = "predictions.parquet",
) -> None:
    """Run models on held-out examples, and write a prediction table for `audit`.

    Models that `train` and `compress` wrote know their names, seeds and data:

        fairweight predict models/* --variants variants.parquet

        fairweight audit predictions.parquet --variants variants.parquet

    Your own ONNX files, on a folder of images with one folder per class:

        fairweight predict dense=model.onnx int8=model-int8.onnx
        --dataset folders --data DIR --dataset-option size=224 --all-examples
        --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225

    Written while it is made: an interrupted run goes on where it stopped.
    """
    o.require_lab(threads)
    from fairweight.lab.prediction import (
        model_files,
        training_table,
        variants_table,
        write_table,
    )

    if batch_size < 1:
        raise InputError(f"--batch-size {batch_size} cannot be used; give at least 1.")
    scaling = examples.scaling()
    members = model_files(models)
    examples.check()
    if examples.all_examples and (variants is not None or train_table is not None):
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
        chosen, prepared = examples.read(members)
        path = lab.predict(
            members,
            chosen,
            out=out,
            scores=scores,
            ranks=ranks,
            scaling=scaling,
            resume=not anew,
            batch_size=batch_size,
            progress=lambda done: progress(f"running {len(members)} models", done, len(chosen)),
        )
        written = [str(path)]
        if variants is not None and prepared is not None:
            progress("measuring", 0, 1)
            table = variants_table(members, prepared, again=remeasure)
            written.append(write_table(table, variants))
        if train_table is not None and prepared is not None:
            written.append(write_table(training_table(prepared.train), train_table))
    typer.echo(
        f"{len(members)} models on {len(chosen):,} examples, written to {', '.join(written)}"
    )
    if prepared is not None and examples.dataset is not None:
        typer.echo(f"These are the {examples.part} part; --all-examples takes every example.")


MEASURE = o.panel("Measure")
COLUMNS = (
    "block", "distance", "samples", "directions_a", "directions_b", "dropped", "locations", "status"
)  # fmt: skip


def similarity(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A", help="A folder that `train` or `compress` wrote.", show_default=False
        ),
    ],
    b: Annotated[
        str, typer.Argument(metavar="B", help="Another one, in any order.", show_default=False)
    ],
    dataset: o.DatasetName = None,
    data: o.DataFolder = None,
    dataset_option: o.DatasetOptions = None,
    part: AskedPart = "test",
    examples: Annotated[int, o.DATA("At most so many, drawn by a fixed seed; 0: all.")] = 6400,
    measure: Annotated[
        str,
        MEASURE(
            "Canonical correlations of the main directions, or linear CKA.",
            "svcca|cka",
        ),
    ] = "svcca",
    variant: Annotated[
        str,
        MEASURE(
            "Of SVCCA: as in Simon Says, or as in Google's code (centred, by variance).",
            "simon-says|raghu",
        ),
    ] = "simon-says",
    maps: Annotated[
        str,
        MEASURE(
            "Convolutional maps: one comparison per location, their mean over space, more "
            "samples, or more features.",
            "per-location|pooled|folded|flattened",
        ),
    ] = "per-location",
    size: Annotated[int, MEASURE("Side to which maps are brought for per-location.")] = 16,
    features: Annotated[
        str | None,
        MEASURE(
            "Names of features (`block2`, `pooled`) or paths of modules; by default the "
            "blocks and the logits.",
            "a,b",
        ),
    ] = None,
    threshold: Annotated[
        float, MEASURE("Of SVCCA: the share of singular values (or of variance) that is kept.")
    ] = 0.99,
    directions: Annotated[
        int | None, MEASURE("Of SVCCA: a fixed number of directions instead.")
    ] = None,
    ridge: Annotated[
        float,
        MEASURE(
            "Of SVCCA: what is added to variances, as a share of their mean, so that more "
            "features than samples can be compared."
        ),
    ] = 0.0,
    minibatch: Annotated[
        bool,
        MEASURE(
            "Of CKA: the mean over batches of HSIC₁, which does not grow with the number of "
            "features.",
            flag="--minibatch",
        ),
    ] = False,
    batch_size: Annotated[int, o.OUTPUT("Examples at a time.")] = 256,
    threads: o.Threads = None,
    trust_module: o.TrustModule = None,
    overwrite: o.Overwrite = False,
    out: Annotated[str | None, o.OUTPUT("Also write the table.", "FILE.json|FILE.csv")] = None,
) -> None:
    """How far apart are the representations of two models, block by block?

    A pruned model beside the one it was made of, on the examples that neither saw:

        fairweight similarity models/dense-0 models/global-magnitude-90-0

    Two trainings of the dense model, which is what the first number should be read beside:

        fairweight similarity models/dense-0 models/dense-1 --out floor.json

    0 means alike up to a linear map (CKA: up to a rotation), 1 means unrelated.
    """
    o.require_lab(threads)
    if batch_size < 1:
        raise InputError(f"--batch-size {batch_size} cannot be used; give at least 1.")
    if out is not None and not out.endswith((".json", ".csv")):
        raise InputError(f"--out {out} must end in .json or .csv.")
    if out is not None:
        check_file(out, inputs=[a, b], overwrite=overwrite)
    fields = {
        "measure": measure,
        "variant": variant,
        "maps": maps,
        "size": size,
        "features": None if features is None else read_names(features, "--features"),
        "threshold": threshold,
        "directions": directions,
        "ridge": ridge,
        "minibatch": minibatch,
        "examples": examples or None,
    }
    spec = read_spec(Similarity, fields, "The comparison")
    options = o.assignments(dataset_option, "--dataset-option")
    if dataset is None and options:
        raise InputError("--dataset-option needs --dataset NAME.")
    with bar() as progress:
        progress("reading data", 0, 1)
        found = lab.similarity(
            a,
            b,
            None if dataset is None else {"name": dataset, "options": options},
            spec=spec,
            part=part,
            root=data,
            batch_size=batch_size,
            progress=lambda done, total: progress("comparing", done, total),
        )
    if out is not None:
        rows = []  # what is undefined is None
        for name, one in found.items():
            numbers = [one.distance, one.samples, *one.directions, one.dropped, one.locations]
            plain = [None if isnan(value) else value for value in numbers]
            rows.append(dict(zip(COLUMNS, [name, *plain, one.status], strict=True)))
        with atomic_file(out) as file:
            if out.endswith(".json"):
                held = {"a": a, "b": b, "comparison": asdict(spec), "blocks": rows}
                file.write(json.dumps(held, indent=2, allow_nan=False) + "\n")
            else:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
    _show(a, b, found, spec, out)


def _show(
    a: str, b: str, found: Mapping[str, BlockDistance], spec: Similarity, out: str | None
) -> None:
    """Print the distance of every block, and what to know about it."""
    from fairweight.lab.representations.moments import DEFINED

    console = plain_console()
    svcca = spec.measure == "svcca"
    what = f"SVCCA ({spec.variant})" if svcca else "CKA"
    console.print(f"{what} distance, {a} and {b}")
    numbers = ("distance", "samples", *(("directions",) if svcca else ()))
    table = listing("block", *numbers, numbers=numbers)
    for name, one in found.items():
        cells = [name, "" if isnan(one.distance) else f"{one.distance:.4f}", f"{one.samples:,}"]
        if svcca and isnan(one.directions[0]):
            cells.append("")
        elif svcca:  # of both sides; means over locations have a decimal
            how = ".0f" if one.locations == 1 else ".1f"
            cells.append(" | ".join(format(number, how) for number in one.directions))
        table.add_row(*cells)
    console.print(table)
    for name, one in found.items():
        if one.status != DEFINED:
            console.print(f"{name}: {one.status}.")
        if one.dropped:
            console.print(
                f"{name}: {one.dropped:,} directions were dropped, because they do not vary or "
                "cannot be distinguished from rounding."
            )
    if out is not None:
        console.print(f"Written to {out}")
