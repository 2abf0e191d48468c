"""`fairweight preflight`: from the dense model's predictions alone, who is at risk?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import options as o

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from fairweight.auditing.preflight.preflight import Preflight

SHOWN = 10
TITLES = {
    "attribute": "Attributes",
    "class": "Classes",
    "group": "Groups",
    "example": "Examples",
}


def preflight(
    files: o.Files,
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
    score_classes: o.ScoreClasses = None,
    force: o.Force = False,
    alpha: Annotated[
        float, typer.Option(help="Level of intervals.", rich_help_panel=o.STATISTICS)
    ] = 0.05,
    min_group: o.MinGroup = 10,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Write `preflight.csv`, `preflight_examples.csv` and the evidence here.",
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Before compressing: which classes, groups and examples are at risk?

    From the predictions of the dense model alone, with its scores if there are any:

        fairweight preflight dense.csv --groups sex,age --train train.csv

    Several seeds of the dense model tell more, because retrained models disagree
    where compressed ones do:

        fairweight preflight dense=seed0.csv dense=seed1.csv dense=seed2.csv

    Parts are ranked by the score that foretold best, in past studies, who lost;
    how well it did is printed beside them. Where no study supports a score, or
    the examples are too few, the answer is "cannot tell".
    """
    values = dict(locals())
    from rich.console import Console

    from fairweight.auditing.preflight.evidence import read_evidence
    from fairweight.auditing.preflight.preflight import preflight as check
    from fairweight.cli.verdict import reader_may_leave
    from fairweight.errors import InputError
    from fairweight.tables.write import check_folder

    if not 0 < alpha < 1:
        raise InputError(f"--alpha {alpha:g} cannot be used; give a level between 0 and 1.")
    if min_group < 1:
        raise InputError(f"--min-group {min_group} cannot be used; give at least 1.")
    if out is not None:
        check_folder(out, inputs=o.inputs(values), overwrite=overwrite, names=("preflight.csv",))
    given = files if len(files) > 1 else files[0]
    options = o.table_options(values) | {
        "score_classes": o.split_names(score_classes, "--score-classes")
    }
    evidence = read_evidence()
    tasks, notes = _answers(given, options, force)
    found = check(tasks, evidence, alpha=alpha, min_group=min_group)
    if out is not None:
        _write(found, evidence, out, overwrite)
    if not quiet:
        with reader_may_leave():
            _show(found, [*notes, *found.notes], Console(highlight=False), out)


def _answers(given: Any, options: dict[str, Any], force: bool) -> tuple[list[Any], list[str]]:

    from fairweight.auditing.answers import from_aligned, tasks_of
    from fairweight.auditing.vocabulary import joined, of_answers
    from fairweight.tables.align import align

    with align(given, alone=True, **options) as aligned:
        tasks = [from_aligned(aligned, task) for task in tasks_of(aligned)]
        notes = list(aligned.notes)
        if aligned.variants:
            shown = ", ".join(f"'{name}'" for name in aligned.variants)
            notes.append(
                f"Only the baseline '{aligned.baseline}' was looked at; not used: {shown}. "
                "Seeds of one model share a NAME: dense=a.csv dense=b.csv."
            )
    said = joined(map(of_answers, tasks)).check(tasks[0].baseline, force=force)
    return tasks, [*notes, *said]


def _write(found: Preflight, evidence: pd.DataFrame, out: str, overwrite: bool) -> None:
    from fairweight.tables.write import atomic_directory

    frames = {
        "preflight": found.parts,
        "preflight_examples": found.examples,
        "preflight_evidence": evidence,
    }
    with atomic_directory(out, completion=(), overwrite=overwrite) as folder:
        for name, frame in frames.items():
            frame.to_csv(folder / f"{name}.csv", index=False, lineterminator="\n")


def _show(found: Preflight, notes: list[str], console: Console, out: str | None) -> None:
    from rich.text import Text

    members = "1 dense model" if found.n_members == 1 else f"{found.n_members} dense models"
    examples = "1 example" if found.n_examples == 1 else f"{found.n_examples:,} examples"
    console.print(f"{members}, {examples}: who is at risk when it is compressed")
    for level, title in TITLES.items():
        score = found.chosen.get(level)
        if score is None:
            continue
        console.print()
        console.print(Text(f"{title}, by {score.replace('_', ' ')}", style="bold"))
        console.print(Text(_worth(found, level)))
        console.print(_examples(found) if level == "example" else _parts(found, level, score))
    for note in notes:
        console.print(Text(note))
    if out is not None:
        console.print(Text(f"Tables: {out}"))


def _worth(found: Preflight, level: str) -> str:
    """What the score was worth in past studies, in a sentence."""
    held = found.support[level]
    if not held.n_studies:
        return "Evidence: none, no study has tried this score. Cannot tell."
    measure = "AUC for lost answers" if level == "example" else "rank correlation with excess loss"
    limits = "" if held.low != held.low else f" ({held.low:.2f} to {held.high:.2f})"
    end = f" Cannot tell: {held.reason}." if held.reason else ""
    studies = "1 study" if held.n_studies == 1 else f"{held.n_studies} studies"
    return f"Evidence: {measure} {held.value:.2f}{limits} in {studies}.{end}"


def _parts(found: Preflight, level: str, score: str) -> Any:
    parts = found.parts
    rows = parts[(parts["by"] == level) & (parts["score"] == score)].sort_values(
        "excess", ascending=False, kind="stable"
    )
    told = found.support[level].reason  # said once, above the table
    confidence = f"{100 * (1 - found.alpha):g} %"
    table = _table(level, "n", "score", f"{confidence} interval", "beyond others", "verdict", "")
    for row in rows.head(SHOWN).to_dict("records"):
        name = row["task"] if level == "attribute" else row[level]
        if level != "attribute" and row["task"] is not None:
            name = f"{name} ({row['task']})"
        table.add_row(
            str(name),
            f"{row['n']:,}",
            _number(row["value"]),
            _limits(row["low"], row["high"]),
            _limits(row["excess_low"], row["excess_high"]),
            row["verdict"],
            "" if row["status"] in ("ok", told) else row["status"],
        )
    if len(rows) > SHOWN:
        table.caption = f"{len(rows) - SHOWN:,} more: --out DIR writes all"
    return table


def _examples(found: Preflight) -> Any:
    score = found.chosen["example"]
    table = _table("example", "label", "prediction", score.replace("_", " "))
    held = found.examples.dropna(subset=[score]).sort_values(score, ascending=False, kind="stable")
    for row in held.head(SHOWN).to_dict("records"):
        name = row["example_id"] if row["task"] is None else f"{row['example_id']} ({row['task']})"
        table.add_row(str(name), str(row["label"]), str(row["prediction"]), _number(row[score]))
    return table


def _table(*titles: str) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title)
    return table


def _number(value: float) -> str:
    return "—" if value != value else f"{value:.3f}"


def _limits(low: float, high: float) -> str:
    return "—" if low != low else f"{low:.3f} to {high:.3f}"
