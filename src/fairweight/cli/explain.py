"""`fairweight explain`, `exemplars` and `preflight`: which examples pay, and who is at risk?"""

from __future__ import annotations

from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import fairweight as fw
from fairweight.audits import check_report
from fairweight.base.files import check_folder
from fairweight.cli import options as o
from fairweight.cli.screen import bar, listing, plain_console, reader_may_leave
from fairweight.errors import InputError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec, read_names

if TYPE_CHECKING:
    from fairweight.auditing.exemplars.exemplars import Exemplars
    from fairweight.auditing.exemplars.largest_losses import LargestLosses
    from fairweight.auditing.preflight.preflight import Preflight

EXPLAIN, EXEMPLARS, IMAGES = map(o.panel, ("Explanations", "Exemplars", "Images"))
SHOWN = 10
TITLES = {
    "attribute": "Attributes",
    "class": "Classes",
    "group": "Groups",
    "example": "Examples",
}


@o.takes
def explain(
    context: typer.Context,
    files: o.Files,
    tables: o.Tables,
    part: Annotated[
        str,
        EXPLAIN(
            "What to look for: exemplars, slices, properties, individuals, classes, similarity.",
            "a,b",
        ),
    ] = "exemplars,slices,properties,individuals,classes,similarity",
    individual: Annotated[
        str,
        EXPLAIN(
            "Who an example belongs to (a writer, a person); by default what --cluster says.", "COL"
        ),
    ] = "cluster",
    individual_group: Annotated[
        str | None, EXPLAIN("Compare individuals by this column.", "COL")
    ] = None,
    dataset: Annotated[
        str | None,
        IMAGES(
            "The data set of the examples: its images are measured (tilt, ink, entropy …).", "NAME"
        ),
    ] = None,
    data: o.DataFolder = None,
    dataset_option: o.DatasetOptions = None,
    *,
    options: o.OfAudit,
    out: Annotated[str, o.OUTPUT("Where the report goes.", "DIR")] = "fairweight-explanation",
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Audit, and look for what lost examples have in common: exemplars, slices, properties.

    Which examples, groups and measurements; every column of the tables is tried:

        fairweight explain preds.parquet --examples people.csv --cluster person

    With the images of a data set, and individuals compared by a column:

        fairweight explain preds.parquet --dataset qmnist --data DIR --cluster writer --individual-group series

    Associations only: what is found may stand for something else. Writes the report
    and tables of `fairweight audit` with a section on which examples and why.
    """  # noqa: E501  an example is one line
    from fairweight.report.explanation_sentences import explanation_sentences

    check_report(out, inputs=tables.paths, overwrite=overwrite)
    with bar() as progress:
        made = fw.api.explain(
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
    if not quiet:
        console = plain_console()
        with reader_may_leave():
            for sentence in explanation_sentences(made.result):
                console.print(f"• {sentence}")
            console.print(f"Report: {Path(out, 'report.html')}", soft_wrap=True)


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
        str | None, EXEMPLARS("Only these variants; by default all but the baseline.", "NAME,NAME")
    ] = None,
    kind: Annotated[
        str,
        EXEMPLARS("Kinds: modal, unanimous, taxicab, jaccard, surrogate (single pairs).", "a,b"),
    ] = "modal,unanimous,taxicab,surrogate",
    percentile: Annotated[
        str,
        EXEMPLARS(
            "Cuts of the distance: 95 keeps the 5 % of examples that lie furthest apart.", "a,b"
        ),
    ] = "90,95,99",
    tie_rule: Annotated[
        TieRule,
        EXEMPLARS(
            "Which class wins a tie: disjoint (no common prediction), max, min, negative, "
            "random, baseline.",
            "NAME",
        ),
    ] = TieRule.DISJOINT,
    fill: Annotated[
        Fill | None,
        EXEMPLARS(
            "Fill a cut with examples on which nothing differs; by default there are fewer.",
            "random",
        ),
    ] = None,
    *,
    options: Annotated[AuditOptions, o.only("alpha", "random_state")],
    images: Annotated[
        str | None,
        IMAGES(
            "Write images of modal exemplars, and of as many others with the same labels.", "DIR"
        ),
    ] = None,
    most_images: Annotated[
        int, IMAGES("At most so many exemplars per variant, the furthest apart first.")
    ] = 500,
    dataset: Annotated[
        str | None,
        IMAGES(
            "Take images from this data set, not from a column `image` or `image_path`.", "NAME"
        ),
    ] = None,
    data: o.DataFolder = None,
    dataset_option: o.DatasetOptions = None,
    out: Annotated[str, o.OUTPUT("Where the tables go.", "DIR")] = "fairweight-exemplars",
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Find the examples on which compressed models predict differently from dense ones.

    Populations: several seeds of each variant in one table. An exemplar is an
    example whose most frequent answer changes, or which lies furthest apart:

        fairweight exemplars preds.parquet --variants variants.csv

    One pair of models gives a surrogate: changed predictions, then divergence:

        fairweight exemplars dense.csv int8.csv --percentile 95

    To look at them, from a column `image` or `image_path`, or from a data set:

        fairweight exemplars preds.parquet --examples people.parquet --images look

        fairweight exemplars preds.parquet --dataset digits --images look

    Of numbers, the examples that lose most:

        fairweight exemplars f16.csv q4.csv --outcome errors --denominator words --better lower

    Writes `exemplars`, `exemplar_counts`, `exemplar_accuracy`, `exemplar_overlap`
    and `exemplar_surrogate` into DIR, as Parquet and CSV; of numbers `largest_losses`.
    """
    try:
        percentiles = [float(word) for word in o.split_names(percentile, "--percentile") or []]
    except ValueError:
        raise InputError(
            f"--percentile {percentile!r} cannot be used; give numbers with commas: 90,95,99"
        ) from None
    known = ("exemplars.parquet", "exemplars.csv", "largest_losses.parquet", "largest_losses.csv")
    check_folder(out, inputs=tables.paths, overwrite=overwrite, names=known)
    if images is not None:
        check_folder(images, inputs=tables.paths, overwrite=overwrite, names=("manifest.csv",))
        if Path(images).resolve() == Path(out).resolve():
            raise InputError(f"--images and --out are both '{out}'; give each its own folder.")
    with bar() as progress:
        found = fw.api.exemplars(
            tables,
            options,
            variants=o.split_names(variant, "--variant"),
            kinds=read_names(kind, "--kind"),
            percentiles=percentiles,
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
    if quiet:
        return
    from fairweight.auditing.exemplars.largest_losses import LargestLosses

    if isinstance(found, LargestLosses):
        _show_losses(found, out)
    else:
        _show_exemplars(found, out, images, most_images)


def _show_losses(found: LargestLosses, out: str) -> None:
    """Print the examples that lose most, of every variant and task."""
    several = found.rows["task"].nunique() > 1
    heads = ("task", "variant") if several else ("variant",)
    numbers = ("loss", "baseline", "compressed")
    table = listing(*heads, "example", *numbers, "of all losses", numbers=numbers)
    table.columns[len(heads)].overflow = "fold"  # identities often differ at their end
    for _, rows in found.rows.groupby([*heads], sort=False, dropna=False):
        for row in rows.head(SHOWN).to_dict("records"):
            table.add_row(
                *(str(row[head]) for head in heads),
                str(row["example_id"]),
                *(f"{row[name]:.4g}" for name in numbers),
                f"{row['share_of_losses']:.0%}",
            )
    console = plain_console()
    console.print(table)
    console.print(
        "loss: what the example adds to the loss of all, whose mean it has; of all losses: this "
        "one and all larger ones.",
        style="dim",
    )
    for note in found.notes:
        console.print(note)
    console.print(f"Written to {out}: {len(found.rows):,} examples")


def _show_exemplars(found: Exemplars, out: str, images: str | None, most: int) -> None:
    """Print how many exemplars of each kind there are, and where they and their images are."""
    formats = {
        "exemplars": ("n_exemplars", ",.0f"),
        "share": ("share", ".2%"),
        "at floor's size": ("matched", ".2%"),
        "floor": ("floor", ".2%"),
        "p": ("p_retraining", ".3f"),
    }
    several_tasks = found.counts["task"].nunique() > 1
    heads = ("task", "variant", "kind") if several_tasks else ("variant", "kind")
    table = listing(*heads, *formats, numbers=formats)
    notes: dict[str, list[str]] = {}
    for row in found.counts.to_dict("records"):
        if not isnan(row["percentile"]):
            row["kind"] = f"{row['kind']} {row['percentile']:g}"
        names = [str(row[head]) for head in heads]
        if row["status"] != "ok":
            notes.setdefault(str(row["status"]), []).append(" ".join(names))
        numbers = [(row[column], how) for column, how in formats.values()]
        table.add_row(
            *names, *("" if x is None or isnan(x) else format(x, how) for x, how in numbers)
        )
    console = plain_console()
    console.print(table)
    console.print(
        "floor: the share that two halves of the dense members give; at floor's size: the same "
        "with as many compressed members; p: relabelling of members.",
        style="dim",
    )
    for note, rows in notes.items():
        console.print(f"{', '.join(rows)}: {note}.")
    console.print(f"Written to {out}")
    if images is not None:
        number = sum(len(one.exemplars) + len(one.others) for one in found.images)
        told = f"{number:,} images in {images}"
        if cut := sum(len(one.exemplars) == most for one in found.images):
            told += f"; at most {most:,} exemplars each (--most-images), reached by {cut}"
        if missing := sum(one.missing for one in found.images):
            told += f"; {missing:,} fewer others: there are not enough with these labels"
        console.print(told)


@o.takes
def preflight(
    files: o.Files,
    tables: Annotated[TableSpec, o.without("variants", "count", "positive")],
    options: Annotated[AuditOptions, o.only("alpha", "min_group")],
    out: Annotated[
        str | None,
        o.OUTPUT("Write `preflight.csv`, `preflight_examples.csv` and the evidence here.", "DIR"),
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
    if out is not None:
        check_folder(out, inputs=tables.paths, overwrite=overwrite, names=("preflight.csv",))
    found = fw.api.preflight(tables, options)
    if out is not None:
        found.save(out, overwrite=overwrite)
    if not quiet:
        with reader_may_leave():
            _show_risks(found, plain_console(), out)


def _show_risks(found: Preflight, console: Console, out: str | None) -> None:
    """Print who is at risk, at each level, and what the score was worth in past studies."""
    members = "1 dense model" if found.n_members == 1 else f"{found.n_members} dense models"
    examples = "1 example" if found.n_examples == 1 else f"{found.n_examples:,} examples"
    console.print(f"{members}, {examples}: who is at risk when it is compressed")
    for level, title in TITLES.items():
        score = found.chosen.get(level)
        if score is None:
            continue
        console.print()
        console.print(Text(f"{title}, by {score.replace('_', ' ')}", style="bold"))
        held = found.support[level]
        if held.n_studies:
            what = "rank correlation with excess loss"
            if level == "example":
                what = "AUC for lost predictions"
            limits = "" if isnan(held.low) else f" ({held.low:.2f} to {held.high:.2f})"
            studies = "1 study" if held.n_studies == 1 else f"{held.n_studies} studies"
            end = f" Cannot tell: {held.reason}." if held.reason else ""
            console.print(f"Evidence: {what} {held.value:.2f}{limits} in {studies}.{end}")
        else:
            console.print("Evidence: none, no study has tried this score. Cannot tell.")
        if level == "example":
            table = listing("example", "label", "prediction", score.replace("_", " "))
            most = found.examples.dropna(subset=[score])
            most = most.sort_values(score, ascending=False, kind="stable").head(SHOWN)
            for row in most.to_dict("records"):
                task = "" if row["task"] is None else f" ({row['task']})"
                cells = (f"{row['example_id']}{task}", str(row["label"]), str(row["prediction"]))
                table.add_row(*cells, _digits(row[score]))
            console.print(table)
        else:
            console.print(_parts_at_risk(found, level, score))
    for note in found.notes:
        console.print(note)
    if out is not None:
        console.print(f"Tables: {out}")


def _parts_at_risk(found: Preflight, level: str, score: str) -> Table:
    """The attributes, classes or groups that lie furthest beyond the others."""
    parts = found.parts
    rows = parts[(parts["by"] == level) & (parts["score"] == score)].sort_values(
        "excess", ascending=False, kind="stable"
    )
    told = found.support[level].reason  # said once, above the table
    confidence = f"{100 * (1 - found.alpha):g} %"
    table = listing(level, "n", "score", f"{confidence} interval", "beyond others", "verdict", "")
    for row in rows.head(SHOWN).to_dict("records"):
        name = row["task"] if level == "attribute" else row[level]
        if level != "attribute" and row["task"] is not None:
            name = f"{name} ({row['task']})"
        table.add_row(
            str(name),
            f"{row['n']:,}",
            _digits(row["value"]),
            _digits(row["low"], row["high"]),
            _digits(row["excess_low"], row["excess_high"]),
            row["verdict"],
            "" if row["status"] in ("ok", told) else row["status"],
        )
    if len(rows) > SHOWN:
        table.caption = f"{len(rows) - SHOWN:,} more: --out DIR writes all"
    return table


def _digits(*numbers: float) -> str:
    """A number, or the two ends of an interval, with three digits."""
    return "—" if isnan(numbers[0]) else " to ".join(f"{number:.3f}" for number in numbers)
