"""Annotating in the viewer with keys: on the disk at once, there after a reload, in the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fairweight.tables.annotation_store import AnnotationStore
from fairweight.tables.annotations import read_csv

from .test_viewer import names_on

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOSTILE = "<img src=x onerror=alert(1)>"
VERDICTS = ("fine", "ambiguous", "model_harmful", "skip", "label_wrong")
NOTE = '=SUM(1)\n"<b>quoted</b>", é\U0001f600'


def opened(page: Page, viewer: str, who: str, query: str, at: int = 0) -> None:
    page.goto(f"{viewer}/examples{query}")
    page.fill("[name=annotator]", who)
    page.keyboard.press("Tab")
    page.locator(".card").nth(at).focus()


def press(page: Page, key: str, told: str) -> None:
    """Press a key and wait until the server has said that it is done."""
    page.keyboard.press(key)
    page.locator(".annotator .status", has_text=told).wait_for()


def said_on(page: Page, name: str) -> list[str]:
    place = names_on(page).index(name)
    return page.locator(".card").nth(place).locator(".given li").all_inner_texts()


def test_from_keys_to_the_file(viewer_page: Page, viewer: str, report: Path) -> None:
    page = viewer_page
    opened(page, viewer, "Ann", "?order=id", at=1)
    names = names_on(page)
    assert names[:2] == [HOSTILE, "=e1+'x'"]
    judged = names[1:6]
    verdicts = dict(zip("fahsw", VERDICTS, strict=True))
    for number, (key, verdict) in enumerate(verdicts.items(), start=1):
        press(page, key, f"Saved: {verdict.replace('_', ' ')}. {number} annotated.")
    assert page.evaluate("document.activeElement.dataset.id") == names[6]  # one further each time

    page.locator(".card").first.focus()
    page.keyboard.press("n")
    page.fill(".note-dialog [name=label]", "owl")
    page.fill(".note-dialog [name=note]", NOTE)
    page.click(".note-dialog [data-verdict=label_wrong]")
    page.locator(".annotator .status", has_text="6 annotated").wait_for()

    page.reload()
    assert page.input_value("[name=annotator]") == "Ann"
    assert said_on(page, HOSTILE) == ["label wrong: owl Ann"]
    assert [len(said_on(page, name)) for name in names] == [1] * 6 + [0] * 6
    page.locator(".card").first.focus()
    press(page, "u", "Undone: label wrong. 5 annotated.")
    assert said_on(page, HOSTILE) == []
    press(page, "u", "Undone: label wrong. 4 annotated.")

    page.goto(f"{viewer}/annotations")
    with page.expect_download() as caught:
        page.click("text=Download annotations.csv")
    rows = read_csv(Path(caught.value.path()).read_bytes().decode("utf-8"))
    label = {f"e{i}": ("cat", "dog", "owl")[i % 3] for i in range(12)}
    label |= {"=e1+'x'": "dog", HOSTILE: "dog"}
    recorded = {"fine", "model_harmful"}  # they stand for the label as it is
    assert sorted((r.example_id, r.verdict, r.label, r.note, r.annotator) for r in rows) == sorted(
        (name, verdict, label[name] if verdict in recorded else "", "", "Ann")
        for name, verdict in zip(judged[:4], VERDICTS[:4], strict=True)
    )
    with AnnotationStore(report.parent / "annotations.sqlite", read_only=True) as store:
        (audit,) = store.audits()
        assert len(store.log(audit)) == 8  # six verdicts, and two taken back
        notes = [e.annotation.note for e in store.log(audit) if e.annotation is not None]
    assert notes.count(NOTE) == 1


def test_what_is_annotated_can_be_filtered(viewer_page: Page, viewer: str) -> None:
    page = viewer_page
    opened(page, viewer, "Bo", "?variant=b&changed=yes")
    first = names_on(page)[0]
    press(page, "h", "Saved: model harmful.")
    page.goto(f"{viewer}/examples?annotated=model_harmful&variant=b&changed=yes")
    assert names_on(page) == [first]
    page.keyboard.press("j")
    press(page, "u", "Undone: model harmful.")
    page.keyboard.press("?")
    assert page.locator("dialog.keys").is_visible()
