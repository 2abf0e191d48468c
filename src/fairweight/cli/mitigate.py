"""`fairweight mitigate`: new answers from old ones, audited again on rows apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import options as m
from fairweight.cli import options as o

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.mitigate.cascade import Cascade
    from fairweight.auditing.mitigate.mitigation import NewVariant
    from fairweight.auditing.prediction_matrix import Answers
    from fairweight.base.types import Progress


# `fairweight mitigate cascade`: send what the compressed model is unsure of to the dense one.


def cascade(
    context: typer.Context,
    files: o.Files,
    validation: m.Validation = None,
    variant: m.VariantNames = None,
    rule: m.Rule = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            help="Confidence below which an input goes to the dense model, 0 to 1; by default "
            "chosen with --margin.",
            rich_help_panel=m.MITIGATION,
        ),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(
            help="Choose the least threshold at which no group may lose more than this.",
            rich_help_panel=m.MITIGATION,
        ),
    ] = 0.02,
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
    values = dict(locals())
    from fairweight.auditing.mitigate.cascade import (
        KIND,
        Cascade,
        apply_cascade,
        check_whole_inputs,
    )
    from fairweight.auditing.mitigate.mitigation import (
        RowsSeen,
        chosen_variants,
        refuse_overlap,
        rows_seen,
        two_parts,
    )
    from fairweight.cli.progress import bar
    from fairweight.errors import InputError, UnknownNameError

    m.check_out(values)
    m.check_statistics(values)
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(f"--threshold {threshold:g} cannot be used; give 0 to 1.")
    if not 0 <= margin < 1:
        raise InputError(f"--margin {margin:g} cannot be used; give a loss between 0 and 1.")
    if sum(given is not None for given in (rule, threshold, validation)) > 1:
        raise InputError("Give one of --rule, --threshold and --validation, not several.")
    held = None if rule is None else m.read_rule(rule, KIND, Cascade.from_json)
    with bar() as progress:
        progress("reading", 0, 1)
        tasks = m.read_tasks(files, values)
        check_whole_inputs(tasks)
        names = chosen_variants(tasks[0], o.split_names(variant, "--variant"))
        known = names if held is None else held.thresholds
        for name in names:
            if name not in known:
                raise UnknownNameError("In the rule, the variant", name, known)
        choosing: Sequence[Answers] = []
        notes: list[str] = []
        if threshold is not None:
            held = Cascade(dict.fromkeys(names, threshold), None, RowsSeen(frozenset()))
        elif held is None:
            if validation is None:
                choosing, tasks = two_parts(tasks, random_state)
            else:
                choosing = m.read_tasks(validation, values)
                chosen_variants(choosing[0], names, "In the validation rows, the variant")
            seen = rows_seen(choosing)
            notes += refuse_overlap(seen, rows_seen(tasks, seen), m.FITTED)
        else:
            seen = held.fitted_on
            notes += refuse_overlap(seen, rows_seen(tasks, seen), m.FITTED)
        held, curve = _curves(choosing, tasks, names, held, values, progress)
        by_variant = [apply_cascade(held.thresholds[name], tasks, name) for name in names]
        made = Made(
            KIND,
            held.as_json(),
            tasks,
            [list(own) for own in zip(*by_variant, strict=True)],
            {"cascade_curve": curve},
            [*_notes(held, curve, names, len(choosing) > 0 and validation is None), *notes],
            _measured(held, curve, names, tasks),
        )
        result, changes = judge_and_write(made, context, values, progress)
    if not quiet:
        tell(made, result, changes, values)


def _curves(
    choosing: Sequence[Answers],
    judging: Sequence[Answers],
    names: Sequence[str],
    held: Cascade | None,
    values: dict[str, Any],
    progress: Any,
) -> tuple[Cascade, Any]:
    """The thresholds, chosen where they were not given, and curves on all rows that were used."""
    import pandas as pd

    from fairweight.auditing.mitigate.cascade import (
        Cascade,
        cascade_curve,
        input_confidence,
        recommended,
        threshold_grid,
    )
    from fairweight.auditing.mitigate.mitigation import rows_seen

    options = {name: values[name] for name in ("alpha", "min_group", "random_state")}
    options |= {"n_boot": min(values["n_boot"], 1000), "progress": progress}
    frames, chosen = [], {}
    for name in names:
        grid = threshold_grid(input_confidence(choosing or judging, name))
        if held is not None:
            chosen[name] = held.thresholds[name]
            grid = tuple(sorted({*grid, chosen[name]}))
        else:
            first = cascade_curve(choosing, name, grid, "choosing", **options)
            chosen[name] = recommended(first, values["margin"])
            frames.append(first)
        frames.append(cascade_curve(judging, name, grid, "judging", **options))
    curve = pd.concat(frames, ignore_index=True)
    curve["recommended"] = curve["threshold"] == curve["variant"].map(chosen)
    if held is None:
        held = Cascade(chosen, values["margin"], rows_seen(choosing))
    return held, curve


def _notes(held: Cascade, curve: Any, names: Sequence[str], halved: bool) -> list[str]:
    notes = []
    for name in names:
        rows = curve[(curve["variant"] == name) & (curve["part"] == "judging")]
        own = rows[rows["recommended"]].iloc[0]
        cost = (
            "no latency was measured"
            if own["cost_ms"] != own["cost_ms"]
            else (f"{own['cost_ms']:.3g} ms per item on average")
        )
        said = f"{name}: at the threshold {held.thresholds[name]:.4g}, {own['share_deferred']:.1%} "
        said += f"of the inputs go to the dense model ({cost})."
        if held.margin is not None and held.thresholds[name] >= 1:
            said += (
                f" No threshold below 1 keeps every group within {100 * held.margin:g} points with "
                "these examples: the dense model answers all, and the cascade does not help."
            )
        notes.append(said)
    if halved:
        notes.append(
            "Thresholds were chosen on half of the examples (clusters) and judged on the others."
        )
    return notes


def _measured(
    held: Cascade, curve: Any, names: Sequence[str], tasks: Sequence[Answers]
) -> dict[str, dict[str, float]]:
    """The latency of a cascade, in the unit of its origin's row: of a batch."""
    from fairweight.auditing.mitigate.cascade import cascade_name
    from fairweight.auditing.mitigate.mitigation import item_latency

    found = {}
    table = tasks[0].variants_table
    for name in names:
        rows = curve[(curve["variant"] == name) & curve["recommended"]]
        cost = float(rows[rows["part"] == "judging"]["cost_ms"].iloc[0])
        if table is None or cost != cost:
            continue
        rises = cost / item_latency(table, name)
        own = table[table["variant"].astype(str) == name]
        columns = {"latency_ms": float(own["latency_ms"].mean()) * rises}
        if "items_per_s" in own:
            columns["items_per_s"] = float(own["items_per_s"].mean()) / rises
        found[cascade_name(name, held.thresholds[name])] = columns
    return found


