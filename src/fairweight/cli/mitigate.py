"""`fairweight mitigate`: new answers from old ones, audited again on rows apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

import fairweight as fw
from fairweight.audits import check_report
from fairweight.cli import options as o
from fairweight.cli.screen import bar, plain_console, reader_may_leave, show_audit
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec

MITIGATION = o.panel("Mitigation")

Validation: TypeAlias = Annotated[
    list[str] | None,
    MITIGATION(
        "Predictions on validation rows, in the layout of FILE; repeat it for one file per "
        "model (`NAME=FILE`). No example or cluster may be in both, under whatever identity.",
        "FILE",
    ),
]
VariantNames: TypeAlias = Annotated[
    str | None, MITIGATION("Only these variants; by default all but the baseline.", "NAME,NAME")
]
Rule: TypeAlias = Annotated[
    str | None,
    MITIGATION("Apply and judge this rule of an earlier run instead of making one.", "FILE.json"),
]
OfMitigation: TypeAlias = Annotated[
    AuditOptions, o.only("alpha", "members", "n_boot", "min_group", "random_state")
]


Out: TypeAlias = Annotated[str, o.OUTPUT("Where everything goes.", "DIR")]
mitigate = typer.Typer(
    name="mitigate",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="What helps: thresholds, overrides or a cascade, each audited again on rows that it was "
    "not fitted on, with who got worse.\n\nStart with "
    "`fairweight mitigate thresholds test.parquet --validation val.parquet`.",
)


@mitigate.command()
@o.takes
def thresholds(
    context: typer.Context,
    files: o.Files,
    validation: Validation = None,
    variant: VariantNames = None,
    rule: Rule = None,
    smooth: Annotated[
        bool,
        MITIGATION(
            "A smoothed quantile instead of the k-th largest score: steadier on few rows.",
            flag="--smooth",
        ),
    ] = False,
    *,
    tables: o.SingleExamples,
    options: OfMitigation,
    out: Out = "fairweight-thresholds",
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
    _run(
        fw.mitigate.thresholds, context, tables, options, validation, variant, rule, out,
        overwrite=overwrite, quiet=quiet, smooth=smooth,
    )  # fmt: skip


@mitigate.command()
@o.takes
def overrides(
    context: typer.Context,
    files: o.Files,
    validation: Validation = None,
    variant: VariantNames = None,
    rule: Rule = None,
    budget: Annotated[
        float, MITIGATION("Share of the examples that the table overrides: 0.1 is 10 %.")
    ] = 0.1,
    labels: Annotated[
        str | None,
        MITIGATION(
            "Labels of people: annotations.csv of the report or the viewer, its .sqlite "
            "file, or a table (example_id, label, and task if there are any); by default the "
            "dense model's.",
            "FILE",
        ),
    ] = None,
    identity: Annotated[
        str | None,
        MITIGATION(
            "The column whose bias amplification chooses attributes; by default any.", "COL"
        ),
    ] = None,
    *,
    tables: o.SingleExamples,
    options: OfMitigation,
    out: Out = "fairweight-overrides",
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Override the predictions on which the dense model is least sure, and audit the result.

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
    _run(
        fw.mitigate.overrides, context, tables, options, validation, variant, rule, out,
        overwrite=overwrite, quiet=quiet, budget=budget, labels=labels, identity=identity,
    )  # fmt: skip


@mitigate.command()
@o.takes
def cascade(
    context: typer.Context,
    files: o.Files,
    validation: Validation = None,
    variant: VariantNames = None,
    rule: Rule = None,
    threshold: Annotated[
        float | None,
        MITIGATION(
            "Confidence below which an input goes to the dense model, 0 to 1; by default "
            "chosen with --margin."
        ),
    ] = None,
    margin: Annotated[
        float, MITIGATION("Choose the least threshold at which no group may lose more than this.")
    ] = 0.02,
    *,
    tables: o.SingleExamples,
    options: OfMitigation,
    out: Out = "fairweight-cascade",
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
    _run(
        fw.mitigate.cascade, context, tables, options, validation, variant, rule, out,
        overwrite=overwrite, quiet=quiet, threshold=threshold, margin=margin,
    )  # fmt: skip


def _run(
    make: Callable[..., fw.mitigate.Mitigation],
    context: typer.Context,
    tables: TableSpec,
    options: AuditOptions,
    validation: list[str] | None,
    variant: str | None,
    rule: str | None,
    out: str,
    *,
    overwrite: bool,
    quiet: bool,
    **own: Any,
) -> None:
    """Mitigate, write everything, and print whether it helped and who got worse."""
    from fairweight.report.explanation_sentences import mitigation_sentences

    read = [*tables.paths, *(validation or []), rule, own.get("labels")]
    check_report(out, "audit", inputs=read, overwrite=overwrite, known=["predictions.parquet"])
    with bar() as progress:
        made = make(
            tables,
            options,
            validation=validation,
            variants=o.split_names(variant, "--variant"),
            rule=rule,
            command=o.shell_command(context),
            progress=progress,
            **own,
        )
        progress("writing the report", 1, 1)
        made.save(out, overwrite=overwrite)
    if quiet:
        return
    console, folder = plain_console(), Path(out)
    with reader_may_leave():
        for sentence in (*mitigation_sentences(made.changes, made.kind), *made.notes):
            console.print(f"• {sentence}")
        show_audit(made.audit.result, str(folder / "audit" / "report.html"))
        console.print(
            f"Rule: {folder / made.kind}.json; predictions: {folder / 'predictions.parquet'}",
            soft_wrap=True,
        )
