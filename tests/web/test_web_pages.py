"""Every page is there, its twin has the same numbers, and its links lead somewhere."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
import pytest
from starlette.testclient import TestClient

import fairweight as fw
from fairweight.report.brief import EXPLAINED
from fairweight.tables.names import group_name
from fairweight.web.application import create_app
from fairweight.web.items import find_items
from fairweight.web.rendering import asset, asset_path, names
from fairweight.web.site import Settings

from .conftest import BASE
from .studies import HOSTILE
from .studies import rows as study_rows

PAGES = (
    "/audit/plain",
    "/audit/plain/variant",
    "/audit/plain/variant?variant=pruned",
    "/audit/plain/level?by=class",
    "/audit/plain/level?by=group",
    "/audit/plain/level?by=class&name=b",
    "/audit/plain/level?by=group&name=age%3Dold",
    "/audit/tasks/task",
    "/audit/tasks/task?task=smiling",
    "/audit/tasks/level?by=class&task=young",
    "/audit/plain/figure?id=FW-1",
    "/audit/plain/examples",
    "/audit/plain/examples?changed=lost&group.age=old&order=random",
    "/audit/tasks/examples?task=young",
    "/audit/plain/example?id=id-004",
    "/audit/plain/pairs",
    "/audit/plain/annotations",
)


class Found(HTMLParser):
    """Values, links and scripts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.values: list[str] = []
        self.links: list[str] = []
        self.inline: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        if "data-value" in held:
            self.values.append(held["data-value"] or "")
        if held.get("href"):
            self.links.append(str(held["href"]))
        if held.get("src"):
            self.links.append(str(held["src"]))
        self.inline += [name for name in held if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in held):
            self.inline.append(tag)


def twin(page: str) -> str:
    path, mark, query = page.partition("?")
    return f"{path}.json{mark}{query}"


