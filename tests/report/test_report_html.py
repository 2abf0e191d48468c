from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.page_figures import figures_of

from fairweight.auditing.result import AuditResult
from fairweight.report.figures import figures
from fairweight.report.html import render
from fairweight.report.view_tables import LIMIT, detail_tables

if TYPE_CHECKING:
    from tests.chromium import Watched

ORDINARY = [f for f in figures() if not f.explains]  # of every report


class Page(HTMLParser):
    """What a browser would see: elements, their attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.words: list[str] = []
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.words.append(data)


@pytest.fixture(scope="module")
def pages(
    result: AuditResult,
    hostile: AuditResult,
    bare: AuditResult,
    population: AuditResult,
    hostile_population: AuditResult,
) -> dict[str, str]:
    return {
        "result": render(result),
        "hostile": render(hostile),
        "bare": render(bare),
        "population": render(population),
        "hostile population": render(hostile_population),
    }


@pytest.mark.parametrize("name", ["result", "hostile population", "bare"])
def test_the_page_loads_nothing(pages: dict[str, str], name: str) -> None:
    page = Page(pages[name])
    for tag, attributes in page.tags:
        for key in ("src", "href", "action", "data", "srcset", "poster"):
            value = attributes.get(key) or "#"
            assert value.startswith(("#", "data:")), (tag, key, value)
        assert tag not in ("img", "iframe", "object", "embed", "base", "form", "audio", "video")
        assert not any(key.startswith("on") for key in attributes), (tag, attributes)
    style = re.search(r"<style>(.*?)</style>", pages[name], re.DOTALL)
    assert style is not None
    assert "url(" not in style[1]
    assert "@import" not in style[1]


@pytest.mark.parametrize("name", ["result", "hostile population", "bare"])
def test_the_policy_allows_exactly_the_scripts_of_the_page(
    pages: dict[str, str], name: str
) -> None:
    page = Page(pages[name])
    kinds = [attributes.get("type") for tag, attributes in page.tags if tag == "script"]
    runs = [s for s, kind in zip(page.scripts, kinds, strict=True) if kind is None]
    (policy,) = [a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    made = {base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in runs}
    assert allowed == made
    script_rule = next(rule for rule in policy.split(";") if "script-src" in rule)
    assert "unsafe" not in script_rule


def test_hostile_names_are_text(pages: dict[str, str], hostile: AuditResult) -> None:
    page = Page(pages["hostile"])
    # The data block, the library and the three scripts of the page, no more.
    assert len(page.scripts) == 5
    words = "".join(page.words)
    assert "<script>alert('x')</script>" in words
    assert "</script><img src=x onerror=alert(1)>" in words
    assert "{{ 7 * 7 }}" in words
    assert "\x1b" not in pages["hostile"]
    specs = figures_of(pages["hostile"])
    assert any("<script>alert(" in json.dumps(spec) for spec in specs.values())


def test_the_finding_leads_and_everything_else_follows(pages: dict[str, str]) -> None:
    text = pages["result"]
    text = text[text.index("</nav>") :]
    marks = ["<dt>Loses most</dt>", "<dt>Too small</dt>", "no policy set",
             'id="side"', 'id="who"', 'id="unseen"', 'id="why"', 'id="helps"', 'id="ship"',
             'id="variants"', "By sex: the change differs", "By class: the change differs",
             "Who loses more than the rest (", "Who loses (", "Too few examples (",
             "Baseline and compressed numbers", 'id="figures"', 'id="tables"', 'id="notes"',
             'id="provenance"']  # fmt: skip
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert "ab" * 32 in text  # the checksum of the input
    assert "fairweight audit dense.csv int8.csv" in text


@pytest.mark.parametrize("name", ["result", "population", "bare"])
def test_anchors_exist_and_are_unique(pages: dict[str, str], name: str) -> None:
    page = Page(pages[name])
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        if tag == "a":
            assert (attributes["href"] or "")[1:] in ids


def test_what_is_absent_is_said(pages: dict[str, str]) -> None:
    assert pages["bare"].count("Not drawn: ") == 2 * len(ORDINARY)  # two variants
    assert "More figures" not in pages["bare"]
    assert "vegaEmbed=" not in pages["bare"]  # no figure, so no library of a megabyte


def test_undefined_is_a_dash_with_its_reason(pages: dict[str, str]) -> None:
    page = Page(pages["result"])
    reasons = {a.get("title") for tag, a in page.tags if tag == "td"}
    assert "not_estimable: one level" in reasons
    assert "small_group: n < 10" in reasons
    words = " ".join(page.words)
    assert not re.search(r"\b(nan|NaN|None|<NA>)\b", words)


def test_long_tables_are_cut_by_n_and_say_so(make_result: Callable[..., AuditResult]) -> None:
    long = make_result(n=3000, n_classes=120)
    table = detail_tables(long)["by-class"]
    assert table.total == 120 * 3 * 2
    assert len(table.rows) == LIMIT
    column = table.headings.index("n")
    sizes = [row[column].value for row in table.rows]
    rows = long.results[long.results["by"] == "class"]["n"].astype(int)
    assert sorted(sizes, reverse=True) == sorted(rows, reverse=True)[:LIMIT]
    text = render(replace(long, variants=long.variants[:1]))
    assert f"The {LIMIT} rows with the largest n are shown" in text
    assert "all 720 rows are in tables/results.parquet" in text


def test_words_that_claim_too_much_are_not_on_the_page(pages: dict[str, str]) -> None:
    both = Page(pages["result"]).words + Page(pages["population"]).words
    words = " ".join(both).lower().replace("fairweight", "")
    for word in ("fair", "unbiased", "debiased"):
        assert word not in words


def test_the_contents_lead_to_every_part_and_table(pages: dict[str, str]) -> None:
    page = Page(pages["population"])
    linked = {a["href"] for tag, a in page.tags if tag == "a"}
    folded = [a["id"] for tag, a in page.tags if tag == "details" and "id" in a]
    assert len(folded) > 15  # parts and figures of two variants, and all tables
    assert {f"#{anchor}" for anchor in folded} <= linked


def test_both_scopes_stand_side_by_side(pages: dict[str, str]) -> None:
    text = pages["population"].partition('<details class="variant" id="variant-1"')[2]
    start = text.index('<table class="sides">')
    table = text[start : text.index("</table>", start)]
    rows = re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
    heads = [re.sub(r"<span.*?</span>|<[^>]+>", "", part) for part in rows[0].split("</th>")]
    assert heads[:2] == ["These models", "The method"]
    assert "Does what is shipped treat anyone worse?" in rows[0]
    assert "Does this compression do so beyond retraining?" in rows[0]
    (most,) = [row for row in rows if ">Loses most<" in row]
    # The same shift with wider limits beside it.
    assert "class 3: −8.9 points [−13.5, −4.3]" in most.split("<td")[1]
    assert "class 3: −8.9 points [−15.8, −2.0]" in most.split("<td")[2]
    assert '<table class="sides">' not in pages["result"]


def test_the_page_explains_what_retraining_moves(pages: dict[str, str]) -> None:
    words = " ".join("".join(Page(pages["population"]).words).split())
    assert "95 % of pairs of retrained dense models differ by less" in words
    assert "Who loses is decided by the limits alone" in words
    alone = " ".join("".join(Page(pages["result"]).words).split())
    assert "Retraining alone moves classes and groups too. Why?" in alone
    assert "What the compression method does takes several of each" in alone
    assert "is decided by the limits alone" not in alone  # one pair has no noise floor


def test_a_browser_draws_every_figure_under_the_policy(
    watched: Watched, pages: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "report.html").write_text(pages["hostile population"], encoding="utf-8")
    page = watched.page
    page.goto((tmp_path / "report.html").as_uri() + "#more-variant-2")
    asked = page.locator("[data-drawn]")
    # The first of the ranking, with what the address unfolds; the other is drawn when it is opened.
    assert asked.count() == 9 + 4
    for place in range(9 + 4):
        asked.nth(place).locator("svg.marks, :scope.failed").wait_for(state="attached")
    assert "could not be drawn" not in page.locator("main").inner_text()
    assert watched.errors == []  # refused by the policy, too


def test_more_figures_are_folded_and_hold_what_is_registered_so(pages: dict[str, str]) -> None:
    text = pages["population"]
    folded = re.findall(r'<details class="figures more".*?</details>', text, re.DOTALL)
    assert len(folded) == 2  # one per variant
    ids = re.findall(r'<span class="id">(.*?)</span>', folded[0])
    assert ids == [f.id for f in ORDINARY if f.more and f.id not in ("SG-F5", "SG-F6")]
    assert f"<summary>More figures ({len(ids)})</summary>" in folded[0]
    before = text[: text.index(folded[0])]
    shown = re.findall(r'<span class="id">(.*?)</span>', before[before.index('id="figures"') :])
    assert shown == [f.id for f in ORDINARY if not f.more]
