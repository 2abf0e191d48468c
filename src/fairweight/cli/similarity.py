"""`fairweight similarity`: how alike two models represent the same images, block by block."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import options as o
from fairweight.cli.options import Overwrite
from fairweight.cli.progress import bar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairweight.lab.representations import BlockDistance
    from fairweight.specs.similarity import Similarity

MEASURE = "Measure"
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
    dataset: o.AskedDataset = None,
    data: o.DataFolder = None,
    dataset_option: o.DatasetOptions = None,
    part: o.AskedPart = "test",
    examples: Annotated[
        int,
        typer.Option(
            help="At most so many, drawn by a fixed seed; 0: all.", rich_help_panel=o.DATA
        ),
    ] = 6400,
    measure: Annotated[
        str,
        typer.Option(
            metavar="svcca|cka",
            autocompletion=o.choices("similarity:Similarity", "measure"),
            help="Canonical correlations of the main directions, or linear CKA.",
            rich_help_panel=MEASURE,
        ),
    ] = "svcca",
    variant: Annotated[
        str,
        typer.Option(
            metavar="simon-says|raghu",
            autocompletion=o.choices("similarity:Similarity", "variant"),
            help="Of SVCCA: as in Simon Says, or as in Google's code (centred, by variance).",
            rich_help_panel=MEASURE,
        ),
    ] = "simon-says",
    maps: Annotated[
        str,
        typer.Option(
            metavar="per-location|pooled|folded|flattened",
            autocompletion=o.choices("similarity:Similarity", "maps"),
            help="Convolutional maps: one comparison per location, their mean over space, more "
            "samples, or more features.",
            rich_help_panel=MEASURE,
        ),
    ] = "per-location",
    size: Annotated[
        int,
        typer.Option(
            help="Side to which maps are brought for per-location.", rich_help_panel=MEASURE
        ),
    ] = 16,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="a,b",
            help="Names of features (`block2`, `pooled`) or paths of modules; by default the "
            "blocks and the logits.",
            rich_help_panel=MEASURE,
        ),
    ] = None,
    threshold: Annotated[
        float,
        typer.Option(
            help="Of SVCCA: the share of singular values (or of variance) that is kept.",
            rich_help_panel=MEASURE,
        ),
    ] = 0.99,
    directions: Annotated[
        int | None,
        typer.Option(
            help="Of SVCCA: a fixed number of directions instead.", rich_help_panel=MEASURE
        ),
    ] = None,
    ridge: Annotated[
        float,
        typer.Option(
            help="Of SVCCA: what is added to variances, as a share of their mean, so that more "
            "features than samples can be compared.",
            rich_help_panel=MEASURE,
        ),
    ] = 0.0,
    minibatch: Annotated[
        bool,
        typer.Option(
            "--minibatch",
            help="Of CKA: the mean over batches of HSIC₁, which does not grow with the number of "
            "features.",
            rich_help_panel=MEASURE,
        ),
    ] = False,
    batch_size: Annotated[
        int, typer.Option(help="Examples at a time.", rich_help_panel=o.OUTPUT)
    ] = 256,
    threads: o.Threads = None,
    trust_module: o.TrustModule = None,
    overwrite: Overwrite = False,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.json|FILE.csv", help="Also write the table.", rich_help_panel=o.OUTPUT
        ),
    ] = None,
) -> None:
    """How far apart are the representations of two models, block by block?

    A pruned model beside the one it was made of, on the examples that neither saw:

        fairweight similarity models/dense-0 models/global-magnitude-90-0

    Two trainings of the dense model, which is what the first number should be read beside:

        fairweight similarity models/dense-0 models/dense-1 --out floor.json

    0 means alike up to a linear map (CKA: up to a rotation), 1 means unrelated.
    """
    o.require_lab()
    from fairweight import lab
    from fairweight.base.files import check_file
    from fairweight.cli.options import assignments, split_names
    from fairweight.errors import InputError
    from fairweight.specs.similarity import Similarity
    from fairweight.specs.toml import read_spec

    o.limit_threads(threads)
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
        "features": None if features is None else tuple(split_names(features, "--features") or ()),
        "threshold": threshold,
        "directions": directions,
        "ridge": ridge,
        "minibatch": minibatch,
        "examples": examples or None,
    }
    spec = read_spec(Similarity, fields, "The comparison")
    options = assignments(dataset_option, "--dataset-option")
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
        _write(out, a, b, found, spec)
    _tell(a, b, found, spec, out)


def _rows(found: Mapping[str, BlockDistance]) -> list[dict[str, Any]]:
    """The table as plain values: what is undefined is None."""
    rows = []
    for name, one in found.items():
        numbers = [one.distance, one.samples, *one.directions, one.dropped, one.locations]
        plain = [None if isnan(value) else value for value in numbers]
        rows.append(dict(zip(COLUMNS, [name, *plain, one.status], strict=True)))
    return rows


def _write(out: str, a: str, b: str, found: Mapping[str, BlockDistance], spec: Similarity) -> None:
    import csv
    import json
    from dataclasses import asdict

    from fairweight.base.files import atomic_file

    with atomic_file(out) as file:
        if out.endswith(".json"):
            held = {"a": a, "b": b, "comparison": asdict(spec), "blocks": _rows(found)}
            file.write(json.dumps(held, indent=2, allow_nan=False) + "\n")
        else:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(_rows(found))


def _tell(
    a: str, b: str, found: Mapping[str, BlockDistance], spec: Similarity, out: str | None
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fairweight.lab.representations.moments import DEFINED

    console = Console()
    what = f"SVCCA ({spec.variant})" if spec.measure == "svcca" else "CKA"
    console.print(f"{what} distance, {a} and {b}", highlight=False, markup=False)
    table = Table(box=None, padding=(0, 2, 0, 0))
    heads = ("block", "distance", "samples", "directions")
    for head in heads if spec.measure == "svcca" else heads[:-1]:
        table.add_column(head, justify="left" if head == "block" else "right", no_wrap=True)
    for name, one in found.items():
        cells = [name, "" if isnan(one.distance) else f"{one.distance:.4f}", f"{one.samples:,}"]
        if spec.measure == "svcca":
            cells.append(_directions(one))
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    for name, one in found.items():
        if one.status != DEFINED:
            console.print(f"{name}: {one.status}.", highlight=False, markup=False)
        if one.dropped:
            console.print(
                f"{name}: {one.dropped:,} directions were dropped, because they do not vary or "
                "cannot be told from rounding.",
                highlight=False,
                markup=False,
            )
    if out is not None:
        console.print(f"Written to {out}", highlight=False, markup=False)


def _directions(one: BlockDistance) -> str:
    """Of both sides; means over locations with one decimal."""
    if isnan(one.directions[0]):
        return ""
    how = ".0f" if one.locations == 1 else ".1f"
    first, second = (format(number, how) for number in one.directions)
    return f"{first} | {second}"
