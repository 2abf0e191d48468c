"""The gallery of the report in a real browser, from disk and without a network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairweight.tables.annotations import Annotation, read_csv, to_csv

if TYPE_CHECKING:
    from playwright.sync_api import Page
    from tests.chromium import Watched

HOSTILE = "<img src=x onerror=alert(1)>"
NOTE = '=SUM(1)\n"<b>quoted</b>", é\U0001f600'


def part(page: Page, name: str) -> str:
    return page.locator(f"[data-part={name}]").inner_text()


def opened(page: Page, report: Path, name: str = "Ann") -> None:
    page.goto(report.as_uri() + "#gallery")
    page.wait_for_selector("[data-part=panel]:not([hidden])")
    if name:
        page.fill("[data-part=name]", name)
        page.keyboard.press("Enter")


def until(page: Page, expression: str) -> None:
    """Wait for something on the page, whose policy forbids what Playwright would wait with."""
    for _ in range(400):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    pytest.fail(f"It never came true: {expression}")


def focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.querySelector('.who').textContent"))


def exported(page: Page) -> str:
    with page.expect_download() as caught:
        page.click("[data-part=download]")
    assert caught.value.suggested_filename == "annotations.csv"
    return Path(caught.value.path()).read_bytes().decode("utf-8")


def undated(rows: list[Annotation]) -> list[tuple[str, ...]]:
    return [(r.example_id, r.verdict, r.label, r.note, r.annotator) for r in rows]


def imported(page: Page, folder: Path, text: str) -> str:
    (folder / "annotations.csv").write_bytes(text.encode("utf-8"))
    page.set_input_files("[data-part=file]", folder / "annotations.csv")
    until(page, "document.querySelector('[data-part=file]').value === ''")
    return part(page, "status")


def test_the_report_opens_from_disk_and_asks_the_network_for_nothing(
    watched: Watched, report: Path
) -> None:
    watched.page.context.set_offline(True)
    opened(watched.page, report)
    until(watched.page, "document.querySelectorAll('.chart svg').length > 0")
    assert [url for url in watched.requests if not url.startswith(("file:", "data:"))] == []
    assert watched.errors == []


def test_from_keys_to_a_file_and_back(
    browser_page: Page, plain_report: Path, tmp_path: Path
) -> None:
    page = browser_page
    opened(page, plain_report)
    order = page.locator(".who").all_inner_texts()
    assert sorted(order) == sorted(["e0", "=e1+'x'", "e2", "e3", "e4", HOSTILE])
    for i, name in enumerate(order):
        assert focused(page) == name
        if name == HOSTILE:
            page.keyboard.press("w")
            page.keyboard.press("l")
            page.locator("[data-part=label]").select_option(label="owl")
            page.keyboard.press("Enter")
            page.keyboard.press("n")
            for j, line in enumerate(NOTE.split("\n")):
                if j:
                    page.keyboard.press("Shift+Enter")
                page.keyboard.type(line)
            page.keyboard.press("Enter")
            page.keyboard.press("j")
        else:
            page.keyboard.press("fahs"[i % 4])  # moves on by itself
    words = {"f": "fine", "a": "ambiguous", "h": "model_harmful", "s": "skip"}
    recorded = {"e0": "cat", "=e1+'x'": "dog", "e2": "owl", "e3": "cat", "e4": "dog"}
    expected = []
    for i, name in enumerate(order):
        verdict = words["fahs"[i % 4]]
        label = recorded.get(name, "") if verdict in ("fine", "model_harmful") else ""
        expected.append((name, verdict, label, "", "Ann"))
    expected[order.index(HOSTILE)] = (HOSTILE, "label_wrong", "owl", NOTE, "Ann")
    text = exported(page)
    rows = read_csv(text)
    assert sorted(undated(rows)) == sorted(expected)
    assert to_csv(rows) == text  # byte for byte what Python writes
    assert part(page, "count") == "6 of 6 judged by Ann, 6 shown"

    page.reload()
    page.wait_for_selector("[data-part=panel]:not([hidden])")
    assert page.input_value("[data-part=name]") == "Ann"
    assert exported(page) == text

    last = order[-1] if order[-1] != HOSTILE else order[-2]
    page.locator(".card").first.focus()
    page.keyboard.press("u")
    assert part(page, "count").startswith("5 of 6 judged")
    assert part(page, "status").startswith("Undone: ")
    assert last in part(page, "status") or HOSTILE in part(page, "status")

    assert imported(page, tmp_path, text) == "1 of 6 annotations were new."
    assert imported(page, tmp_path, text) == "0 of 6 annotations were new."
    assert sorted(undated(read_csv(exported(page)))) == sorted(expected)


def test_colleagues_stand_beside_each_other(
    browser_page: Page, plain_report: Path, tmp_path: Path
) -> None:
    opened(browser_page, plain_report, "Bo")
    browser_page.keyboard.press("a")
    theirs = [
        Annotation("e0", "fine", label="cat", annotator="Ann", time="2026-03-01T09:00:00Z"),
        Annotation("elsewhere", "skip", annotator="Ann"),
    ]
    said = imported(browser_page, tmp_path, to_csv(theirs))
    assert said == "2 of 2 annotations were new; 1 are about examples that are not shown here."
    assert "Ann: fine" in browser_page.locator(".said").all_inner_texts()
    assert part(browser_page, "count") == "1 of 6 judged by Bo, 6 shown"
    kept = read_csv(exported(browser_page))
    assert set(theirs) <= set(kept)
    assert len(kept) == 3


def test_a_damaged_file_changes_nothing(
    browser_page: Page, plain_report: Path, tmp_path: Path
) -> None:
    opened(browser_page, plain_report)
    for text, sentence in (
        ("example_id,label\n1,2\n", "it has no column 'verdict'"),
        ("example_id,verdict\ne0,good\n", "row 1: 'good' is no verdict"),
        ('example_id,verdict\ne0,"fine\n', "a quote is not closed"),
        ("example_id,verdict,label\ne0,skip,cat\n", "row 1: skip takes no label"),
        ("example_id,verdict,time\ne0,fine,2026-03-01\n", "'2026-03-01' is no time in UTC"),
    ):
        said = imported(browser_page, tmp_path, text)
        assert said.startswith("Nothing was imported from annotations.csv: ")
        assert sentence in said
    assert read_csv(exported(browser_page)) == []


def test_filters(browser_page: Page, plain_report: Path) -> None:
    page = browser_page
    opened(page, plain_report)

    def shown() -> set[str]:
        return set(page.locator(".card:not([hidden]) .who").all_inner_texts())

    page.select_option("[data-part=variants]", label="b")
    assert shown() == {"e0", HOSTILE}
    page.select_option("[data-part=labels]", label="cat")
    assert shown() == {"e0"}
    page.select_option("[data-part=variants]", label="all")
    assert shown() == {"e0", "e3"}
    page.select_option("[data-part=annotated]", "no")
    page.locator(".card:not([hidden])").first.focus()
    first = focused(page)
    page.keyboard.press("f")
    assert shown() == {"e0", "e3"} - {first}
    assert focused(page) == next(iter({"e0", "e3"} - {first}))
    page.select_option("[data-part=annotated]", "fine")
    assert shown() == {first}


def test_nobody_judges_without_a_name(browser_page: Page, plain_report: Path) -> None:
    opened(browser_page, plain_report, "")
    browser_page.locator(".card").first.focus()
    browser_page.keyboard.press("f")
    assert part(browser_page, "status").startswith("Write your name first")
    browser_page.keyboard.type("Cy")
    assert browser_page.input_value("[data-part=name]") == "Cy"
    assert read_csv(exported(browser_page)) == []


def test_a_browser_that_keeps_nothing_says_so(browser_page: Page, plain_report: Path) -> None:
    browser_page.add_init_script(
        "Storage.prototype.setItem = () => { throw new DOMException('refused'); };"
    )
    opened(browser_page, plain_report)
    assert part(browser_page, "kept").startswith("This browser refuses to keep anything")
    browser_page.keyboard.press("f")
    assert len(read_csv(exported(browser_page))) == 1


def test_a_tab_sees_what_another_wrote(browser_page: Page, plain_report: Path) -> None:
    opened(browser_page, plain_report)
    other = browser_page.context.new_page()
    opened(other, plain_report)
    other.keyboard.press("f")
    until(
        browser_page, "document.querySelector('[data-part=count]').textContent.startsWith('1 of')"
    )
    browser_page.locator(".card").nth(1).focus()
    browser_page.keyboard.press("a")
    assert len(read_csv(exported(browser_page))) == 2
