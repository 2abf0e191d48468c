"""What people said: progress, agreement, and the file to take along."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.responses import Response

from fairweight.report.numbers import shown
from fairweight.tables.annotations.agreement import Of, agreement
from fairweight.tables.annotations.csv_file import to_csv
from fairweight.tables.annotations.human_labels import human_labels
from fairweight.tables.annotations.verdict import VERDICTS, Annotation
from fairweight.web.addresses import of_item
from fairweight.web.cards import Given
from fairweight.web.page import PROBLEMS, OfItem, OfSite, add_page

RECENT = 50


@dataclass(frozen=True)
class Counted:
    """So many of one kind."""

    name: str
    n: int
    meaning: str = ""


@dataclass(frozen=True)
class Agreed:
    """Agreement between annotators; null with a reason where it is undefined."""

    of: str
    method: str
    n_annotators: int
    n_examples: int
    raw: float | None
    kappa: float | None
    reason: str


@dataclass(frozen=True)
class Row:
    """One annotation and the page of its example."""

    example_id: str
    task: str
    given: Given
    link: str


@dataclass(frozen=True)
class AnnotationsPage:
    """Progress and agreement of the annotation of one study."""

    key: str
    n_annotated: int
    n_examples: int
    verdicts: list[Counted]
    annotators: list[Counted]
    agreement: list[Agreed]
    n_labels: int
    n_tied: int
    n_without: int
    recent: list[Row]
    export: str


def progress(site: OfSite, item: OfItem) -> AnnotationsPage:
    """How far the annotation is, how far people agree, and what they said last."""
    rows = site.annotated.current(item.key)
    by_verdict = Counter(row.verdict for row in rows)
    labels = human_labels(rows)
    of: tuple[Of, Of] = ("verdict", "label")
    return AnnotationsPage(
        key=item.key,
        n_annotated=len({(row.task, row.example_id) for row in rows}),
        n_examples=sum(task.n_examples for task in site.index(item).tasks),
        verdicts=[Counted(name, by_verdict[name], text) for name, text in VERDICTS.items()],
        annotators=[Counted(*pair) for pair in Counter(row.annotator for row in rows).items()],
        agreement=[_agreed(rows, what) for what in of],
        n_labels=sum(len(own) for own in labels.labels.values()),
        n_tied=labels.n_tied,
        n_without=labels.n_without,
        recent=[_row(item.key, row) for row in reversed(rows[-RECENT:])],
        export=of_item(item.key, "annotations.csv"),
    )


def _agreed(rows: list[Annotation], of: Of) -> Agreed:
    found = agreement(rows, of)
    raw, kappa = (None if math.isnan(v) else v for v in (found.raw, found.kappa))
    return Agreed(
        of, found.method, found.n_annotators, found.n_examples, raw, kappa, shown(found.reason)
    )


def _row(key: str, row: Annotation) -> Row:
    given = Given(row.verdict, row.label, row.note, row.annotator, row.time)
    link = of_item(key, "example", id=row.example_id, task=row.task or None)
    return Row(row.example_id, row.task, given, link)


router = APIRouter(tags=["annotations"])
add_page(router, "/audit/{key}/annotations", progress, "annotations.html.j2", summary="Progress")


@router.get(
    "/audit/{key}/annotations.csv",
    summary="Annotations as a file",
    response_class=Response,
    responses=PROBLEMS | {200: {"content": {"text/csv": {}}}},
)
def export(site: OfSite, item: OfItem) -> Response:
    """What everybody says now, as `mitigate overrides --labels` reads it."""
    return Response(
        to_csv(site.annotated.current(item.key)),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="annotations.csv"'},
    )
