"""`fairweight audit`: predictions in, report out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairweight.cli import options as o


def audit(
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
    alpha: Annotated[
        float, typer.Option(help="Level of intervals and tests.", rich_help_panel=o.STATISTICS)
    ] = 0.05,
    members: o.Members = "retrained",
    n_boot: o.NBoot = 2000,
    correction: Annotated[
        str,
        typer.Option(
            metavar="holm|bh|none",
            help="Correction of the confirmatory families.",
            rich_help_panel=o.STATISTICS,
        ),
    ] = "holm",
    min_group: o.MinGroup = 10,
    random_state: o.RandomState = 0,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Exact McNemar tests instead of mid-p.", rich_help_panel=o.STATISTICS
        ),
    ] = False,
    margin: Annotated[
        float,
        typer.Option(
            help="The loss that matters, as a fraction (0.02 is 2 points). The report says for "
            "whom it is ruled out, and how many examples that takes.",
            rich_help_panel=o.STATISTICS,
        ),
    ] = 0.02,
    reference_shift: Annotated[
        float | None, typer.Option(hidden=True, help="The older name of --margin.")
    ] = None,
    group_error: Annotated[
        float,
        typer.Option(
            help="Share of group labels that may be wrong; prints the corrected excess.",
            rich_help_panel=o.STATISTICS,
        ),
    ] = 0.0,
    zero_baseline: Annotated[
        str,
        typer.Option(
            metavar="drop|raise|epsilon|absolute",
            help="CEV and SDE: classes in which the baseline makes no errors.",
            rich_help_panel=o.STATISTICS,
        ),
    ] = "drop",
    fixed_side: Annotated[
        str | None,
        typer.Option(
            metavar="COL=LEVEL",
            help="Bias amplification: the side that is always watched (backdoors).",
            rich_help_panel=o.STATISTICS,
        ),
    ] = None,
    no_filters: Annotated[
        bool,
        typer.Option(
            "--no-filters",
            help="Bias amplification without its skip rules.",
            rich_help_panel=o.STATISTICS,
        ),
    ] = False,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A policy (TOML): its verdict follows the summary and is the exit code.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="Where the report goes.", rich_help_panel=o.OUTPUT),
    ] = "fairweight-audit",
    suppress_small: Annotated[
        bool,
        typer.Option(
            "--suppress-small",
            help="Leave numbers of fewer than 10 examples out of everything that is written.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = False,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Compare compressed models with the dense one: who pays, and is it more than noise?

    Two files, one per model, joined on `example_id`:

        fairweight audit dense.csv int8.csv --groups sex,age,sex*age

    One wide table with a column per model:

        fairweight audit preds.csv --prediction dense=p0 --prediction int8=p1

    One long table (`example_id, variant, label, prediction`) with groups beside it:

        fairweight audit preds.parquet --examples people.csv --cluster person

    A counted table, one row per combination and the number of its examples:

        fairweight audit pairs.csv --count n --groups sex

    A population: several seeds of each variant (a column `seed`, or a NAME that
    is given again), and a table of which model each was made from:

        fairweight audit preds.parquet --variants variants.csv

    Writes `DIR/report.html`, `DIR/audit.json` and `DIR/tables/`. Exit code 0
    when the audit was made, 2 on bad input; with `--policy` that of the gate.
    """
    values = dict(locals())
    from rich.console import Console

    from fairweight.api import audit_table
    from fairweight.cli.progress import bar
    from fairweight.cli.verdict import checked_policy, leave, reader_may_leave
    from fairweight.report.save import names
    from fairweight.report.terminal import show
    from fairweight.tables.write import check_folder

    check_folder(out, inputs=o.inputs(values), overwrite=overwrite, names=names())
    asked = checked_policy(policy) if policy is not None else None
    with bar() as progress:
        made = audit_table(
            files if len(files) > 1 else files[0],
            **o.table_options(values),
            positive=positive,
            score_classes=o.split_names(score_classes, "--score-classes"),
            alpha=alpha,
            members=members,
            n_boot=n_boot,
            correction=correction,
            min_group=min_group,
            random_state=random_state,
            exact=exact,
            margin=margin,
            reference_shift=reference_shift,
            group_error=group_error,
            zero_baseline=zero_baseline,
            fixed_side=fixed_side,
            filters=not no_filters,
            force=force,
            confirmatory=asked.confirmatory() if asked else (),
            command=o.shell_command(context),
            progress=progress,
        )
        if suppress_small:
            made = made.suppressed()
        # Before anything is written: a policy that does not fit these data is bad input.
        verdict = made.gate(asked) if asked else None
        progress("writing the report", 1, 1)
        made.save(out, verdict=verdict, overwrite=overwrite)
    if not quiet:
        with reader_may_leave():
            show(made.result, Console(), report=str(Path(out, "report.html")))
    if verdict:
        leave(verdict, quiet=quiet)
