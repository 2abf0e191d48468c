"""`fairweight mitigate thresholds`: predict each attribute as often as it is true."""

from __future__ import annotations

from typing import Annotated

import typer

from fairweight.cli import mitigate_options as m
from fairweight.cli import options as o


def thresholds(
    context: typer.Context,
    files: o.Files,
    validation: m.Validation = None,
    variant: m.Variant = None,
    rule: m.Rule = None,
    smooth: Annotated[
        bool,
        typer.Option(
            "--smooth",
            help="A smoothed quantile instead of the k-th largest score: steadier on few rows.",
            rich_help_panel=m.MITIGATION,
        ),
    ] = False,
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
    variant_column: o.VariantColumn = "variant",
    seed_column: o.SeedColumn = "seed",
    prediction_column: o.PredictionColumn = "prediction",
    score_column: o.ScoreColumn = "score",
    positive: o.Positive = None,
    score_classes: o.ScoreClasses = None,
    force: o.Force = False,
    alpha: m.Alpha = 0.05,
    members: o.Members = "retrained",
    n_boot: o.NBoot = 2000,
    min_group: o.MinGroup = 10,
    random_state: o.RandomState = 0,
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
    values = dict(locals())
    from fairweight.auditing.mitigate.new_variant import chosen_variants
    from fairweight.auditing.mitigate.rows_seen import refuse_overlap, rows_seen
    from fairweight.auditing.mitigate.thresholds import (
        KIND,
        Thresholds,
        apply_thresholds,
        fit_thresholds,
        left_alone,
    )
    from fairweight.cli.mitigate_output import Made, judge_and_write, tell
    from fairweight.cli.progress import bar
    from fairweight.errors import InputError

    m.check_out(values)
    m.check_statistics(values)
    if (validation is None) == (rule is None):
        raise InputError(
            "Thresholds are fitted on validation rows; give either --validation FILE, or --rule "
            "FILE.json with thresholds of an earlier run."
        )
    held = None if rule is None else m.read_rule(rule, KIND, Thresholds.from_json)
    with bar() as progress:
        progress("reading", 0, 1)
        tasks = m.read_tasks(files, values)
        names = chosen_variants(tasks[0], o.split_names(variant, "--variant"))
        if held is None:
            fitted = m.read_tasks(validation or [], values)
            chosen_variants(fitted[0], names, "In the validation rows, the variant")
            held = fit_thresholds(fitted, names, smooth=smooth)
        seen = held.fitted_on
        note = refuse_overlap(seen, rows_seen(tasks, seen), m.FITTED)
        made = Made(
            KIND,
            held.as_json(),
            tasks,
            [[apply_thresholds(held, answers, name) for name in names] for answers in tasks],
            notes=[*left_alone(held, tasks), *note],
        )
        result, changes = judge_and_write(made, context, values, progress)
    if not quiet:
        tell(made, result, changes, values)
