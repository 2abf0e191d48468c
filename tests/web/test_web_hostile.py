"""Names of any kind are shown as text, and lead to no other file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

from fairweight.data.codecs import png
from fairweight.tables.names import group_name
from fairweight.web.application import create_app
from fairweight.web.items import find_items
from fairweight.web.site import Settings

from .conftest import headers_of
from .studies import HOSTILE
from .test_web_pages import Found

PATHS = (
    "../../../../etc/passwd", "/etc/passwd", "..\\..\\windows", "%2e%2e%2fetc%2fpasswd",
    "\x00", "a\x00b", "\u202e", "x" * 10_000, "<b>", "'; DROP TABLE log; --", "\ud800",
)  # fmt: skip


def harmless(client: TestClient, place: str) -> str:
    answer = client.get(place)
    assert answer.status_code == 200, answer.text[:300]
    shown = Found(answer.text)
    assert shown.inline == []
    assert not any(link == "x" or link.startswith(("javascript", "//")) for link in shown.links)
    for raw in ("\x00", "<script>alert", "<img src=x"):
        assert raw not in answer.text
    assert "\u202e" not in "".join(shown.words)  # nor turns a line round
    return answer.text


@pytest.mark.parametrize(
    "page",
    ["", "/variant", "/level?by=group", "/examples?limit=96", "/pairs", "/annotations"],
)
def test_pages_of_a_hostile_study(reader: TestClient, page: str) -> None:
    text = harmless(reader, f"/audit/hostile{page}")
    if page.startswith(("/level", "/examples")):
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
        assert "null\\x00byte" in text
        assert "{{ 7 * 7 }}" in text


@pytest.mark.parametrize("name", HOSTILE)
def test_pages_about_one_hostile_name(reader: TestClient, name: str) -> None:
    found = reader.get(f"/audit/hostile/example.json?id={quote(name)}").json()
    assert found["card"]["id"] == name
    harmless(reader, f"/audit/hostile/example?id={quote(name)}")
    picture = reader.get(f"/audit/hostile/image?id={quote(name)}")
    assert picture.headers["content-type"] == "image/png"
    chosen = reader.get(f"/audit/hostile/examples.json?group.age={quote(name)}").json()
    assert chosen["total"] == 5  # every eighth of 40


@pytest.mark.parametrize(
    "name", [*HOSTILE[:4], *(pytest.param(name, marks=pytest.mark.slow) for name in HOSTILE[4:])]
)
def test_the_page_of_a_hostile_group(reader: TestClient, name: str) -> None:
    group = quote(group_name([("age", name)]))
    harmless(reader, f"/audit/hostile/level?by=group&name={group}")


def parameters(reader: TestClient) -> list[tuple[str, str, dict[str, str]]]:
    """Address, parameter, and what else must be given, of everything that can be asked for."""
    found = []
    for path, methods in reader.get("/openapi.json").json()["paths"].items():
        if "get" in methods:
            own = methods["get"].get("parameters", [])
            needed = {p["name"]: "x" for p in own if p.get("required") and p["in"] == "query"}
            names = [*(p["name"] for p in own), "group.age"]
            found += [(path, name, needed) for name in names]
    return found


def check_parameters(reader: TestClient, turn: int) -> int:
    """Every parameter gets one of the values: no error of ours, and no file."""
    asked = parameters(reader)
    for place, (path, name, needed) in enumerate(asked):
        said = quote(PATHS[(place + turn) % len(PATHS)], errors="surrogatepass")
        address = path.replace("{key}", said if name == "key" else "plain")
        query = "&".join(f"{k}={v}" for k, v in (needed | {name: said}).items())
        answer = reader.get(f"{address}?{query}")
        assert answer.status_code in (200, 307, 400, 404, 422), (path, name, said)
        assert "root:" not in answer.text
    return len(asked)


def test_every_parameter_takes_anything(reader: TestClient) -> None:
    assert check_parameters(reader, 0) > 100


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(1, len(PATHS)))
def test_every_parameter_takes_everything(reader: TestClient, turn: int) -> None:
    assert check_parameters(reader, turn) > 100


def test_hostile_annotations(client: TestClient) -> None:
    headers = headers_of(client)
    for name in HOSTILE:
        sent = {
            "example_id": HOSTILE[0], "verdict": "label_wrong", "note": name,
            "label": name[:200], "annotator": name[:200],
        }  # fmt: skip
        answer = client.post("/audit/hostile/annotate", json=sent, headers=headers)
        assert answer.status_code == 200
        assert answer.json()["given"][-1]["note"] == name
    harmless(client, "/audit/hostile/annotations")
    harmless(client, f"/audit/hostile/example?id={quote(HOSTILE[0])}")
    harmless(client, "/audit/hostile/examples?annotated=yes")


def test_half_a_character_is_refused(client: TestClient) -> None:
    headers = headers_of(client) | {"Content-Type": "application/json"}
    for field in ("note", "annotator", "label", "example_id", "task", "verdict"):
        sent = {"example_id": "id-004", "verdict": "label_wrong"} | {field: "\ud800"}
        answer = client.post("/audit/plain/annotate", content=json.dumps(sent), headers=headers)
        assert answer.status_code in (400, 404, 422)
        assert answer.json()["error"].endswith(".")


def test_long_notes(client: TestClient) -> None:
    headers = headers_of(client)
    sent = {"example_id": "id-004", "verdict": "fine", "note": "x" * 10_000}
    assert client.post("/audit/plain/annotate", json=sent, headers=headers).status_code == 200
    sent["note"] += "x"
    assert client.post("/audit/plain/annotate", json=sent, headers=headers).status_code == 422


@pytest.mark.parametrize("damage", [b"age=\\ud800old", b"age=\xffold"])
def test_an_audit_that_is_no_text(studies: Path, tmp_path: Path, damage: bytes) -> None:
    folder = Path(shutil.copytree(studies / "plain", tmp_path / "study"))
    path = folder / "audit" / "audit.json"
    path.write_bytes(path.read_bytes().replace(b"age=old", damage))
    app = create_app(find_items(folder), settings=Settings())
    client = TestClient(app, base_url="http://localhost:8000")
    key = client.get("/index.json").json()["studies"][0]["key"]
    for page in (".json", "/variant.json", "/level.json?by=group"):
        answer = client.get(f"/audit/{key}{page}")
        assert answer.status_code == 400
        assert "UTF-8" in answer.json()["error"]
        assert str(tmp_path) not in answer.json()["error"]


def test_images_outside_the_study_are_not_shown(studies: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(studies / "plain", tmp_path / "study"))
    secret = tmp_path / "secret.png"
    secret.write_bytes(png(np.zeros((8, 8), dtype=np.uint8)))
    (folder / "inside.png").write_bytes(secret.read_bytes())
    (folder / "link.png").symlink_to(secret)
    paths = {
        "id-000": "inside.png", "id-001": "../secret.png", "id-002": str(secret),
        "id-003": "link.png", "id-004": "missing.png", "id-005": "in\x00side.png",
    }  # fmt: skip
    pd.DataFrame({"example_id": list(paths), "image_path": list(paths.values())}).to_parquet(
        folder / "examples.parquet"
    )
    client = TestClient(
        create_app(find_items(folder), settings=Settings()), base_url="http://localhost:8000"
    )
    key = client.get("/index.json").json()["studies"][0]["key"]
    found = [client.get(f"/audit/{key}/image?id={name}").status_code for name in paths]
    assert found == [200, 404, 404, 404, 404, 404]
