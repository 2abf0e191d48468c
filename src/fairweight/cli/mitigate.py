"""`fairweight mitigate`: new answers from old ones, audited again on rows apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from fairweight.cli import options as o
from fairweight.specs.audit import AuditOptions

if TYPE_CHECKING:
    from fairweight.mitigate import Mitigation

MITIGATION = "Mitigation"

Validation: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Predictions on validation rows, in the layout of FILE; repeat it for one file per "
        "model (`NAME=FILE`). No example or cluster may be in both, under whatever identity.",
        rich_help_panel=MITIGATION,
    ),
]
VariantNames: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,NAME",
        help="Only these variants; by default all but the baseline.",
        rich_help_panel=MITIGATION,
    ),
]
Rule: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.json",
        help="Apply and judge this rule of an earlier run instead of making one.",
        rich_help_panel=MITIGATION,
    ),
]
OfMitigation: TypeAlias = Annotated[
    AuditOptions, o.only("alpha", "members", "n_boot", "min_group", "random_state")
]


def _check_out(out: str, read: list[str | None], overwrite: bool) -> None:
    """Before long work, whether the folder may be written."""
    from fairweight.base.files import check_folder
    from fairweight.report.html import names

    known = ("predictions.parquet", *(f"audit/{name}" for name in names()))
    check_folder(out, inputs=read, overwrite=overwrite, names=known)


def _tell(made: Mitigation, out: str) -> None:
    """Print whether it helped, who got worse, and the audit's own summary."""
    from rich.console import Console

    from fairweight.cli.audit import reader_may_leave
    from fairweight.report.explanation_sentences import mitigation_sentences
    from fairweight.report.terminal import show

    console = Console()
    folder = Path(out)
    with reader_may_leave():
        for sentence in (*mitigation_sentences(made.changes, made.kind), *made.notes):
            console.print(f"• {sentence}", markup=False, highlight=False)
        show(made.audit.result, console, report=str(folder / "audit" / "report.html"))
        told = f"Rule: {folder / made.kind}.json; predictions: {folder / 'predictions.parquet'}"
        console.print(told, markup=False, highlight=False, soft_wrap=True)


@o.takes
def thresholds(
    context: typer.Context,
    files: o.Files,
    validation: Validation = None,
    variant: VariantNames = None,
    rule: Rule = None,
    smooth: Annotated[
        bool,
        typer.Option(
            "--smooth",
            help="A smoothed quantile instead of the k-th largest score: steadier on few rows.",
            rich_help_panel=MITIGATION,
        ),
    ] = False,
    *,
    tables: o.SingleExamples,
    options: OfMitigation,
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="Where everything goes.", rich_help_panel=o.OUTPUT),
    ] = "fairweight-thresholds",
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Fit thresholds on validation rows, apply them, and audit the result.

    Per attribute, as Iofinova et al.: with k positive labels among the validation
    rows, the threshold is the k-th largest score. Groups are not used. With more
    than two classes, an offset per class:

        fairweight mitigate thresholds test.parquet --validation val.parquet

    What was fitted is a small JSON file; judge it on another table:

        fairweight mitigate thresholds new.parquet --rule fairweight-thresholds/thresholds.json

    Writes `thresholds.json`, `predictions.parquet` with the new variant
    (`int8+thresholds`), `mitigation.csv` and the audit into DIR.
    """
    from fairweight import mitigate
    from fairweight.cli.progress import bar

    _check_out(out, [*tables.paths, *(validation or []), rule], overwrite)
    with bar() as progress:
        made = mitigate.thresholds(
            tables,
            options,
            validation=validation,
            variants=o.split_names(variant, "--variant"),
            rule=rule,
            smooth=smooth,
            command=o.shell_command(context),
            progress=progress,
        )
        progress("writing the report", 1, 1)
        made.save(out, overwrite=overwrite)
    if not quiet:
        _tell(made, out)


@o.takes
def overrides(
    context: typer.Context,
    files: o.Files,
    validation: Validation = None,
    variant: VariantNames = None,
    rule: Rule = None,
    budget: Annotated[
        float,
        typer.Option(
            help="Share of the examples that the table overrides: 0.1 is 10 %.",
            rich_help_panel=MITIGATION,
        ),
    ] = 0.1,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Labels of people: annotations.csv of the report or the viewer, its .sqlite "
            "file, or a table (example_id, label, and task if there are any); by default the "
            "dense model's.",
            rich_help_panel=MITIGATION,
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The column whose bias amplification chooses attributes; by default any.",
            rich_help_panel=MITIGATION,
        ),
    ] = None,
    *,
    tables: o.SingleExamples,
    options: OfMitigation,
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="Where everything goes.", rich_help_panel=o.OUTPUT),
    ] = "fairweight-overrides",
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Override the answers on which the dense model is least sure, and audit the result.

    Dense labels, and the whole curve of budgets from 0 to 20 % beside a random
    choice of equal size. Validation rows choose the attributes: those in which the
    dense model amplifies bias; without them all are overridden:

        fairweight mitigate overrides test.parquet --validation val.parquet --budget 0.1

    With labels from annotators, for the examples that `to_annotate.csv` lists:

        fairweight mitigate overrides test.parquet --labels annotated.csv

    With the verdicts on exemplars that people gave in the report or in `view`, all
    of them (of several people, the label of most):

        fairweight mitigate overrides test.parquet --labels annotations.csv --budget 1

    Writes `overrides.json` to ship with the model, `apply_overrides.py` to apply
    it with no dependency, `override_curves.csv`, `to_annotate.csv`,
    `predictions.parquet` with the new variant (`int8+overrides-10`),
    `mitigation.csv` and the audit into DIR.
    """
    from fairweight import mitigate
    from fairweight.cli.progress import bar

    _check_out(out, [*tables.paths, *(validation or []), rule, labels], overwrite)
    with bar() as progress:
        made = mitigate.overrides(
            tables,
            options,
            validation=validation,
            variants=o.split_names(variant, "--variant"),
            rule=rule,
            budget=budget,
            labels=labels,
            identity=identity,
            command=o.shell_command(context),
            progress=progress,
        )
        progress("writing the report", 1, 1)
        made.save(out, overwrite=overwrite)
    if not quiet:
        _tell(made, out)


