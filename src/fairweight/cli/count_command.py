"""`fairweight count`: predictions to a count cube, so that others can audit without row data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairweight.cli import options as o

SUPPRESS = 10


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
    variant_column: o.VariantColumn = "variant",
    seed_column: o.SeedColumn = "seed",
    prediction_column: o.PredictionColumn = "prediction",
    score_column: o.ScoreColumn = "score",
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
    quiet: o.Quiet = False,
) -> None:
    """Count predictions into a cube: how many examples share groups, label and predictions.

    Cubes add up, hold counts instead of rows, and are audited like tables:

        fairweight count part-1.parquet --groups sex,age --out cube-1.parquet

        fairweight audit cube-1.parquet cube-2.parquet

    Scores are not in a cube, so AUC and calibration need the tables themselves. With `--cluster`,
    or with several tasks, a column `unit` tells clusters or examples apart by digests.
    """
    values = dict(locals())
    from contextlib import closing

    from fairweight.auditing.counts.count import count as count_view
    from fairweight.auditing.counts.store import write_cube
    from fairweight.cli.progress import bar
    from fairweight.tables.align import align
    from fairweight.tables.write import check_writable

    check_writable(Path(out).parent if out.strip() else out)
    options = o.table_options(values)
    with (
        bar() as progress,
        closing(align(files if len(files) > 1 else files[0], **options)) as aligned,
    ):
        progress("counting", 0, 1)
        cube = count_view(aligned)
        left_out = write_cube(
            cube,
            out,
            groupings=aligned.groupings,
            baseline=aligned.baseline,
            suppress=SUPPRESS if suppress_small else 0,
            key=unit_key,
        )
    if not quiet:
        note = f", {left_out:,} small cells left out" if left_out else ""
        typer.echo(
            f"{cube.n_examples:,} examples in {cube.n_cells - left_out:,} cells{note}: {out}"
        )
