"""The report in a real browser: saved figures, keyboard, paper, dark and narrow screens."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.page_figures import figures_of

from fairweight.report.figures.export import to_csv

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from tests.chromium import Watched

# The contrast of WCAG between the text of an element and the background of the page.
CONTRAST = """(element) => {
  const channels = (text) => text.match(/[\\d.]+/g).slice(0, 3).map((v) => {
    const c = v / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  const light = (text) => {
    const [r, g, b] = channels(text);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const pair = [light(getComputedStyle(element).color),
                light(getComputedStyle(document.body).backgroundColor)].sort((a, b) => b - a);
  return (pair[0] + 0.05) / (pair[1] + 0.05);
}"""


@pytest.fixture(scope="module")
def light_report(plain_report: Path) -> Path:
    """Without the library that draws, whose megabyte takes longest to open."""
    text = plain_report.read_text(encoding="utf-8")
    library = max(re.findall(r"<script>.*?</script>", text, re.DOTALL), key=len)
    light = plain_report.with_name("light.html")
    light.write_text(text.replace(library, ""), encoding="utf-8")
    return light


def saved(page: Page, kind: str) -> tuple[str, bytes]:
    with page.expect_download() as caught:
        page.locator(f".save button[data-kind={kind}]").first.click()
    return caught.value.suggested_filename, Path(caught.value.path()).read_bytes()


def test_a_figure_saves_as_svg_png_and_csv(watched: Watched, report: Path) -> None:
    page = watched.page
    page.context.set_offline(True)
    page.goto(report.as_uri())
    anchor = page.locator(".save").first.get_attribute("data-of")
    name, svg = saved(page, "svg")
    assert name == f"{anchor}.svg"
    assert svg.startswith(b"<svg")
    assert b"currentColor" not in svg
    name, png = saved(page, "png")
    assert name == f"{anchor}.png"
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(png) > 2_000  # more than an empty sheet
    name, text = saved(page, "csv")
    assert name == f"{anchor}.csv"
    specs = figures_of(report.read_text(encoding="utf-8"))
    expected = list(csv.reader(io.StringIO(to_csv(specs[anchor]))))
    read = list(csv.reader(io.StringIO(text.decode("utf-8"))))
    assert read[0] == expected[0]
    for ours, theirs in zip(expected[1:], read[1:], strict=True):
        assert [_number(cell) for cell in ours] == [_number(cell) for cell in theirs]
    assert watched.errors == []


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


def test_every_button_has_a_name_and_every_figure_an_alternative(
    browser_page: Page, report: Path
) -> None:
    browser_page.goto(report.as_uri())
    unnamed = "els => els.filter(e => !(e.ariaLabel || e.textContent).trim()).length"
    assert browser_page.eval_on_selector_all("button", unnamed) == 0
    bare = "els => els.filter(e => !e.getAttribute('aria-label').trim()).length"
    assert browser_page.eval_on_selector_all(".canvas", bare) == 0
    assert browser_page.locator(".canvas").count() > 3


def test_keys_skip_to_the_finding_and_sort_tables(browser_page: Page, light_report: Path) -> None:
    browser_page.goto(light_report.as_uri())
    browser_page.keyboard.press("Tab")
    assert browser_page.evaluate("document.activeElement.textContent") == "Skip to the finding"
    browser_page.keyboard.press("Enter")
    assert browser_page.evaluate("location.hash") == "#main"
    browser_page.evaluate("location.hash = '#table-by-class'")
    table = browser_page.locator("#table-by-class table")
    column = table.locator("th button", has_text="baseline").first
    column.focus()
    browser_page.keyboard.press("Enter")
    place = column.evaluate("b => b.parentElement.cellIndex")
    keys = "(t, at) => [...t.tBodies[0].rows].map(r => r.cells[at].dataset.sort).filter(Boolean)"
    numbers = [float(key) for key in table.evaluate(keys, place)]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 1


def test_paper_shows_what_belongs_to_the_finding(browser_page: Page, light_report: Path) -> None:
    browser_page.goto(light_report.as_uri())
    assert browser_page.pdf().startswith(b"%PDF")
    closed = browser_page.locator("details.part:not([open])").count()
    assert closed == 0
    browser_page.emulate_media(media="print")
    assert not browser_page.locator("nav").first.is_visible()
    assert not browser_page.locator(".save").first.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(
    browser_page: Page, light_report: Path, scheme: str
) -> None:
    browser_page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    browser_page.goto(light_report.as_uri())
    for place in ("#headline", ".caveat", ".hit", ".key", "nav a", ".summary th a"):
        assert browser_page.locator(place).first.evaluate(CONTRAST) >= 4.5, place


def test_the_first_screen_holds_the_finding_and_all_variants(
    browser_page: Page, light_report: Path
) -> None:
    browser_page.goto(light_report.as_uri())
    for place in (".brief", ".of-variants", ".caveat >> nth=-1"):
        box = browser_page.locator(place).bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 900, place


def test_a_narrow_screen_scrolls_tables_not_the_page(
    browser_page: Page, light_report: Path
) -> None:
    browser_page.set_viewport_size({"width": 400, "height": 800})
    browser_page.goto(light_report.as_uri())
    assert browser_page.evaluate("document.documentElement.scrollWidth") <= 400
