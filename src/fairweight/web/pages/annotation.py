"""What people said: progress, agreement, and the file to take along."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from fairweight.base.wording import shown
from fairweight.errors import InputError
from fairweight.tables.annotations import (
    KEYS,
    VERDICTS,
    Annotation,
    Of,
    agreement,
    human_labels,
    label_for,
    now,
    read_csv,
    to_csv,
)
from fairweight.web.cards import Given
from fairweight.web.items import requested
from fairweight.web.page import PROBLEMS, OfItem, OfSite, add_page
from fairweight.web.pages.examples import place_of
from fairweight.web.problems import Problem
from fairweight.web.rendering import as_json, of_item
from fairweight.web.security import CSRF_HEADER
from fairweight.web.site import Site

RECENT = 50
LABELS = ("--labels", "annotations.csv", "--budget", "1")


@dataclass(frozen=True)
class KindCount:
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
    verdicts: list[KindCount]
    annotators: list[KindCount]
    agreement: list[Agreed]
    n_labels: int
    n_tied: int
    n_without: int
    recent: list[Row]
    export: str
    overrides: str  # the command that uses every label


def progress(site: OfSite, item: OfItem) -> AnnotationsPage:
    """How far the annotation is, how far people agree, and what they said last."""
    rows = site.annotated.current(item.key)
    by_verdict = Counter(row.verdict for row in rows)
    labels = human_labels(rows)
    of: tuple[Of, Of] = ("verdict", "label")
    agreed = []
    for what in of:
        found = agreement(rows, what)
        raw, kappa = (None if math.isnan(v) else v for v in (found.raw, found.kappa))
        agreed.append(
            Agreed(
                what, found.method, found.n_annotators, found.n_examples, raw, kappa,
                shown(found.reason),
            )
        )  # fmt: skip
    asked = None if item.audit_json is None else requested(item.audit_json)
    tables = ["PREDICTIONS"] if asked is None else asked.arguments()
    recent = []
    for row in reversed(rows[-RECENT:]):
        link = of_item(item.key, "example", id=row.example_id, task=row.task or None)
        recent.append(Row(row.example_id, row.task, Given.of(row), link))
    return AnnotationsPage(
        key=item.key,
        n_annotated=len({(row.task, row.example_id) for row in rows}),
        n_examples=sum(task.n_examples for task in site.index(item).tasks),
        verdicts=[KindCount(name, by_verdict[name], text) for name, text in VERDICTS.items()],
        annotators=[KindCount(*pair) for pair in Counter(row.annotator for row in rows).items()],
        agreement=agreed,
        n_labels=sum(len(own) for own in labels.labels.values()),
        n_tied=labels.n_tied,
        n_without=labels.n_without,
        recent=recent,
        export=of_item(item.key, "annotations.csv"),
        overrides=shlex.join(["fairweight", "mitigate", "overrides", *tables, *LABELS]),
    )


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


# Writing: a verdict, its undoing, a file of verdicts.

LONGEST_NAME, LONGEST_NOTE = 200, 10_000
WRITE_PROBLEMS = PROBLEMS | {
    403: {"model": Problem, "description": "Not from this server's pages, or read-only."},
    413: {"model": Problem, "description": "The request is too large."},
}
Annotator = Annotated[str, Field(max_length=LONGEST_NAME, description="Who says it.")]


class AnnotationInput(BaseModel):
    """What somebody says about one example."""

    example_id: Annotated[str, Field(max_length=10_000)]
    task: Annotated[str, Field(max_length=10_000)] = ""
    verdict: Annotated[str, Field(description=f"One of {', '.join(VERDICTS)}.")]
    label: Annotated[
        str, Field(max_length=LONGEST_NAME, description="The right label, for label_wrong.")
    ] = ""
    note: Annotated[str, Field(max_length=LONGEST_NOTE)] = ""
    annotator: Annotator = ""


class Undo(BaseModel):
    """Whose last verdict is taken back."""

    annotator: Annotator = ""


@dataclass(frozen=True)
class Saved:
    """What is on the disk now; `n_annotated` examples have a verdict."""

    example_id: str
    task: str
    given: list[Given]
    n_annotated: int


@dataclass(frozen=True)
class Undone:
    """What was taken back (null: there was nothing), and what is said of that example now."""

    undone: Given | None
    example_id: str | None
    task: str | None
    given: list[Given]
    n_annotated: int


@dataclass(frozen=True)
class Imported:
    """How many verdicts were in the file, new, and about examples that are not here."""

    n_rows: int
    n_new: int
    n_unknown: int


@dataclass(frozen=True)
class Session:
    """What a program needs to write: the secret of `X-CSRF-Token`, and the keys."""

    csrf: str
    csrf_header: str
    writable: bool
    keys: dict[str, str]
    verdicts: dict[str, str]


@router.get("/session.json", summary="What is needed to write", response_model=Session)
def session(site: OfSite) -> Any:
    """The secret that writes must carry; no other site can read it."""
    return as_json(Session(site.csrf, CSRF_HEADER, site.settings.writable, KEYS, VERDICTS))


@router.post(
    "/audit/{key}/annotate", summary="Keep a verdict", response_model=Saved,
    responses=WRITE_PROBLEMS,
)  # fmt: skip
def annotate(site: OfSite, item: OfItem, said: AnnotationInput) -> Any:
    """Keep a verdict; it is on the disk when the answer comes."""
    votes = site.index(item).task(said.task or None)
    place = place_of(votes, said.example_id)
    recorded = votes.head.classes[int(votes.label[place])]
    kept = Annotation(
        example_id=said.example_id,
        verdict=said.verdict,
        task=votes.head.name or "",
        label=label_for(said.verdict, recorded, said.label.strip()),
        note=said.note,
        annotator=said.annotator.strip(),
        time=now(),
    )
    site.annotated.store().add(kept, item.key)
    given, n_annotated = _now(site, item.key, kept.example_id, kept.task)
    return as_json(Saved(kept.example_id, kept.task, given, n_annotated))


@router.post(
    "/audit/{key}/undo", summary="Take back a verdict", response_model=Undone,
    responses=WRITE_PROBLEMS,
)  # fmt: skip
def undo(site: OfSite, item: OfItem, who: Undo) -> Any:
    """Take back what somebody said last; what was said before it holds again."""
    taken = site.annotated.store().undo(who.annotator.strip(), item.key)
    if taken is None:
        return as_json(Undone(None, None, None, [], _now(site, item.key, "", "")[1]))
    given, n_annotated = _now(site, item.key, taken.example_id, taken.task)
    return as_json(Undone(Given.of(taken), taken.example_id, taken.task, given, n_annotated))


async def csv_body(request: Request) -> bytes:
    """The file that was sent."""
    return await request.body()


@router.post(
    "/audit/{key}/import", summary="Import annotations.csv", response_model=Imported,
    responses=WRITE_PROBLEMS,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"text/csv": {"schema": {"type": "string"}}},
        }
    },
)  # fmt: skip
def import_file(site: OfSite, item: OfItem, body: Annotated[bytes, Depends(csv_body)]) -> Any:
    """Add the verdicts of a file that the report or another viewer wrote; twice changes nothing."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"The file is not UTF-8 (byte {error.start}); save it as UTF-8 and import it again."
        ) from None
    rows = read_csv(text, "The file")
    tasks = site.index(item).tasks
    names = {row.example_id for row in rows}
    here = {task.head.name or "": task.known(names) for task in tasks}
    only = next(iter(here)) if len(here) == 1 else ""  # a single task need not be named
    known = [row for row in rows if row.example_id in here.get(row.task or only, ())]
    n_new = site.annotated.store().import_rows(known, item.key) if known else 0
    return as_json(Imported(len(rows), n_new, len(rows) - len(known)))


def _now(site: Site, key: str, example_id: str, task: str) -> tuple[list[Given], int]:
    """What is said of an example, and how many have a verdict at all."""
    rows = site.annotated.current(key)
    own = [Given.of(row) for row in rows if (row.example_id, row.task) == (example_id, task)]
    return own, len({(row.task, row.example_id) for row in rows})
