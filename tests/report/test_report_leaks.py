"""A teacher that saw more than its student: said wherever the variant is spoken of."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from fairweight.auditing.result import AuditResult
from fairweight.report.finding import find
from fairweight.report.html import render
from fairweight.report.notebook import fragment
from fairweight.report.sentences import sentences
from fairweight.report.terminal import show

LEAK = "The teacher saw 2,900 training examples that this model's training set leaves out."


@pytest.fixture(scope="module")
def leaking(population: AuditResult) -> AuditResult:
    table = population.variants_table
    assert table is not None
    told = table.assign(leak=[LEAK if v == "int8" else None for v in table["variant"]])
    return replace(population, variants_table=told)


def test_a_leak_is_said_of_its_variant_only(leaking: AuditResult) -> None:
    said = [s.text for s in sentences(find(leaking, "int8")) if s.topic == "leak"]
    assert said == [LEAK]
    assert find(leaking, "pruned-90").leak is None
    assert not [s for s in sentences(find(leaking, "pruned-90")) if s.topic == "leak"]


def test_the_page_says_it_at_the_top_and_in_the_section(leaking: AuditResult) -> None:
    page = render(leaking).replace("&#39;", "'")
    main = page[page.index('<main id="main">') :]
    top, *variants = main.split('<details class="variant" id="')
    assert f"Leak in int8: {LEAK}" in top
    own = {text.partition('"')[0]: text for text in variants}
    assert LEAK in own["variant-1"]
    assert LEAK not in own["variant-2"]


def test_an_ordinary_page_has_no_such_place(population: AuditResult) -> None:
    assert 'class="leaks"' not in render(population)


def test_terminal_and_notebook_say_it(leaking: AuditResult) -> None:
    out = StringIO()
    show(leaking, Console(file=out, width=200))
    text = out.getvalue()
    assert "Leak in int8: " in text
    assert LEAK in text
    assert LEAK in fragment(leaking).replace("&#x27;", "'").replace("&#39;", "'")