@o.takes
def cascade(
    context: typer.Context,
    files: o.Files,
    validation: Validation = None,
    variant: VariantNames = None,
    rule: Rule = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Confidence below which an input goes to the dense model, 0 to 1; by default "
            "chosen with --margin.",
            rich_help_panel=MITIGATION,
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            help="Choose the least threshold at which no group may lose more than this.",
            rich_help_panel=MITIGATION,
        ),
    ] = 0.02,
    *,
    tables: o.SingleExamples,
    options: OfMitigation,
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="Where everything goes.", rich_help_panel=o.OUTPUT),
    ] = "fairweight-cascade",
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Let the compressed model answer, and send what it is unsure of to the dense one.

    The threshold is chosen on validation rows, or on half of the examples (whole
    clusters), and judged on the others. Average cost comes from the latencies of
    the variants table:

        fairweight mitigate cascade preds.parquet --variants variants.parquet

    With a threshold of your own (0 is the compressed model, 1 the dense one):

        fairweight mitigate cascade preds.parquet --threshold 0.35

    Writes `cascade.json`, `cascade_curve.csv`, `predictions.parquet` with the new
    variant (`int8+cascade-0.35`), `mitigation.csv` and the audit into DIR.
    """
    from fairweight import mitigate
    from fairweight.cli.progress import bar

    _check_out(out, [*tables.paths, *(validation or []), rule], overwrite)
    with bar() as progress:
        made = mitigate.cascade(
            tables,
            options,
            validation=validation,
            variants=o.split_names(variant, "--variant"),
            rule=rule,
            threshold=threshold,
            margin=margin,
            command=o.shell_command(context),
            progress=progress,
        )
        progress("writing the report", 1, 1)
        made.save(out, overwrite=overwrite)
    if not quiet:
        _tell(made, out)


mitigate = typer.Typer(
    name="mitigate",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="What helps: thresholds, overrides or a cascade, each audited again on rows that it was "
    "not fitted on, with who got worse.\n\nStart with "
    "`fairweight mitigate thresholds test.parquet --validation val.parquet`.",
)
mitigate.command()(thresholds)
mitigate.command()(overrides)
mitigate.command()(cascade)
