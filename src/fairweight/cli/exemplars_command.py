"""`fairweight exemplars`: on which examples does compression change the answer?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import lab_options
from fairweight.cli import options as o
from fairweight.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from rich.console import Console

    from fairweight.auditing.answers import Answers
    from fairweight.auditing.exemplars.result import Exemplars
    from fairweight.report.exemplar_images import Shown
    from fairweight.tables.align import Aligned

EXEMPLARS, IMAGES = "Exemplars", "Images"


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
    data: lab_options.DataFolder = None,
    dataset_option: lab_options.DatasetOptions = None,
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
    from fairweight.auditing.answers import from_aligned, tasks_of
    from fairweight.auditing.exemplars.find import find
    from fairweight.auditing.exemplars.result import join
    from fairweight.auditing.vocabulary import Vocabulary, joined, of_answers
    from fairweight.cli.assignments import assignments
    from fairweight.cli.progress import bar
    from fairweight.report.exemplar_images import choose
    from fairweight.report.tables import write_frames
    from fairweight.tables.align import align
    from fairweight.tables.write import atomic_directory, check_folder

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
    from fairweight.auditing.exemplars.rows import identities

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
    from fairweight.report.image_sources import images_in_dataset, images_in_tables

    wanted = list(dict.fromkeys(name for one in shown for name in one.wanted))
    if dataset is None:
        return images_in_tables(aligned, id_, wanted)
    from fairweight.data import load

    return images_in_dataset(load(dataset, data, **options), wanted)


def _write_images(
    out: str, shown: Sequence[Shown], encoded: dict[str, bytes], overwrite: bool
) -> None:
    """One pair of folders, or one per variant (and task) where there are several."""
    from fairweight.report.exemplar_images import safe_name, write_images
    from fairweight.tables.write import atomic_directory

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