def numbers(value: Any) -> list[float]:
    """Every number of a JSON document."""
    if isinstance(value, dict):
        return [n for inner in value.values() for n in numbers(inner)]
    if isinstance(value, list):
        return [n for inner in value for n in numbers(inner)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


def table_values(page: dict[str, Any]) -> list[str]:
    """The values of all tables of an audit's page, in their order."""
    held = [page["variants"]] if isinstance(page.get("variants"), dict) else []
    for section in [*page.get("sections", []), *([page["section"]] if "section" in page else [])]:
        held += section["tables"]
    cells = [c for t in [*held, *page.get("tables", [])] for row in t["rows"] for c in row]
    return ["" if cell["value"] is None else str(cell["value"]) for cell in cells]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_and_its_twin(reader: TestClient, page: str) -> None:
    html = reader.get(page)
    assert html.status_code == 200, html.text
    assert html.headers["content-type"] == "text/html; charset=utf-8"
    program = reader.get(twin(page))
    assert program.status_code == 200
    assert program.headers["content-type"] == "application/json"
    shown = Found(html.text)
    assert twin(page).partition("?")[0] in " ".join(shown.links)
    held = set(numbers(program.json()))
    for value in shown.values:
        if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", value):
            assert float(value) in held or value in program.text


@pytest.mark.parametrize(
    "page", [p for p in PAGES if re.search(r"plain$|/variant|/level|/tasks/task", p)]
)
def test_tables_hold_the_values_of_the_twin(reader: TestClient, page: str) -> None:
    values = table_values(reader.get(twin(page)).json())
    shown = Found(reader.get(page).text).values
    assert len(values) > 3
    if "/level" in page or "/task" in page:
        assert shown == values
    else:  # the overview begins with the number of examples
        assert [value for value in shown if value in values or value == ""][
            -len(values) :
        ] == values


def test_numbers_are_those_of_the_audit(reader: TestClient, studies: Path) -> None:
    audit = json.loads((studies / "plain" / "audit" / "audit.json").read_text())
    page = reader.get("/audit/plain/level.json?by=class&name=b").json()
    recall = next(table for table in page["tables"] if table["title"] == "recall")
    rows = [
        row
        for row in audit["results"]
        if row["by"] == "class" and row["class"] == "b" and row["metric"] == "recall"
    ]
    place = {name: i for i, name in enumerate(recall["headings"])}
    found = [
        (r[place["baseline"]]["value"], r[place["compressed"]]["value"]) for r in recall["rows"]
    ]
    assert found == [(row["baseline"], row["compressed"]) for row in rows]
    shifts = [r[place["shift [interval]"]]["value"] for r in recall["rows"]]
    assert shifts == [row["shift"] for row in rows]
    assert min(shifts) < 0


def test_votes_are_those_of_the_table(reader: TestClient) -> None:
    table = study_rows()
    own = table[(table["example_id"] == "id-004") & (table["variant"] == "pruned")]
    card = reader.get("/audit/plain/example.json?id=id-004").json()["card"]
    bars = {bar["answer"]: bar["votes"] for bar in card["variants"][0]["bars"]}
    assert bars == own["prediction"].value_counts().to_dict()
    assert card["label"] == own["label"].iloc[0]
    assert card["groups"] == {"age": own["age"].iloc[0]}
    assert [m["score"] for m in card["variants"][0]["members"]] == pytest.approx(own["score"])


def test_filters_of_an_address(reader: TestClient) -> None:
    page = reader.get("/audit/plain/examples.json?label=b&group.age=old&limit=96").json()
    assert page["total"] == len(page["cards"]) == 10  # every sixth of 60
    assert {(c["label"], c["groups"]["age"]) for c in page["cards"]} == {("b", "old")}
    assert [(chip["name"], chip["value"]) for chip in page["chips"]] == [
        ("label", "b"),
        ("age", "old"),
    ]
    without = reader.get(page["chips"][0]["without"].replace("examples?", "examples.json?")).json()
    assert without["total"] == 30


def test_pages_of_the_gallery_meet(reader: TestClient) -> None:
    page = reader.get("/audit/plain/examples.json?limit=25").json()
    seen = [card["id"] for card in page["cards"]]
    while page["walk"]["next"]:
        page = reader.get(page["walk"]["next"].replace("examples?", "examples.json?")).json()
        seen += [card["id"] for card in page["cards"]]
    assert len(seen) == len(set(seen)) == 60
    assert page["offset"] == 50
    assert "offset=25" in page["walk"]["previous"]


def test_every_link_leads_somewhere(reader: TestClient) -> None:
    seen, open_ = set(), ["/"]
    while open_:
        place = open_.pop()
        answer = reader.get(place)
        assert answer.status_code == 200, (place, answer.text[:200])
        if not answer.headers["content-type"].startswith("text/html") or "/report" in place:
            continue
        for found in Found(answer.text).links:
            path = found.partition("#")[0]
            # One of each kind is enough: galleries link to thousands of others.
            kind = re.sub(r"=[^&]*", "=", path)
            if "/task" not in path.removeprefix("/audit/tasks"):
                kind = kind.replace("/tasks", "/plain")
            if path.startswith("/") and kind not in seen and "hostile" not in path:
                seen.add(kind)
                open_.append(path)
    assert len(seen) > 40


def test_a_table_of_predictions_without_an_audit(tmp_path: Path) -> None:
    study_rows(12).to_csv(tmp_path / "preds.csv", index=False)
    app = create_app(find_items(tmp_path / "preds.csv"), settings=Settings())
    client = TestClient(app, base_url="http://localhost:8000")
    key = client.get("/index.json").json()["studies"][0]["key"]
    assert "no audit here yet" in client.get(f"/audit/{key}").text
    assert client.get(f"/audit/{key}/examples.json").json()["total"] == 12
    refused = client.get(f"/audit/{key}/variant.json")
    assert refused.status_code == 400
    assert "has no audit" in refused.json()["error"]


@pytest.mark.parametrize(
    ("place", "status", "words"),
    [
        ("/audit/nothing", 404, "Study 'nothing' does not exist"),
        ("/audit/plain/variant?variant=x", 404, "Variant 'x' does not exist"),
        ("/audit/plain/level?by=class&name=zzz", 404, "Class 'zzz' does not exist"),
        ("/audit/plain/level?by=shoe", 422, "'by' cannot be used"),
        ("/audit/plain/task", 400, "one task only"),
        ("/audit/plain/figure?id=XX-9", 404, "Figure 'XX-9' does not exist"),
        ("/audit/plain/figure", 422, "'id' cannot be used"),
        ("/audit/plain/example?id=nobody", 404, "Example 'nobody' does not exist"),
        ("/audit/plain/examples?cell=XY", 404, "filter cell"),
        ("/audit/plain/examples?percentile_min=500", 400, "no percentile"),
        ("/audit/plain/examples?offset=-1", 422, "'offset' cannot be used"),
        ("/audit/plain/image?id=nobody", 404, "no image"),
        ("/nowhere", 404, "no page at this address"),
    ],
)
def test_errors_are_one_sentence(reader: TestClient, place: str, status: int, words: str) -> None:
    page = reader.get(place, headers={"Accept": "text/html"})
    assert page.status_code == status
    assert 'role="alert"' in page.text
    path, mark, query = place.partition("?")
    program = reader.get(place, headers={"Accept": "application/json"})
    assert program.status_code == status
    assert words in program.json()["error"]
    if status != 404 or "plain" in place:
        assert reader.get(f"{path}.json{mark}{query}").status_code in (status, 404)


def test_an_image(reader: TestClient) -> None:
    image = reader.get("/audit/plain/image?id=id-004&size=32")
    assert image.status_code == 200
    assert image.headers["content-type"] == "image/png"
    assert image.content.startswith(b"\x89PNG")
    assert reader.get("/audit/plain/example.json?id=id-004").json()["card"]["image"]
    assert reader.get("/audit/tasks/example.json?id=id-004").json()["card"]["image"] is None


def test_files_have_the_name_of_their_content(reader: TestClient) -> None:
    for name in names():
        stem, _, ending = name.rpartition(".")
        digest = hashlib.sha256(asset(name).content).hexdigest()[:16]
        place = f"/static/{stem}.{digest}.{ending}"
        answer = reader.get(place)
        assert answer.content == asset(name).content
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert reader.get(f"/static/{name}").status_code == 404
    assert {"vega.js", "view.css", "gallery.js"} <= names()


def test_colours_are_those_of_the_report(reader: TestClient) -> None:
    """One sheet serves both; what comes after it gives no colour of the page another value."""
    sheet = (files("fairweight.report") / "templates" / "shared.css").read_text()
    assert asset("shared.css").content.decode() == sheet
    assert asset_path("shared.css") in reader.get("/").text
    for name in ("page", "ink", "soft", "line", "panel", "accent", "row"):
        assert len(re.findall(rf"--{name}: (#\w+)", sheet)) == 3  # light, dark, paper
        assert f"--{name}:" not in asset("view.css").content.decode()


def test_an_audit_made_again_is_read_again(studies: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(studies / "plain", tmp_path / "study"))
    client = TestClient(
        create_app(find_items(folder), settings=Settings()), base_url="http://localhost:8000"
    )
    key = client.get("/index.json").json()["studies"][0]["key"]
    assert client.get(f"/audit/{key}.json").json()["n_examples"] == 60
    path = folder / "audit" / "audit.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"n_examples": 999}))
    assert client.get(f"/audit/{key}.json").json()["n_examples"] == 999
    assert "999" in client.get(f"/audit/{key}").text


def test_openapi_describes_everything(reader: TestClient) -> None:
    described = reader.get("/openapi.json").json()
    for path, methods in described["paths"].items():
        for operation in methods.values():
            assert operation["summary"]
            assert operation["description"]
            for parameter in operation.get("parameters", []):
                assert parameter["description"], (path, parameter)
            if path not in ("/session.json",):
                assert {"400", "404"} & set(operation["responses"])
    twins = [path for path in described["paths"] if path.endswith(".json")]
    assert len(twins) >= 12
    for path in twins:
        content = described["paths"][path]["get"]["responses"]["200"]["content"]
        assert "application/json" in content


def test_runs_of_one_model_are_not_called_retrained(tmp_path: Path) -> None:
    table = study_rows(tasks=("smiling", "young"))
    more = table.assign(seed=table["seed"] + 3)
    made = fw.audit_table(pd.concat([table, more]), n_boot=40, members="repeated")
    made.save(tmp_path / "runs" / "audit")
    app = create_app(find_items(tmp_path), settings=Settings(annotations=tmp_path / "s.sqlite"))
    with TestClient(app, base_url=BASE, follow_redirects=True) as client:
        (key,) = [item.key for item in find_items(tmp_path)]
        for page in ("", "/variant?variant=pruned", "/level?by=group", "/task", "/figure?id=FW-7",
                     "/level?by=class&name=b&task=smiling"):  # fmt: skip
            for address in (page, page.replace("?", ".json?", 1)):
                answer = client.get(f"/audit/{key}{address}")
                assert answer.status_code == 200, address
                said = re.sub(r"datum\.\w+|p_retraining|/report[^<]*", "", answer.text)
                assert not re.search("retrain|beyond the method", said, re.IGNORECASE), address
                if page.startswith("/level"):
                    assert "same model run again" in said.lower()


def test_caveats_lead_to_their_explanation_in_the_report(reader: TestClient) -> None:
    page = reader.get("/audit/plain").text
    anchors = re.findall(r'href="/audit/plain/report#([\w-]+)">Why', page)
    assert anchors
    assert set(anchors) <= {*EXPLAINED, "notes"}


def test_a_group_may_be_named_without_quotes(reader: TestClient) -> None:
    name = HOSTILE[1]  # begins with a quote, so results write it in quotes
    written, plain = (quote(text) for text in (group_name([("age", name)]), f"age={name}"))
    pages = [
        reader.get(f"/audit/hostile/level.json?by=group&name={text}") for text in (written, plain)
    ]
    assert written != plain
    assert [page.status_code for page in pages] == [200, 200]
    assert pages[0].json() == pages[1].json()
