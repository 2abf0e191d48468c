"""`fairweight mitigate overrides`: fixed labels for the examples that are most in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from fairweight.cli import mitigate_options as m
from fairweight.cli import options as o

if TYPE_CHECKING:
    from fairweight.auditing.answers import Answers


def overrides(
    context: typer.Context,
    files: o.Files,
    validation: m.Validation = None,
    variant: m.Variant = None,
    rule: m.Rule = None,
    budget: Annotated[
        float,
        typer.Option(
            help="Share of the examples that the table overrides: 0.1 is 10 %.",
            rich_help_panel=m.MITIGATION,
        ),
    ] = 0.1,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Labels of people: annotations.csv of the report or the viewer, its .sqlite "
            "file, or a table (example_id, label, and task if there are any); by default the "
            "dense model's.",
            rich_help_panel=m.MITIGATION,
        ),
    ] = None,
    identity: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="The column whose bias amplification chooses attributes; by default any.",
            rich_help_panel=m.MITIGATION,
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
    values = dict(locals())
    from fairweight.auditing.mitigate import apply_overrides
    from fairweight.auditing.mitigate.annotation import read_labels, to_annotate
    from fairweight.auditing.mitigate.new_variant import chosen_variants
    from fairweight.auditing.mitigate.override_curves import BUDGETS, override_curves
    from fairweight.auditing.mitigate.overrides import (
        KIND,
        OverrideTable,
        apply_override_table,
        check_overrides,
        override_table,
    )
    from fairweight.auditing.mitigate.people import people_notes
    from fairweight.cli.mitigate_output import Made, judge_and_write, tell
    from fairweight.cli.progress import bar
    from fairweight.errors import InputError

    m.check_out(values)
    m.check_statistics(values)
    if not 0 <= budget <= 1:
        raise InputError(f"--budget {budget:g} is no share of the examples; give 0 to 1.")
    if rule is not None and (labels is not None or validation is not None):
        raise InputError("--rule applies a table as it is; leave --labels and --validation out.")
    table = None if rule is None else m.read_rule(rule, KIND, OverrideTable.from_json)
    with bar() as progress:
        progress("reading", 0, 1)
        tasks = m.read_tasks(files, values)
        names = chosen_variants(tasks[0], o.split_names(variant, "--variant"))
        annotated = None if labels is None else read_labels(labels, id_, tasks)
        curves, notes, files_beside = {}, [], {}
        if table is None:
            chosen, said = _chosen(tasks, validation, values)
            notes += said
            if annotated is not None:  # people look at some attributes only
                chosen = [answers for answers in chosen if answers.task in annotated] or chosen
            table = override_table(chosen, budget, annotated)
            curves["override_curves"] = override_curves(
                chosen,
                names,
                labels=annotated,
                min_group=min_group,
                n_boot=min(n_boot, 500),
                alpha=alpha,
                random_state=random_state,
                progress=progress,
            )
            files_beside["to_annotate.csv"] = to_annotate(chosen, BUDGETS[-1])
            if labels is not None:
                notes += people_notes(labels, annotated, table.overrides)
            else:
                notes.append(
                    "In the curves, 'human' are the tables' own labels: people who are always "
                    "right. What is written are dense labels; --labels FILE takes those of people."
                )
        notes += check_overrides(table, tasks)
        with open(apply_overrides.__file__, encoding="utf-8") as file:
            files_beside["apply_overrides.py"] = file.read()
        made = Made(
            KIND,
            table.as_json(),
            tasks,
            [[apply_override_table(table, a, name) for name in names] for a in tasks],
            curves,
            notes,
            files=files_beside,
        )
        result, changes = judge_and_write(made, context, values, progress)
    if not quiet:
        tell(made, result, changes, values)


def _chosen(
    tasks: Sequence[Answers], validation: list[str] | None, values: dict[str, object]
) -> tuple[list[Answers], list[str]]:
    """The tasks to be overridden, and sentences on how they were chosen."""
    from fairweight.auditing.mitigate.overrides import amplified_tasks
    from fairweight.auditing.mitigate.rows_seen import refuse_overlap, rows_seen
    from fairweight.errors import InputError, UnknownNameError

    identity = values["identity"]
    columns = [column.name for column in tasks[0].columns]
    if identity is not None and identity not in columns:
        raise UnknownNameError("--identity", str(identity), columns)
    if validation is None:
        return list(tasks), [
            "Every attribute is overridden: there are no validation rows (--validation) to choose "
            "those in which the dense model amplifies bias."
        ]
    apart = m.read_tasks(validation, values)
    seen = rows_seen(apart)
    notes = refuse_overlap(
        seen,
        rows_seen(tasks, seen),
        "The attributes would be judged on rows on which they were chosen",
    )
    amplified = amplified_tasks(
        apart, None if identity is None else str(identity), int(str(values["min_group"]))
    )
    chosen = [answers for answers in tasks if answers.task in amplified]
    if not chosen:
        raise InputError(
            "On the validation rows the dense model amplifies bias in no attribute, so there is "
            "nothing to override; leave --validation out to override all the same."
        )
    told = (
        f"{len(chosen)} of {len(tasks)} attributes are overridden: those in which the dense model "
        "amplifies bias on the validation rows."
    )
    return chosen, [told, *notes]
