"""`fairweight explain`: which examples pay, and what goes along with it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import options
from fairweight.cli import options as o
from fairweight.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from fairweight.auditing.exemplars.exemplars import Exemplars
    from fairweight.auditing.explain.explanations import Asked
    from fairweight.auditing.prediction_matrix import Answers
    from fairweight.auditing.preflight.preflight import Preflight
    from fairweight.report.images import Shown
    from fairweight.tables.align import Aligned

EXPLAIN = "Explanations"
IMAGES = "Images"


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
    data: options.DataFolder = None,
    dataset_option: options.DatasetOptions = None,
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
    from fairweight.base.files import check_folder
    from fairweight.cli.audit import reader_may_leave
    from fairweight.cli.progress import bar
    from fairweight.report.explanation_sentences import explanation_sentences
    from fairweight.report.html import names

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
    from fairweight.auditing.explain.explanations import Asked

    measure = covariates = images = None
    if values["dataset"] is not None:
        from fairweight.auditing.explain.images import measure_dataset, training_covariates
        from fairweight.cli.options import assignments
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


# `fairweight exemplars`: on which examples does compression change the answer?

EXEMPLARS = "Exemplars"


def exemplars(
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
    variant_column: o.VariantColumn = "variant",
    seed_column: o.SeedColumn = "seed",
    prediction_column: o.PredictionColumn = "prediction",
    score_column: o.ScoreColumn = "score",
    positive: o.Positive = None,
    score_classes: o.ScoreClasses = None,
    force: o.Force = False,
    variant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,NAME",
            help="Only these variants; by default all but the baseline.",
            rich_help_panel=EXEMPLARS,
        ),
    ] = None,
    kind: Annotated[
        str,
        typer.Option(
            metavar="a,b",
            help="Kinds: modal, unanimous, taxicab, jaccard, surrogate (single pairs).",
            rich_help_panel=EXEMPLARS,
        ),
    ] = "modal,unanimous,taxicab,surrogate",
    percentile: Annotated[
        str,
        typer.Option(
            metavar="a,b",
            help="Cuts of the distance: 95 keeps the 5 % of examples that lie furthest apart.",
            rich_help_panel=EXEMPLARS,
        ),
    ] = "90,95,99",
    tie_rule: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Who wins equally many votes: disjoint (no common answer), max, min, negative, "
            "random, baseline.",
            rich_help_panel=EXEMPLARS,
        ),
    ] = "disjoint",
    fill: Annotated[
        str | None,
        typer.Option(
            metavar="random",
            help="Fill a cut with examples on which nothing differs; by default there are fewer.",
            rich_help_panel=EXEMPLARS,
        ),
    ] = None,
    alpha: Annotated[
        float, typer.Option(help="Level of intervals.", rich_help_panel=o.STATISTICS)
    ] = 0.05,
    random_state: o.RandomState = 0,
    images: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Write images of modal exemplars, and of as many others with the same labels.",
            rich_help_panel=IMAGES,
        ),
    ] = None,
    most_images: Annotated[
        int,
        typer.Option(
            help="At most so many exemplars per variant, the furthest apart first.",
            rich_help_panel=IMAGES,
        ),
    ] = 500,
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Take images from this data set, not from a column `image` or `image_path`.",
            rich_help_panel=IMAGES,
        ),
    ] = None,
    data: options.DataFolder = None,
    dataset_option: options.DatasetOptions = None,
    out: Annotated[
        str,
        typer.Option(metavar="DIR", help="Where the tables go.", rich_help_panel=o.OUTPUT),
    ] = "fairweight-exemplars",
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Find the examples on which compressed models answer otherwise than dense ones.

    Populations: several seeds of each variant in one table. An exemplar is an
    example whose most frequent answer changes, or which lies furthest apart:

        fairweight exemplars preds.parquet --variants variants.csv

    One pair of models gives a surrogate: changed predictions, then divergence:

        fairweight exemplars dense.csv int8.csv --percentile 95

    To look at them, from a column `image` or `image_path`, or from a data set:

        fairweight exemplars preds.parquet --examples people.parquet --images look

        fairweight exemplars preds.parquet --dataset digits --images look

    Writes `exemplars`, `exemplar_counts`, `exemplar_accuracy`, `exemplar_overlap`
    and `exemplar_surrogate` into DIR, as Parquet and CSV.
    """
    values = dict(locals())
    from fairweight.auditing.exemplars.exemplars import find, join
    from fairweight.auditing.prediction_matrix import from_aligned, tasks_of
    from fairweight.auditing.table_files import write_frames
    from fairweight.auditing.vocabulary import Vocabulary, joined, of_answers
    from fairweight.base.files import atomic_directory, check_folder
    from fairweight.cli.options import assignments
    from fairweight.cli.progress import bar
    from fairweight.report.images import choose
    from fairweight.tables.align import align

    asked: dict[str, Any] = {
        "percentiles": _percentiles(percentile),
        "kinds": o.split_names(kind, "--kind"),
        "tie_rule": tie_rule,
        "fill": fill,
        "random_state": random_state,
        "alpha": alpha,
    }
    known = ("exemplars.parquet", "exemplars.csv")
    check_folder(out, inputs=o.inputs(values), overwrite=overwrite, names=known)
    if images is not None:
        check_folder(images, inputs=o.inputs(values), overwrite=overwrite, names=("manifest.csv",))
        if Path(images).resolve() == Path(out).resolve():
            raise InputError(f"--images and --out are both '{out}'; give each its own folder.")
        if most_images < 1:
            raise InputError(f"--most-images {most_images} cannot be used; give at least 1.")
        if "modal" not in asked["kinds"]:
            raise InputError("--images shows modal exemplars; add modal to --kind.")
    elif dataset is not None or dataset_option:
        raise InputError("--dataset and --dataset-option need --images DIR.")
    with (
        bar() as progress,
        align(
            files if len(files) > 1 else files[0],
            **o.table_options(values),
            score_classes=o.split_names(score_classes, "--score-classes"),
            further=True,
        ) as aligned,
    ):
        names = tasks_of(aligned)
        spoken: list[Vocabulary] = []
        named = None if aligned.has_task else positive
        parts: list[Exemplars] = []
        shown: list[Shown] = []
        for number, name in enumerate(names):
            progress("finding exemplars", number, len(names))
            answers = _only(from_aligned(aligned, name, positive=named), variant)
            spoken.append(of_answers(answers))
            parts.append(find(answers, **asked))
            if images is not None:
                shown += [
                    choose(
                        answers,
                        v,
                        parts[-1].masks[v, "modal", None],
                        _furthest(parts[-1], v, answers),
                        most_images,
                        random_state,
                    )
                    for v in answers.variants
                ]
        joined(spoken).check(aligned.baseline, force=force)
        found = join(parts)
        if images is not None:
            options = assignments(dataset_option, "--dataset-option")
            encoded = _images(aligned, id_, shown, dataset, data, options)
            _write_images(images, shown, encoded, overwrite)
        target = atomic_directory(out, completion=("exemplars.parquet",), overwrite=overwrite)
        with target as folder:
            write_frames(found.frames, folder)
    if not quiet:
        _tell(found, out, shown, images, most_images)


