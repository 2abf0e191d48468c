"""`fairweight explain`: which examples pay, and what goes along with it?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import lab_options
from fairweight.cli import options as o

if TYPE_CHECKING:
    from fairweight.auditing.explain.explained import Asked

EXPLAIN, IMAGES = "Explanations", "Images"


def explain(
    context: typer.Context,
    files: o.Files,
    baseline: o.Baseline = None,
    examples: o.Examples = None,
    train: o.Train = None,
    variants: o.Variants = None,
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
    positive: o.Positive = None,
    score_classes: o.ScoreClasses = None,
    force: o.Force = False,
    part: Annotated[
        str,
        typer.Option(
            metavar="a,b",
            help=(
                "What to look for: exemplars, slices, properties, individuals, classes, similarity."
            ),
            rich_help_panel=EXPLAIN,
        ),
    ] = "exemplars,slices,properties,individuals,classes,similarity",
    individual: Annotated[
        str,
        typer.Option(
            metavar="COL",
            help="Whose an example is (a writer, a person); by default what --cluster says.",
            rich_help_panel=EXPLAIN,
        ),
    ] = "cluster",
    individual_group: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Compare individuals by this column.", rich_help_panel=EXPLAIN
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The data set of the examples: its images are measured (tilt, ink, entropy …).",
            rich_help_panel=IMAGES,
        ),
    ] = None,
    data: lab_options.DataFolder = None,
    dataset_option: lab_options.DatasetOptions = None,
    members: o.Members = "retrained",
    n_boot: o.NBoot = 2000,
    min_group: o.MinGroup = 10,
    random_state: o.RandomState = 0,
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="Where the report goes.", rich_help_panel=o.OUTPUT),
    ] = "fairweight-explanation",
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Audit, and look for what goes along with the losses: exemplars, slices, properties.

    Which examples, groups and measurements; every column of the tables is tried:

        fairweight explain preds.parquet --examples people.csv --cluster person

    With the images of a data set, and individuals compared by a column:

        fairweight explain preds.parquet --dataset qmnist --data DIR --cluster writer --individual-group series

    Associations only: what is found may stand for something else. Writes the report
    and tables of `fairweight audit` with a section on which examples and why.
    """  # noqa: E501  an example is one line
    values = dict(locals())
    from rich.console import Console

    from fairweight.api import audit_table
    from fairweight.cli.progress import bar
    from fairweight.cli.verdict import reader_may_leave
    from fairweight.report.explain_sentences import explanation_sentences
    from fairweight.report.save import names
    from fairweight.tables.write import check_folder

    check_folder(out, inputs=o.inputs(values), overwrite=overwrite, names=names())
    asked = _asked(values)
    with bar() as progress:
        made = audit_table(
            files if len(files) > 1 else files[0],
            **o.table_options(values),
            positive=positive,
            score_classes=o.split_names(score_classes, "--score-classes"),
            members=members,
            n_boot=n_boot,
            min_group=min_group,
            random_state=random_state,
            force=force,
            explain=asked,
            command=o.shell_command(context),
            progress=progress,
        )
        progress("writing the report", 1, 1)
        made.save(out, overwrite=overwrite)
    if quiet:
        return
    console = Console()
    with reader_may_leave():
        for sentence in explanation_sentences(made.result):
            console.print(f"• {sentence}", markup=False, highlight=False)
        told = f"Report: {Path(out, 'report.html')}"
        console.print(told, markup=False, highlight=False, soft_wrap=True)


def _asked(values: dict[str, Any]) -> Asked:
    from fairweight.auditing.explain.explained import Asked

    measure = covariates = images = None
    if values["dataset"] is not None:
        from fairweight.auditing.explain.image_columns import measure_dataset, training_covariates
        from fairweight.cli.assignments import assignments
        from fairweight.data import load

        options = assignments(values["dataset_option"], "--dataset-option")
        images = load(values["dataset"], values["data"], **options)
        measure = measure_dataset(images)
        covariates = training_covariates(images)
    return Asked(
        parts=tuple(o.split_names(values["part"], "--part") or ()),
        by=values["individual"],
        group=values["individual_group"],
        measure=measure,
        images=images,
        covariates=covariates,
        random_state=values["random_state"],
    )
