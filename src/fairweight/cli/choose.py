"""`fairweight choose`: which variant to ship, by what is wanted of it, and how surely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import options as o
from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.auditing.compare.comparison import Options

CHOICE = "Choice"
NONE_QUALIFIES = 3


def choose(
    context: typer.Context,
    files: o.Files,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[@PLACE][:min|max]",
            help="What should be best: a metric (`accuracy`, `worst_group@sex`, `recall@class=3`) "
            "or a column of the variants table (`size_bytes`); repeat it for several.",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            metavar="'NAME>=X'",
            help="What a variant must keep to be chosen (`>=`, `<=`, `>`, `<`); repeat it for "
            "several.",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    weight: Annotated[
        list[str] | None,
        typer.Option(
            "--weight",
            metavar="NAME=W",
            help="What one unit of an objective is worth; unnamed ones are worth 1. Without any "
            "weight several objectives give a frontier.",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A variant that cannot be chosen (the baseline can, unless it is named here).",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            help="How far below the best still counts as near it, in the unit of the objective or "
            "of the value; 0.02 (2 points) where that is a share.",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    confirm: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Predictions of the same variants on other examples, to look at the choice again.",
            rich_help_panel=CHOICE,
        ),
    ] = None,
    confirm_share: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Hold out this share of the examples (clusters) to look at the choice again.",
            rich_help_panel=CHOICE,
        ),
    ] = None,
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
    weight_column: Annotated[
        str | None,
        typer.Option(
            "--weight-column", metavar="COL", help="Sampling weight.", rich_help_panel=o.COLUMNS
        ),
    ] = None,
    count: o.Count = None,
    variant_column: o.VariantColumn = "variant",
    seed_column: o.SeedColumn = "seed",
    prediction_column: o.PredictionColumn = "prediction",
    score_column: o.ScoreColumn = "score",
    positive: o.Positive = None,
    score_classes: o.ScoreClasses = None,
    force: o.Force = False,
    n_boot: o.NBoot = 2000,
    min_group: o.MinGroup = 10,
    random_state: o.RandomState = 0,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Write `choice.json`, tables and figures here.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Choose among variants: by one number, a frontier, or weights, with requirements.

    The smallest model that keeps what it must:

        fairweight choose preds.parquet --variants variants.parquet --objective size_bytes --require 'accuracy>=0.9' --require 'worst_group_shift>=-0.02'

    The frontier of several objectives, or the best by what each is worth:

        fairweight choose preds.parquet --variants variants.parquet --objective sparsity --objective unfairness

        fairweight choose preds.parquet --variants variants.parquet --weight sparsity=1 --weight unfairness=100

    Variants are compared on the same draws of examples. What comes first is the set
    that contains the best (95 %), and how probably each is within --margin of it. All
    probabilities allow for the best of many looking better than it is.

    Exit code 0 chosen, 2 bad input, 3 no variant qualifies.
    """  # noqa: E501  an example is one line
    values = dict(locals()) | {"weight": weight_column}
    from rich.console import Console

    from fairweight.auditing.choose.choice import Wishes, choice_from
    from fairweight.base.files import check_folder
    from fairweight.cli.audit import reader_may_leave
    from fairweight.cli.progress import bar

    if out is not None:
        known = ("choice.json",)
        check_folder(out, inputs=o.inputs(values), overwrite=overwrite, names=known)
    wishes = Wishes(objective or (), require or (), weight or (), exclude or (), margin)
    given = o.table_options(values) | {
        "score_classes": o.split_names(score_classes, "--score-classes")
    }
    with bar() as progress:
        found = choice_from(
            files if len(files) > 1 else files[0],
            given,
            wishes,
            _options(values),
            positive=positive,
            confirm=confirm,
            confirm_share=confirm_share,
            force=force,
            progress=progress,
        )
        if out is not None:
            from fairweight.report.choice import save

            progress("writing", 1, 1)
            save(found, out, o.shell_command(context), overwrite=overwrite)
    if not quiet:
        from fairweight.report.terminal import show_choice

        console = Console(highlight=False)
        with reader_may_leave():
            show_choice(found, console)
            if out is not None:
                console.print(f"Written to {out}", markup=False, soft_wrap=True)
    if found.none_qualifies:
        raise typer.Exit(NONE_QUALIFIES)


def _options(values: dict[str, Any]) -> Options:
    from fairweight.auditing.compare.comparison import Options

    least = {"n_boot": 20, "min_group": 1, "random_state": 0}
    for name, limit in least.items():
        if values[name] < limit:
            flag = "--" + name.replace("_", "-")
            raise InputError(f"{flag} {values[name]} cannot be used; give at least {limit}.")
    return Options(**{name: values[name] for name in least})