def _percentiles(text: str) -> list[float]:
    try:
        return [float(word) for word in o.split_names(text, "--percentile") or []]
    except ValueError:
        raise InputError(
            f"--percentile {text!r} cannot be used; give numbers with commas: 90,95,99"
        ) from None


def _only(answers: Answers, wanted: str | None) -> Answers:
    names = o.split_names(wanted, "--variant")
    if names is None:
        return answers
    for name in names:
        if name not in answers.variants:
            raise UnknownNameError("Compressed variant", name, answers.variants)
    return replace(answers, variants=tuple(v for v in answers.variants if v in names))


def _furthest(found: Exemplars, variant: str, answers: Answers) -> list[int]:
    """Places of a variant's modal exemplars, in the order of their rank."""
    from fairweight.auditing.exemplars.table import identities

    rows = found.rows[(found.rows["variant"] == variant) & found.rows["modal"]]
    place = {str(name): i for i, name in enumerate(identities(answers))}
    return [place[str(name)] for name in rows["example_id"]]


def _images(
    aligned: Aligned,
    id_: str,
    shown: Sequence[Shown],
    dataset: str | None,
    data: str | None,
    options: dict[str, Any],
) -> dict[str, bytes]:
    from fairweight.report.images import images_in_dataset, images_in_tables

    wanted = list(dict.fromkeys(name for one in shown for name in one.wanted))
    if dataset is None:
        return images_in_tables(aligned, id_, wanted)
    from fairweight.data import load

    return images_in_dataset(load(dataset, data, **options), wanted)


