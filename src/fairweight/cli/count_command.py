"""`fairweight count`: predictions to a count cube, so that others can audit without row data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import options as o

if TYPE_CHECKING:
    from fairweight.auditing.counts.cube import Cube

SUPPRESS = 10
PARTS = "Parts"


def count(
    files: o.Files,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="The cube, a Parquet file.", show_default=False)
    ],
    baseline: o.Baseline = None,
    examples: o.Examples = None,
    train: o.Train = None,
    missing: o.Missing = "error",
    id_: o.Id = "example_id",
    label: o.Label = "label",
    prediction: o.Predictions = None,
    score: o.Scores = None,
    groups: o.Groups = None,
    task: o.Task = None,
    cluster: o.Cluster = None,
    weight: o.Weight = None,
    count: o.Count = None,
    variant_column: o.VariantColumn = "variant",
    seed_column: o.SeedColumn = "seed",
    prediction_column: o.PredictionColumn = "prediction",
    score_column: o.ScoreColumn = "score",
    force: o.Force = False,
    suppress_small: Annotated[
        bool,
        typer.Option(
            "--suppress-small",
            help="Leave out cells with fewer than 10 examples (a changed data set: rates then "
            "speak of the examples that remain).",
            rich_help_panel=o.OUTPUT,
        ),
    ] = False,
    unit_key: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Secret that keeps cluster names from being guessed; the same for all parts.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = "",
    parts: Annotated[
        int,
        typer.Option(
            help="Count a large Parquet data set in so many parts, by id; needs --groups.",
            rich_help_panel=PARTS,
        ),
    ] = 1,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Processes that count parts; by default one per core.", rich_help_panel=PARTS
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="local|ADDRESS",
            help="Count parts on a Ray cluster that shares the folder of --out.",
            rich_help_panel=PARTS,
        ),
    ] = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Count predictions into a cube: how many examples share groups, label and predictions.

    Cubes add up, hold counts instead of rows, and are audited like tables:

        fairweight count part-1.parquet --groups sex,age --out cube-1.parquet

        fairweight audit cube-1.parquet cube-2.parquet

    A data set that is too large for one process, in parts, here or on a cluster:

        fairweight count 'predictions/*/*.parquet' --groups sex --parts 64 --out cube.parquet

    A table that is counted already (`GROUP BY ..., count(*) AS n`) becomes a cube too:

        fairweight count pairs.csv --count n --groups sex --out cube.parquet

    Scores are not in a cube, so AUC and calibration need the tables themselves. With `--cluster`,
    or with several tasks, a column `unit` tells clusters or examples apart by digests.
    """
    values = dict(locals())

    from fairweight.auditing.counts.count import count as count_view
    from fairweight.auditing.counts.store import write_cube
    from fairweight.auditing.vocabulary import of_cube
    from fairweight.cli.progress import bar
    from fairweight.tables.align import align
    from fairweight.tables.write import check_file

    check_file(out, inputs=o.inputs(values), overwrite=overwrite)
    options = o.table_options(values)
    if parts != 1 or ray is not None:
        _count_in_parts(
            files, options, out, parts, workers, ray, suppress_small, unit_key, force, quiet
        )
        return
    with (
        bar() as progress,
        align(files if len(files) > 1 else files[0], **options) as aligned,
    ):
        progress("counting", 0, 1)
        cube = count_view(aligned)
        of_cube(cube).check(aligned.baseline, force=force)
        left_out = write_cube(
            cube,
            out,
            groupings=aligned.groupings,
            baseline=aligned.baseline,
            suppress=SUPPRESS if suppress_small else 0,
            key=unit_key,
        )
    if not quiet:
        _tell(cube, left_out, out)


def _count_in_parts(
    files: list[str],
    options: dict[str, Any],
    out: str,
    parts: int,
    workers: int | None,
    ray: str | None,
    suppress_small: bool,
    unit_key: str,
    force: bool,
    quiet: bool,
) -> None:
    import shutil

    from fairweight.auditing.counts.store import read_cubes, write_cube
    from fairweight.auditing.vocabulary import of_cube
    from fairweight.cli.progress import bar
    from fairweight.errors import InputError
    from fairweight.runs.counting import count_in_parts

    if parts < 1:
        raise InputError(f"--parts {parts} cannot be used; give at least 1.")
    place = Path(out).parent / f".{Path(out).name}.parts"
    with bar() as progress:
        cubes = count_in_parts(
            files,
            options,
            parts=parts,
            store=place,
            unit_key=unit_key,
            workers=workers,
            ray=ray,
            progress=progress,
        )
        cube, baseline, groupings = read_cubes([str(path) for path in cubes])
        of_cube(cube).check(baseline, force=force)
        left_out = write_cube(
            cube,
            out,
            groupings=groupings,
            baseline=baseline,
            suppress=SUPPRESS if suppress_small else 0,
            digested=True,
        )
    shutil.rmtree(place, ignore_errors=True)
    if not quiet:
        _tell(cube, left_out, out)


def _tell(cube: Cube, left_out: int, out: str) -> None:
    note = f", {left_out:,} small cells left out" if left_out else ""
    typer.echo(f"{cube.n_examples:,} examples in {cube.n_cells - left_out:,} cells{note}: {out}")
