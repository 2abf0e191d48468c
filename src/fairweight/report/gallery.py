"""Exemplars to look at and to judge in the page itself: an auditor needs only a browser."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fairweight.auditing.exemplars.in_turn import in_turn
from fairweight.report.numbers import missing, number
from fairweight.report.rows import records
from fairweight.tables.annotations.csv_file import COLUMNS
from fairweight.tables.annotations.verdict import KEYS, VERDICTS, WITHOUT_LABEL
from fairweight.tables.names import split_grouping

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

MOST = 200
_SCRIPTS = ("annotation_csv.js", "annotation_log.js", "gallery.js")
Row = dict[str, Any]
Key = tuple[str, str]  # task (empty for a single one), example


@dataclass(frozen=True)
class Answer:
    """What one compressed variant made of an exemplar."""

    variant: str
    answer: str
    votes: str
    distance: str


@dataclass(frozen=True)
class Card:
    """One exemplar, of one variant or of several."""

    example_id: str
    task: str
    label: str
    dense: str
    dense_votes: str
    answers: tuple[Answer, ...]
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

    cards: tuple[Card, ...]
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
    images = _images(result)
    chosen = _chosen(table, images)
    rows: dict[Key, dict[str, Row]] = {}
    for row in records(table[table["example_id"].astype(str).isin({key[1] for key in chosen})]):
        rows.setdefault(_key(row), {})[str(row["variant"])] = row
    cards = tuple(_card(result, key, rows[key], images.get(key)) for key in chosen)
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
    return Gallery(cards, n_exemplars, tuple(variants), tuple(tasks), tuple(labels), verdicts, data)


def gallery_scripts(shown: Gallery | None) -> list[str]:
    """The scripts of the gallery; none without one."""
    return [] if shown is None else ["\n".join(_resource(name) for name in _SCRIPTS)]


def gallery_style(shown: Gallery | None) -> str:
    """The style of the gallery; none without one."""
    return "" if shown is None else _resource("gallery.css")


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


def _chosen(table: pd.DataFrame, images: Mapping[Key, str]) -> list[Key]:
    """The first of every variant and task in turn: modal ones, then the furthest apart."""
    lists: dict[tuple[str, str], list[Key]] = {}
    for modal in (True, False):  # each in the order of the table, the furthest apart first
        for row in records(table[table["modal"] == modal], ("variant", "task", "example_id")):
            key = _key(row)
            own = lists.setdefault((str(row["variant"]), key[0]), [])
            if len(own) < MOST and (not images or key in images):
                own.append(key)
    return in_turn(lists.values(), MOST)


def _images(result: AuditResult) -> dict[Key, str]:
    table = result.explanations.get("exemplar_images")
    if table is None:
        return {}
    found = {_key(row): str(row["image"]) for row in records(table[table["part"] != "gallery"])}
    # Thumbnails replace large images; an audit.json of an earlier version has none.
    small = records(table[table["part"] == "gallery"])
    return {_key(row): str(row["image"]) for row in small} or found


def _key(row: Row) -> Key:
    return ("" if missing(row["task"]) else str(row["task"]), str(row["example_id"]))


def _card(result: AuditResult, key: Key, own: Mapping[str, Row], image: str | None) -> Card:
    first = next(iter(own.values()))
    groups = {
        name: "—" if missing(first[name]) else str(first[name])
        for name in (split_grouping(grouping)[0] for grouping in result.single_columns)
        if name in first
    }
    return Card(
        key[1],
        key[0],
        str(first["label"]),
        str(first["modal_baseline"]),
        str(first["votes_baseline"]),
        tuple(
            Answer(
                variant,
                str(own[variant]["modal_compressed"]),
                str(own[variant]["votes_compressed"]),
                "—" if missing(own[variant]["distance"]) else number(own[variant]["distance"]),
            )
            for variant in result.variants
            if variant in own
        ),
        groups,
        image if image is not None and image.startswith("data:image/") else None,
    )


def _resource(name: str) -> str:
    return (files("fairweight.report") / "templates" / name).read_text(encoding="utf-8")
