"""The page's section about examples, where an audit has any: figures, tables and a gallery."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from fairweight.auditing.exemplars.table import in_turn
from fairweight.auditing.result import records
from fairweight.base.wording import missing, shown
from fairweight.report.figures import Spec, figures
from fairweight.report.figures.registry import DrawnFigure, draw_figure
from fairweight.report.members import members_of, worded
from fairweight.report.numbers import count, number, p_value, percent, points
from fairweight.report.sentences import capitalised
from fairweight.report.view_tables import Cell, ShownTable, finite, frame_table, name_cell
from fairweight.tables.annotations import COLUMNS, KEYS, VERDICTS, WITHOUT_LABEL
from fairweight.tables.names import split_grouping

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult
    from fairweight.report.view_model import View

# Sentences, figures and tables about examples.

LIMIT = 50
Row = dict[str, Any]
TITLES = {
    "exemplar_counts": "Number of exemplars",
    "exemplar_accuracy": "Accuracy on exemplars",
    "exemplar_overlap": "Exemplars that variants share",
    "exemplar_surrogate": "The surrogate of one pair",
    "enrichment": "Classes and groups among exemplars",
    "exemplars": "Exemplars",
    "largest_losses": "Largest losses",
    "risk": "Risk from the dense models alone",
    "slices": "Slices",
    "sensitivity": "Units of the network",
    "mixed_precision": "Mixed precision beside others of its size",
    "mixed_precision_steps": "Units that returned to float",
    "example_properties": "Properties of lost examples",
    "individuals": "Individuals",
    "individual_fits": "Lines through individuals",
    "class_coefficients": "What goes with the accuracy of a class",
    "class_fits": "Models of class accuracies",
    "class_rows": "Accuracies of classes over models",
    "class_residuals": "Residuals of class accuracies",
    "bias_regression": "Bias amplification, compressed on dense",
    "label_interrelation": "Label interrelation",
    "similarity": "Bias against the distance of representations",
    "similarity_points": "Distances of representations",
    "mitigation": "What a mitigation changed",
    "override_curves": "Overrides by budget",
    "cascade_curve": "A cascade by threshold",
    "attributes": "Bias of every attribute",
    "settings": "Bias of attributes, settings side by side",
}
_IMAGES = ("exemplar_images", "tilt_example")  # drawn, and too large for cells
_SHARES = ("share", "accuracy", "baseline", "compressed", "uncertain", "floor", "matched")
_SHIFTS = ("shift", "excess", "recovered", "contrast", "against")
# Numbers in another unit: the floor of a distance, shifts of metrics of every kind.
_PLAIN = {("similarity_points", "floor"), ("attributes", "shift"), ("settings", "shift"),
          ("largest_losses", "baseline"), ("largest_losses", "compressed")}  # fmt: skip


@dataclass(frozen=True)
class FigureGroup:
    """Figures that are folded together."""

    anchor: str
    title: str
    figures: tuple[DrawnFigure, ...]
    open: bool


@dataclass(frozen=True)
class Explanation:
    """Everything that the section shows."""

    lines: dict[str, list[str]]  # by variant
    groups: tuple[FigureGroup, ...]
    absent: tuple[DrawnFigure, ...]
    tables: dict[str, ShownTable]  # by anchor


def explanation(
    result: AuditResult, view: View, specs: dict[str, Spec], variants: Sequence[str] | None = None
) -> Explanation | None:
    """The section, or None for an audit without exemplars and explanations.

    Figures are drawn of these variants (of all by default).
    """
    if not result.explanations:
        return None
    order = result.variants if variants is None else variants
    groups: list[FigureGroup] = []
    absent: dict[tuple[str, str | None], DrawnFigure] = {}
    for more in (False, True):  # findings first, then what is folded away
        own = [figure for figure in figures(explains=True) if figure.more == more]
        for variant in (None, *order):  # None: all variants together
            which, title = "all", "all variants together"
            if variant is not None:
                which = str(result.variants.index(variant) + 1)
                title = f"{shown(variant)} against {shown(result.baseline)}"
            anchor = f"examples-more-{which}" if more else f"examples-{which}"
            found = [
                draw_figure(result, figure, variant, f"{anchor}-{figure.id.lower()}", specs)
                for figure in own
                if figure.once == (variant is None)
            ]
            absent |= {(f.id, f.reason): f for f in found if f.reason is not None}
            kept = tuple(f for f in found if f.reason is None)
            if kept:
                title = f"More figures: {title}" if more else title
                opened = not more and variant in (None, *order[:1])
                groups.append(FigureGroup(anchor, title, kept, opened))
    tables: dict[str, ShownTable] = {}
    members = members_of(result)
    numeric = result.outcome is not None and not result.outcome.binary
    for name, frame in result.explanations.items():
        if name in _IMAGES or frame.empty:
            continue
        columns = [
            (str(column), worded(str(column).replace("_", " "), members),
             partial(_cell, name, numeric=numeric))
            for column in frame.columns
        ]  # fmt: skip
        title, file = TITLES.get(name, name.replace("_", " ")), f"tables/{name}.parquet"
        anchor = f"explanation-{name.replace('_', '-')}"
        tables[anchor] = frame_table(title, frame, columns, file, first=LIMIT)
    return Explanation(
        {
            "all models" if whose is None else shown(whose): [capitalised(s) for s in said]
            for whose, said in view.explained.items()
        },
        tuple(groups),
        tuple(absent.values()),
        tables,
    )


def _cell(table: str, row: Row, column: str, *, numeric: bool = False) -> Cell:
    """A value of a table as people read it; shifts of outcomes that are numeric have their unit.

    >>> [_cell("slices", {c: v}, c).shown for c, v in (("share_test", 0.25), ("p_value", 0.0001))]
    ['25.0 %', '< 0.001']
    """
    value = row[column]
    if isinstance(value, bool):
        return Cell("yes" if value else "no", float(value))
    if isinstance(value, str) or missing(value):
        return name_cell(value)
    found = float(value)
    if column.startswith("p_"):
        return Cell(p_value(found, bare=True), finite(found))
    # In the tables of attributes a shift is one of the row's own metric.
    if column.startswith(_SHIFTS) and (table, column) not in _PLAIN and not numeric:
        return Cell(points(found), finite(found))
    is_share = column.startswith(_SHARES) and (table, column) not in _PLAIN and abs(found) <= 1
    if is_share and column != "accuracy0_quartile":
        return Cell(percent(found), finite(found))
    whole = found.is_integer() and (column.startswith("n") or not isinstance(value, float))
    return Cell(count(found) if whole else number(found), finite(found))


# Exemplars to look at and to judge in the page itself: an auditor needs only a browser.

MOST = 200
GALLERY_SCRIPTS = ("annotation_csv.js", "annotation_log.js", "gallery.js")
Key = tuple[str, str]  # task (empty for a single one), example


@dataclass(frozen=True)
class ExemplarAnswer:
    """What one compressed variant made of an exemplar."""

    variant: str
    answer: str
    votes: str
    distance: str


@dataclass(frozen=True)
class GalleryCard:
    """One exemplar, of one variant or of several."""

    example_id: str
    task: str
    label: str
    dense: str
    dense_votes: str
    answers: tuple[ExemplarAnswer, ...]
    groups: dict[str, str]
    image: str | None


@dataclass(frozen=True)
class Gallery:
    """Everything that the part of the page needs.

    Parameters
    ----------
    n_exemplars
        How many there are in all; `cards` are the first of each variant in turn.
    data
        For the script: what must not be shortened, as text is for people.
    """

    cards: tuple[GalleryCard, ...]
    n_exemplars: int
    variants: tuple[str, ...]
    tasks: tuple[str, ...]
    labels: tuple[str, ...]
    verdicts: Mapping[str, tuple[str, str]]  # key → verdict, what it says
    data: dict[str, Any]


def gallery(result: AuditResult) -> Gallery | None:
    """The gallery, or None for an audit without exemplars."""
    table = result.explanations.get("exemplars")
    if table is None or table.empty:
        return None
    images: dict[Key, str] = {}
    pictures = result.explanations.get("exemplar_images")
    if pictures is not None:
        # Thumbnails replace large images; an audit.json of an earlier version has none.
        small = pictures[pictures["part"] == "gallery"]
        images = {_key(r): str(r["image"]) for r in records(small if len(small) else pictures)}
    # The first of every variant and task in turn: modal ones, then the furthest apart.
    lists: dict[tuple[str, str], list[Key]] = {}
    for modal in (True, False):  # each in the order of the table, the furthest apart first
        for row in records(table[table["modal"] == modal], ("variant", "task", "example_id")):
            key = _key(row)
            own = lists.setdefault((str(row["variant"]), key[0]), [])
            if len(own) < MOST and (not images or key in images):
                own.append(key)
    chosen = in_turn(lists.values(), MOST)
    rows: dict[Key, dict[str, Row]] = {}
    for row in records(table[table["example_id"].astype(str).isin({key[1] for key in chosen})]):
        rows.setdefault(_key(row), {})[str(row["variant"])] = row
    columns = [split_grouping(grouping)[0] for grouping in result.single_columns]
    cards = []
    for key in chosen:
        of, image = rows[key], images.get(key)
        first = next(iter(of.values()))
        said = {variant: of[variant] for variant in result.variants if variant in of}
        cards.append(
            GalleryCard(
                key[1],
                key[0],
                str(first["label"]),
                str(first["modal_baseline"]),
                str(first["votes_baseline"]),
                tuple(
                    ExemplarAnswer(
                        variant,
                        str(row["modal_compressed"]),
                        str(row["votes_compressed"]),
                        "—" if missing(row["distance"]) else number(row["distance"]),
                    )
                    for variant, row in said.items()
                ),
                {c: "—" if missing(first[c]) else str(first[c]) for c in columns if c in first},
                image if image is not None and image.startswith("data:image/") else None,
            )
        )
    variants = [v for v in result.variants if any(v == a.variant for c in cards for a in c.answers)]
    tasks = [task for task in result.tasks if any(card.task == task for card in cards)]
    labels = [name for name in result.classes if any(card.label == name for card in cards)]
    data = {
        "storage": f"fairweight-annotations-{audit_digest(result)}",
        "columns": COLUMNS,
        "keys": KEYS,
        "withoutLabel": WITHOUT_LABEL,
        "classes": result.classes,
        "variants": variants,
        "tasks": tasks,
        "labels": labels,
        "cards": [
            {
                "example_id": card.example_id,
                "task": card.task,
                "label": card.label,
                "variants": [answer.variant for answer in card.answers],
            }
            for card in cards
        ],
    }
    n_exemplars = len(table.drop_duplicates(["task", "example_id"]))
    verdicts = {key: (verdict, VERDICTS[verdict]) for key, verdict in KEYS.items()}
    return Gallery(
        tuple(cards), n_exemplars, tuple(variants), tuple(tasks), tuple(labels), verdicts, data
    )


def audit_digest(result: AuditResult) -> str:
    """A name of the audit under which a browser keeps its annotations.

    The same inputs and options have the same name, so that a report made once more still has
    them; where an input has no checksum, the time of the audit is a part of it.
    """
    origin = result.provenance
    unknown = not origin.inputs or any(not given.get("sha256") for given in origin.inputs)
    facts = [
        [given.get("sha256") for given in origin.inputs],
        origin.options,
        [result.baseline, result.variants, result.tasks, result.classes],
        origin.created if unknown else None,
    ]
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _key(row: Row) -> Key:
    """The task and the example that a row is about."""
    return ("" if missing(row["task"]) else str(row["task"]), str(row["example_id"]))
