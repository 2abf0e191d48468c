"""`fairweight explain`: which examples pay, and what goes along with it?"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli import options as o
from fairweight.errors import InputError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec, read_names

if TYPE_CHECKING:
    from rich.console import Console

    from fairweight.auditing.exemplars.exemplars import Exemplars
    from fairweight.auditing.preflight.preflight import Preflight
    from fairweight.report.images import Shown

EXPLAIN = "Explanations"
IMAGES = "Images"


@o.takes
def explain(
    context: typer.Context,
    files: o.Files,
    tables: o.Tables,
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
    data: o.DataFolder = None,
    dataset_option: o.DatasetOptions = None,
    *,
    options: o.OfAudit,
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
    from rich.console import Console

    from fairweight.api import explain as explained
    from fairweight.base.files import check_folder
    from fairweight.cli.audit import reader_may_leave
    from fairweight.cli.progress import bar
    from fairweight.report.explanation_sentences import explanation_sentences
    from fairweight.report.html import names

    check_folder(out, inputs=tables.paths, overwrite=overwrite, names=names())
    with bar() as progress:
        made = explained(
            tables,
            options,
            parts=o.split_names(part, "--part"),
            individual=individual,
            individual_group=individual_group,
            dataset=dataset,
            data=data,
            dataset_options=o.assignments(dataset_option, "--dataset-option"),
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


# `fairweight exemplars`: on which examples does compression change the answer?

EXEMPLARS = "Exemplars"


class TieRule(StrEnum):
    DISJOINT, MAX, MIN = "disjoint", "max", "min"
    NEGATIVE, RANDOM, BASELINE = "negative", "random", "baseline"


class Fill(StrEnum):
    RANDOM = "random"


@o.takes
def exemplars(
    files: o.Files,
    tables: o.SingleExamples,
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
        TieRule,
        typer.Option(
            metavar="NAME",
            help="Who wins equally many votes: disjoint (no common answer), max, min, negative, "
            "random, baseline.",
            rich_help_panel=EXEMPLARS,
        ),
    ] = TieRule.DISJOINT,
    fill: Annotated[
        Fill | None,
        typer.Option(
            metavar="random",
            help="Fill a cut with examples on which nothing differs; by default there are fewer.",
            rich_help_panel=EXEMPLARS,
        ),
    ] = None,
    *,
    options: Annotated[AuditOptions, o.only("alpha", "random_state")],
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
    data: o.DataFolder = None,
    dataset_option: o.DatasetOptions = None,
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
    from fairweight.api import exemplars as find
    from fairweight.base.files import check_folder
    from fairweight.cli.progress import bar

    known = ("exemplars.parquet", "exemplars.csv")
    check_folder(out, inputs=tables.paths, overwrite=overwrite, names=known)
    if images is not None:
        check_folder(images, inputs=tables.paths, overwrite=overwrite, names=("manifest.csv",))
        if Path(images).resolve() == Path(out).resolve():
            raise InputError(f"--images and --out are both '{out}'; give each its own folder.")
    with bar() as progress:
        found = find(
            tables,
            options,
            variants=o.split_names(variant, "--variant"),
            kinds=read_names(kind, "--kind"),
            percentiles=_percentiles(percentile),
            tie_rule=tie_rule.value,
            fill=None if fill is None else fill.value,
            images=images,
            most_images=most_images,
            dataset=dataset,
            data=data,
            dataset_options=o.assignments(dataset_option, "--dataset-option"),
            overwrite=overwrite,
            progress=progress,
        )
        found.save(out, overwrite=overwrite)
    if not quiet:
        _tell(found, out, images, most_images)


def _percentiles(text: str) -> list[float]:
    try:
        return [float(word) for word in o.split_names(text, "--percentile") or []]
    except ValueError:
        raise InputError(
            f"--percentile {text!r} cannot be used; give numbers with commas: 90,95,99"
        ) from None


def _tell(found: Exemplars, out: str, images: str | None, most: int) -> None:
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
        _tell_images(console, found.images, images, most)


def _tell_images(console: Console, shown: Sequence[Shown], images: str, most: int) -> None:
    number = sum(len(one.exemplars) + len(one.others) for one in shown)
    told = f"{number:,} images in {images}"
    if cut := sum(len(one.exemplars) == most for one in shown):
        told += f"; at most {most:,} exemplars each (--most-images), reached by {cut}"
    if missing := sum(one.missing for one in shown):
        told += f"; {missing:,} fewer others: there are not enough with these labels"
    console.print(told, highlight=False, markup=False)


def _number(value: float | None, how: str) -> str:
    return "" if value is None or isnan(value) else format(value, how)


# `fairweight preflight`: from the dense model's predictions alone, who is at risk?

SHOWN = 10
TITLES = {
    "attribute": "Attributes",
    "class": "Classes",
    "group": "Groups",
    "example": "Examples",
}


@o.takes
def preflight(
    files: o.Files,
    tables: Annotated[TableSpec, o.without("variants", "count", "positive")],
    options: Annotated[AuditOptions, o.only("alpha", "min_group")],
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
    from rich.console import Console

    from fairweight.api import preflight as check
    from fairweight.base.files import check_folder
    from fairweight.cli.audit import reader_may_leave

    if out is not None:
        check_folder(out, inputs=tables.paths, overwrite=overwrite, names=("preflight.csv",))
    found = check(tables, options)
    if out is not None:
        found.save(out, overwrite=overwrite)
    if not quiet:
        with reader_may_leave():
            _show(found, Console(highlight=False), out)


def _show(found: Preflight, console: Console, out: str | None) -> None:
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
    for note in found.notes:
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
