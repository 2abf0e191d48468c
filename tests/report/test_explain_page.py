"""The section "Which examples, and why" of the report."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.page_figures import figures_of

from fairweight.auditing.result import AuditResult
from fairweight.report.examples import LIMIT, explanation
from fairweight.report.figures import figures
from fairweight.report.html import render
from fairweight.report.view_model import view

TITLE = "Which examples, and why"


@pytest.fixture(scope="module")
def page(hostile_explained: AuditResult) -> str:
    return render(hostile_explained)


def test_an_ordinary_report_knows_nothing_of_it(population: AuditResult) -> None:
    assert explanation(population, view(population), {}) is None
    text = render(replace(population, variants=population.variants[:1]))
    assert TITLE not in text
    for figure in figures():
        if figure.explains:
            assert f">{figure.id}<" not in text


def test_the_section_holds_sentences_figures_and_tables(page: str) -> None:
    section = page[page.index('<section id="examples"') : page.index('<section id="figures"')]
    words = re.sub(r"<[^>]+>", "", section)
    assert "n 40 of 4,000 examples (1.0 %) " in words
    assert "o slice lost clearly more than the rest" in words
    assert "association in these data, not cause" in words
    drawn = re.findall(r'data-figure="([^"]+)"', section)
    told = [f for f in figures() if f.explains]
    assert len(drawn) == sum(1 if figure.once else 2 for figure in told)
    assert set(drawn) <= set(figures_of(page))
    assert "Not drawn: " not in words


def test_names_are_text_and_every_anchor_is_linked(page: str) -> None:
    section = page[page.index('<section id="examples"') : page.index('<section id="figures"')]
    assert "<script>alert(" not in section
    assert "&lt;script&gt;alert(" in section
    anchors = re.findall(r'<details[^>]* id="([^"]+)"', section)
    assert len(anchors) > 15
    assert len(anchors) == len(set(anchors))
    for anchor in anchors:
        assert f'href="#{anchor}"' in page


def test_long_tables_show_their_first_rows(explained: AuditResult) -> None:
    made = explanation(explained, view(explained), {})
    assert made is not None
    rows = made.tables["explanation-class-rows"]
    assert len(rows.rows) == LIMIT
    assert rows.cut == (
        "The 50 rows that come first are shown; all 400 rows are in tables/class_rows.parquet."
    )
    assert not any("image" in anchor for anchor in made.tables)


def test_what_is_absent_is_said_once(explained: AuditResult) -> None:
    only = {"slices": explained.explanations["slices"]}
    alone = replace(explained, explanations=only)
    made = explanation(alone, view(alone), {})
    assert made is not None
    ids = [figure.id for figure in made.absent]
    assert len(ids) == len(set(ids))
    assert {"HK-T1", "PA-F1", "SS-F1"} <= set(ids)
    drawn = {figure.id for group in made.groups for figure in group.figures}
    without_tables = {"HK-T4", "HK-F1", "PA-F6", "PA-F3a", "PA-F3b", "PA-F3c", "SS-T2", "SS-T3"}
    assert drawn == without_tables
