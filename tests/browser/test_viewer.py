"""The viewer in a real browser: filters, numbers, figures, screens, and a report inside it."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from fairweight.tables.annotations import read_csv
from fairweight.web.security import onwards

from ..web.test_web_pages import numbers, table_values
from .conftest import TOKEN
from .test_report_gallery import exported, part, until
from .test_report_page import CONTRAST

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from tests.chromium import Watched

PAGES = ("", "/level?by=class", "/examples", "/annotations")

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


def twin(address: str) -> Any:
    """What the server says to programs about the same address."""
    place = urlsplit(address)
    request = urllib.request.Request(
        place._replace(path=f"{place.path}.json").geturl(),
        headers={"Authorization": f"Bearer {TOKEN}"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def names_on(page: Page) -> list[str]:
    """The examples on the page, by their exact names."""
    held = page.eval_on_selector_all(".card", "els => els.map((e) => e.dataset.exact)")
    return [json.loads(text)["id"] for text in held]


def test_the_form_asks_for_what_the_address_says(viewer_page: Page, viewer: str) -> None:
    page = viewer_page
    page.goto(f"{viewer}/examples")
    assert len(names_on(page)) == 12
    page.select_option("[name=variant]", "a")
    page.select_option("[name=changed]", "yes")
    page.select_option("[name=label]", "cat")
    page.click(".more-filters summary")
    page.select_option("[name='group.sex']", "f")
    page.click("text=Show")
    asked = {name: value for name, value in parse_qsl(urlsplit(page.url).query) if value}
    assert asked.items() >= {"changed": "yes", "label": "cat", "group.sex": "f"}.items()
    # `a` answers otherwise on squares 0 to 4; cats are every third and women every second.
    assert names_on(page) == [card["id"] for card in twin(page.url)["cards"]] == ["e0"]
    page.click("[aria-label='Remove the filter sex']")
    assert "group.sex" not in page.url
    assert names_on(page) == [card["id"] for card in twin(page.url)["cards"]]
    assert sorted(names_on(page)) == ["e0", "e3"]
    assert page.locator(".pager .where b").last.get_attribute("data-value") == "2"


def test_numbers_are_those_of_the_twin(viewer_page: Page, viewer: str) -> None:
    without_figures(viewer_page)
    for place in PAGES:
        viewer_page.goto(viewer + place)
        shown = viewer_page.eval_on_selector_all(
            "[data-value]", "els => els.map((e) => e.dataset.value)"
        )
        program = twin(viewer + place)
        held = set(numbers(program))
        if "offset" in program:
            held.add(program["offset"] + 1)
        text = [value for value in shown if value and not _is_number(value)]
        assert {float(value) for value in shown if _is_number(value)} <= held, place
        values = table_values(program)
        assert text == [value for value in values if value and not _is_number(value)], place
        assert len(shown) >= max(len(values), 3), place


def without_figures(page: Page) -> None:
    """Drawing takes longest, and one test draws."""
    page.route("**/static/vega*", lambda route: route.fulfill(body=""))
    page.route("**/figure.json*", lambda route: route.fulfill(json={"reason": "not now"}))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_images_and_figures_are_drawn(viewer_page: Page, viewer: str) -> None:
    page = viewer_page
    page.goto(f"{viewer}/example?id=e4")
    until(page, "document.querySelector('.picture img').naturalWidth >= 8")
    page.goto(f"{viewer}/figure?id=FW-1")
    until(page, "document.querySelector('figure.drawn svg') !== null")
    alt = page.get_attribute(".canvas", "aria-label")
    assert alt == twin(page.url)["alt"]


def test_a_narrow_screen_in_light_and_dark(viewer_page: Page, viewer: str) -> None:
    page = viewer_page
    page.set_viewport_size({"width": 400, "height": 800})
    without_figures(page)
    for place in ("/examples", "/annotations", "/level?by=class"):
        page.goto(viewer + place)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, place
        grounds = set()
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            for text in ("h1", ".tabs a", ".foot a"):
                assert page.locator(text).first.evaluate(CONTRAST) >= 4.5, (place, text, scheme)
        assert len(grounds) == 2


def test_a_stored_report_keeps_nothing_says_so_and_still_downloads(
    viewer_page: Page, viewer: str
) -> None:
    """The viewer shows it in a sandbox, where storage is refused."""
    page = viewer_page
    page.goto(f"{viewer}/report#gallery")
    page.wait_for_selector("[data-part=panel]:not([hidden])")
    assert page.evaluate("origin") == "null"
    assert part(page, "kept").startswith("This browser refuses to keep anything for this page.")
    page.fill("[data-part=name]", "Ann")
    page.keyboard.press("Enter")
    name = page.evaluate("document.activeElement.querySelector('.who').textContent")
    page.keyboard.press("a")
    (row,) = read_csv(exported(page))
    assert (row.example_id, row.verdict, row.annotator) == (name, "ambiguous", "Ann")
    assert part(page, "status") == "1 annotations written to annotations.csv."


def test_the_file_that_opens_the_pages(watched: Watched, viewer: str, tmp_path: Path) -> None:
    """A browser holds a new cookie back on redirects that another page began."""
    page = watched.page
    opens = tmp_path / "open.html"
    opens.write_text(onwards(f"{viewer}/examples?order=id&token={TOKEN}"), encoding="utf-8")
    page.goto(opens.as_uri())
    page.wait_for_url(f"{viewer}/examples?order=id")
    assert page.locator(".card").count() > 0
    assert watched.errors == []
    page.goto("about:blank")
    page.context.clear_cookies()
    page.goto(f"{viewer}/examples")
    assert "open the address that fairweight printed" in page.inner_text("body")