# `fairweight mitigate overrides`: fixed labels for the examples that are most in doubt.


def overrides(
    context: typer.Context,
    files: o.Files,
    validation: m.Validation = None,
    variant: m.VariantNames = None,
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
    from fairweight.auditing.mitigate.mitigation import chosen_variants
    from fairweight.auditing.mitigate.override_curves import BUDGETS, override_curves
    from fairweight.auditing.mitigate.overrides import (
        KIND,
        OverrideTable,
        apply_override_table,
        check_overrides,
        override_table,
        people_notes,
        read_labels,
        to_annotate,
    )
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
    from fairweight.auditing.mitigate.mitigation import refuse_overlap, rows_seen
    from fairweight.auditing.mitigate.overrides import amplified_tasks
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


# `fairweight mitigate thresholds`: predict each attribute as often as it is true.


def thresholds(
    context: typer.Context,
    files: o.Files,
    validation: m.Validation = None,
    variant: m.VariantNames = None,
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
    from fairweight.auditing.mitigate.mitigation import chosen_variants, refuse_overlap, rows_seen
    from fairweight.auditing.mitigate.thresholds import (
        KIND,
        Thresholds,
        apply_thresholds,
        fit_thresholds,
        left_alone,
    )
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


# What every mitigation ends with: the re-audit, its files and its sentences.


@dataclass(frozen=True)
class Made:
    """A mitigation, before it is judged."""

    kind: str  # thresholds, overrides or cascade
    rule: Mapping[str, Any]  # as JSON
    tasks: Sequence[Answers]  # the rows on which it is judged
    variants: Sequence[Sequence[NewVariant]]  # by task
    explanations: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    notes: Sequence[str] = ()
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # further ones, as text


def judge_and_write(
    made: Made, context: typer.Context, values: dict[str, Any], progress: Progress
) -> tuple[Any, pd.DataFrame]:
    """Audit the new variants, write everything, and return the result and its changes."""
    import json
    from dataclasses import replace

    from fairweight.auditing.mitigate.mitigation import (
        prediction_table,
        training_rows,
        variants_with,
    )
    from fairweight.auditing.mitigate.reaudit import reaudit
    from fairweight.auditing.table_files import write_frames
    from fairweight.base.files import atomic_directory
    from fairweight.report.html import save

    first = made.tasks[0]
    pairs = [(new.name, new.origin) for new in made.variants[0]]
    table = prediction_table(made.tasks, made.variants)
    models = variants_with(first.variants_table, pairs, made.measured)
    again = reaudit(
        table,
        pairs,
        baseline=first.baseline,
        groups=first.groupings,
        positive=values["positive"],
        train=training_rows(made.tasks),
        variants=models,
        options={
            name: values[name]
            for name in ("alpha", "members", "n_boot", "min_group", "random_state")
        },
        command=o.shell_command(context),
        explanations=made.explanations,
        progress=progress,
    )
    result = replace(again.result, notes=tuple(dict.fromkeys((*again.result.notes, *made.notes))))
    progress("writing the report", 1, 1)
    target = atomic_directory(
        values["out"], completion=("predictions.parquet",), overwrite=values["overwrite"]
    )
    with target as folder:
        rule = json.dumps(made.rule, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / f"{made.kind}.json").write_text(rule + "\n", encoding="utf-8")
        for name, text in made.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        write_frames({**made.explanations, "mitigation": again.mitigation}, folder)
        table.to_parquet(folder / "predictions.parquet", index=False)
        if models is not None:
            models.to_parquet(folder / "variants.parquet", index=False)
        save(result, folder / "audit")
    return result, again.mitigation


def tell(made: Made, result: Any, changes: pd.DataFrame, values: dict[str, Any]) -> None:
    """Print whether it helped, who got worse, and the audit's own summary."""
    from rich.console import Console

    from fairweight.cli.audit import reader_may_leave
    from fairweight.report.explanation_sentences import mitigation_sentences
    from fairweight.report.terminal import show

    console = Console()
    with reader_may_leave():
        for sentence in (*mitigation_sentences(changes, made.kind), *made.notes):
            console.print(f"• {sentence}", markup=False, highlight=False)
        out = Path(values["out"])
        show(result, console, report=str(out / "audit" / "report.html"))
        told = f"Rule: {out / made.kind}.json; predictions: {out / 'predictions.parquet'}"
        console.print(told, markup=False, highlight=False, soft_wrap=True)
