"""The gallery of exemplars: which cards, in which order, and what a browser keeps them under."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from fairweight.auditing.result import AuditResult
from fairweight.data.codecs import MOST_BYTES
from fairweight.report.examples import MOST, audit_digest, gallery
from fairweight.report.html import embedded, render
from fairweight.tables.annotations import COLUMNS

from .conftest import HOSTILE, build

PIXEL = "data:image/png;base64,AA=="


def exemplar(variant: str, example: str, *, modal: bool = True, **more: Any) -> dict[str, Any]:
    return {
        "example_id": example, "task": None, "variant": variant, "label": "3", "distance": 0.5,
        "modal": modal, "modal_baseline": "3", "modal_compressed": "5", "votes_baseline": "3 10",
        "votes_compressed": "5 6, 3 4", "sex": "Female", **more,
    }  # fmt: skip


def with_exemplars(
    audit: AuditResult, rows: list[dict[str, Any]], images: dict[str, str] | None = None
) -> AuditResult:
    tables = {"exemplars": pd.DataFrame(rows)}
    if images is not None:
        shown = [
            {"variant": "int8", "task": None, "part": "gallery", "example_id": i, "label": "3",
             "modal_baseline": "3", "modal_compressed": "5", "image": uri}
            for i, uri in images.items()
        ]  # fmt: skip
        tables["exemplar_images"] = pd.DataFrame(shown)
    return replace(audit, explanations=tables)


@pytest.fixture(scope="module")
def plain() -> AuditResult:
    return replace(build(), explanations={}, variants=("int8", "pruned"), single_columns=("sex",))


def test_without_exemplars_there_is_no_gallery(plain: AuditResult) -> None:
    assert gallery(plain) is None
    assert gallery(replace(plain, explanations={"exemplars": pd.DataFrame()})) is None
    assert gallery(with_exemplars(plain, [exemplar("int8", "a")])) is not None


def test_variants_take_turns_and_modal_ones_come_first(plain: AuditResult) -> None:
    rows = [
        exemplar("int8", "a", modal=False), exemplar("int8", "b"), exemplar("int8", "c"),
        exemplar("pruned", "c"), exemplar("pruned", "d", distance=0.25),
    ]  # fmt: skip
    shown = gallery(with_exemplars(plain, rows))
    assert shown is not None
    assert [card.example_id for card in shown.cards] == ["b", "c", "d", "a"]
    both = shown.cards[1]
    assert [answer.variant for answer in both.answers] == ["int8", "pruned"]
    assert (both.label, both.dense, both.answers[0].answer) == ("3", "3", "5")
    assert shown.cards[2].answers[0].distance == "0.250"
    assert shown.cards[2].groups == {"sex": "Female"}
    assert all(card.image is None for card in shown.cards)
    assert shown.n_exemplars == 4


def test_only_so_many_are_shown_and_those_with_a_picture(plain: AuditResult) -> None:
    rows = [exemplar("int8", f"e{i}") for i in range(MOST + 50)]
    shown = gallery(with_exemplars(plain, rows))
    assert shown is not None
    assert (len(shown.cards), shown.n_exemplars) == (MOST, MOST + 50)
    few = gallery(with_exemplars(plain, rows, {"e7": PIXEL, "e9": "javascript:alert(1)"}))
    assert few is not None
    assert [(card.example_id, card.image) for card in few.cards] == [("e7", PIXEL), ("e9", None)]


def test_the_script_gets_names_as_they_are(plain: AuditResult) -> None:
    long = "x" * 10_000
    rows = [exemplar("int8", "<b>\x00", label="3"), exemplar("int8", long)]
    shown = gallery(with_exemplars(plain, rows))
    assert shown is not None
    held = json.loads(embedded(shown.data))
    assert [card["example_id"] for card in held["cards"]] == ["<b>\x00", long]
    assert tuple(held["columns"]) == COLUMNS
    assert held["keys"]["w"] == "label_wrong"


def test_names_are_text_on_the_page() -> None:
    hostile = build(HOSTILE)
    name = hostile.variants[0]
    evil = "</script><img src=x onerror=alert(1)>"
    page = render(with_exemplars(hostile, [exemplar(name, evil, label=evil)]))
    assert 'id="gallery-data"' in page
    assert evil not in page
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in page


def test_two_hundred_of_the_largest_thumbnails_leave_the_page_below_five_megabytes() -> None:
    audit = build()
    largest = "data:image/jpeg;base64," + "A" * (4 * -(-MOST_BYTES // 3))
    rows = [exemplar(audit.variants[0], f"e{i}") for i in range(MOST)]
    page = render(with_exemplars(audit, rows, {f"e{i}": largest for i in range(MOST)}))
    assert page.count(largest) == MOST
    assert len(page.encode()) < 5_000_000


def test_a_browser_keeps_verdicts_under_the_inputs_of_the_audit(plain: AuditResult) -> None:
    origin = replace(
        plain.provenance, inputs=({"name": "a.csv", "sha256": "ab12", "rows": 3},), created="then"
    )
    known = replace(plain, provenance=origin)
    later = replace(known, provenance=replace(origin, created="now", command="again"))
    assert audit_digest(known) == audit_digest(later)
    other = replace(known, provenance=replace(origin, inputs=({"name": "a.csv", "sha256": "f"},)))
    assert audit_digest(known) != audit_digest(other)
    frame = ({"name": "a frame", "sha256": None, "rows": 3},)
    first, second = (
        replace(known, provenance=replace(origin, inputs=frame, created=when))
        for when in ("then", "now")
    )
    assert audit_digest(first) != audit_digest(second)
