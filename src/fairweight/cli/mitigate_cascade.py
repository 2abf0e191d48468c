"""`fairweight mitigate cascade`: send what the compressed model is unsure of to the dense one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import mitigate_options as m
from fairweight.cli import options as o

if TYPE_CHECKING:
    from fairweight.auditing.answers import Answers
    from fairweight.auditing.mitigate.cascade import Cascade


def cascade(
    context: typer.Context,
    files: o.Files,
    validation: m.Validation = None,
    variant: m.Variant = None,
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
    from fairweight.auditing.mitigate.new_variant import chosen_variants
    from fairweight.auditing.mitigate.rows_seen import RowsSeen, refuse_overlap, rows_seen
    from fairweight.auditing.mitigate.some_rows import two_parts
    from fairweight.cli.mitigate_output import Made, judge_and_write, tell
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
    from fairweight.auditing.mitigate.rows_seen import rows_seen

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
    from fairweight.auditing.mitigate.partners import item_latency

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