def _write_images(
    out: str, shown: Sequence[Shown], encoded: dict[str, bytes], overwrite: bool
) -> None:
    """One pair of folders, or one per variant (and task) where there are several."""
    from fairweight.base.files import atomic_directory
    from fairweight.report.images import safe_name, write_images

    with atomic_directory(out, completion=("manifest.csv",), overwrite=overwrite) as folder:
        for one in shown:
            place = folder
            if len(shown) > 1:
                place = folder / safe_name(one.variant)
                if one.answers.task is not None:
                    place /= safe_name(one.answers.task)
                place.mkdir(parents=True)
            write_images(place, one, encoded)


def _tell(
    found: Exemplars, out: str, shown: Sequence[Shown], images: str | None, most: int
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0))
    several_tasks = found.counts["task"].nunique() > 1
    heads = ("task",) if several_tasks else ()
    for head in (*heads, "variant", "kind", "exemplars", "share", "at floor's size", "floor", "p"):
        numeric = head not in ("task", "variant", "kind")
        table.add_column(head, justify="right" if numeric else "left", no_wrap=True)
    notes: dict[str, list[str]] = {}
    for row in found.counts.to_dict("records"):
        kind = str(row["kind"]) + ("" if isnan(row["percentile"]) else f" {row['percentile']:g}")
        names = [str(row["task"])] if several_tasks else []
        names += [str(row["variant"]), kind]
        if row["status"] != "ok":
            notes.setdefault(str(row["status"]), []).append(" ".join(names))
        cells = [
            *names,
            _number(row["n_exemplars"], ",.0f"),
            _number(row["share"], ".2%"),
            _number(row["matched"], ".2%"),
            _number(row["floor"], ".2%"),
            _number(row["p_retraining"], ".3f"),
        ]
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    console.print(
        "floor: the share that two halves of the dense members give; at floor's size: the same "
        "with as many compressed members; p: relabelling of members.",
        highlight=False,
        style="dim",
    )
    for note, rows in notes.items():
        console.print(f"{', '.join(rows)}: {note}.", highlight=False, markup=False)
    console.print(f"Written to {out}", highlight=False, markup=False)
    if images is not None:
        _tell_images(console, shown, images, most)


def _tell_images(console: Console, shown: Sequence[Shown], images: str, most: int) -> None:
    number = sum(len(one.exemplars) + len(one.others) for one in shown)
    told = f"{number:,} images in {images}"
    if cut := sum(len(one.exemplars) == most for one in shown):
        told += f"; at most {most:,} exemplars each (--most-images), reached by {cut}"
    if missing := sum(one.missing for one in shown):
        told += f"; {missing:,} fewer others: there are not enough with these labels"
    console.print(told, highlight=False, markup=False)


def _number(value: float, how: str) -> str:
    return "" if isnan(value) else format(value, how)


# `fairweight preflight`: from the dense model's predictions alone, who is at risk?

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
    from fairweight.base.files import check_folder
    from fairweight.cli.audit import reader_may_leave
    from fairweight.errors import InputError

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

    from fairweight.auditing.prediction_matrix import from_aligned, tasks_of
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
    from fairweight.base.files import atomic_directory

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
            _three_digits(row["value"]),
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
        table.add_row(
            str(name), str(row["label"]), str(row["prediction"]), _three_digits(row[score])
        )
    return table


def _table(*titles: str) -> Any:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in titles:
        table.add_column(title)
    return table


def _three_digits(value: float) -> str:
    return "—" if value != value else f"{value:.3f}"


def _limits(low: float, high: float) -> str:
    return "—" if low != low else f"{low:.3f} to {high:.3f}"
