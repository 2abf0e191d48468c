"""From a verdict in the page to a file that the overrides read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairweight.tables.annotations import Annotation, read_csv, to_csv

from .conftest import Open, headers_of


def post(client: TestClient, what: str, body: Any) -> Any:
    answer = client.post(f"/audit/plain/{what}", json=body, headers=headers_of(client))
    assert answer.status_code == 200, answer.text
    return answer.json()


def say(client: TestClient, example: str, verdict: str, who: str = "ann", **more: str) -> Any:
    return post(
        client,
        "annotate",
        {"example_id": example, "verdict": verdict, "annotator": who, **more},
    )


def test_a_verdict_is_kept_with_its_label(client: TestClient) -> None:
    fine = say(client, "id-004", "fine")  # recorded as b
    assert (fine["given"][0]["label"], fine["n_annotated"]) == ("b", 1)
    wrong = say(client, "id-005", "label_wrong", label=" a ", note="looks like a")
    assert (wrong["given"][0]["label"], wrong["given"][0]["note"]) == ("a", "looks like a")
    assert say(client, "id-006", "ambiguous", label="a")["given"][0]["label"] == ""
    card = client.get("/audit/plain/example.json?id=id-005").json()["card"]
    assert [g["verdict"] for g in card["annotations"]] == ["label_wrong"]


def test_it_is_there_after_a_new_start(opened: Open) -> None:
    say(opened(), "id-004", "model_harmful")
    page = opened().get("/audit/plain/examples.json?annotated=model_harmful").json()
    assert [card["id"] for card in page["cards"]] == ["id-004"]


def test_undo_brings_back_what_was_said_before(client: TestClient) -> None:
    say(client, "id-004", "fine")
    say(client, "id-004", "ambiguous")
    say(client, "id-004", "skip", who="bo")
    undone = post(client, "undo", {"annotator": "ann"})
    assert undone["undone"]["verdict"] == "ambiguous"
    assert undone["example_id"] == "id-004"
    assert {(g["annotator"], g["verdict"]) for g in undone["given"]} == {
        ("ann", "fine"), ("bo", "skip"),
    }  # fmt: skip
    post(client, "undo", {"annotator": "ann"})
    nothing = post(client, "undo", {"annotator": "ann"})
    assert (nothing["undone"], nothing["example_id"], nothing["n_annotated"]) == (None, None, 1)


def test_filters_by_what_was_said(client: TestClient) -> None:
    say(client, "id-004", "fine")
    say(client, "id-005", "ambiguous")
    totals = {
        wanted: client.get(f"/audit/plain/examples.json?annotated={wanted}").json()["total"]
        for wanted in ("yes", "no", "fine", "skip")
    }
    assert totals == {"yes": 2, "no": 58, "fine": 1, "skip": 0}


def test_progress_and_agreement(client: TestClient) -> None:
    for i, (ann, bo) in enumerate(
        [("fine", "fine"), ("fine", "ambiguous"), ("ambiguous", "ambiguous"), ("fine", "fine")]
    ):
        example = f"id-{i:03d}"
        say(client, example, ann)
        say(client, example, bo, who="bo")
    page = client.get("/audit/plain/annotations.json").json()
    assert (page["n_annotated"], page["n_examples"]) == (4, 60)
    assert {v["name"]: v["n"] for v in page["verdicts"] if v["n"]} == {"fine": 5, "ambiguous": 3}
    verdicts = page["agreement"][0]
    assert verdicts["raw"] == 0.75
    assert verdicts["kappa"] == pytest.approx(0.5)  # chance 3/4 · 2/4 + 1/4 · 2/4
    assert page["agreement"][1]["kappa"] is None
    assert page["agreement"][1]["reason"]
    assert (page["n_labels"], page["n_tied"], page["n_without"]) == (3, 0, 1)


def test_export_and_import(opened: Open, tmp_path: Path) -> None:
    client = opened()
    say(client, "id-004", "fine", note='=1+1, "quoted"\nsecond line')
    say(client, "id-005", "label_wrong", label="c")
    answer = client.get("/audit/plain/annotations.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="annotations.csv"'
    rows = read_csv(answer.text)
    assert [(r.example_id, r.verdict, r.label) for r in rows] == [
        ("id-004", "fine", "b"), ("id-005", "label_wrong", "c"),
    ]  # fmt: skip
    assert rows[0].note == '=1+1, "quoted"\nsecond line'
    (tmp_path / "said.sqlite").unlink()
    other = opened()
    more = to_csv([*rows, Annotation("nobody", "fine")])
    for n_new in (2, 0):  # the second time nothing is new
        sent = other.post("/audit/plain/import", content=more, headers=headers_of(other))
        assert sent.json() == {"n_rows": 3, "n_new": n_new, "n_unknown": 1}
    assert other.get("/audit/plain/annotations.csv").text == answer.text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a,b\n1,2\n", "no column 'example_id'"),
        (b"example_id,verdict\nid-004,great\n", "'great'"),
    ],
)
def test_files_that_cannot_be_imported(client: TestClient, content: bytes, words: str) -> None:
    answer = client.post("/audit/plain/import", content=content, headers=headers_of(client))
    assert answer.status_code in (400, 404)
    assert words in answer.json()["error"]
    assert client.get("/audit/plain/annotations.json").json()["n_annotated"] == 0


def test_what_cannot_be_annotated(client: TestClient) -> None:
    headers = headers_of(client)
    for body, status in (
        ({"example_id": "nobody", "verdict": "fine"}, 404),
        ({"example_id": "id-004", "verdict": "great"}, 404),
        ({"verdict": "fine"}, 422),
        ({"example_id": "id-004", "verdict": "fine", "task": "none"}, 404),
    ):
        answer = client.post("/audit/plain/annotate", json=body, headers=headers)
        assert answer.status_code == status
    assert client.get("/audit/plain/annotations.json").json()["n_annotated"] == 0


def test_tasks_are_annotated_apart(client: TestClient) -> None:
    body = {"example_id": "id-004", "verdict": "fine", "task": "young"}
    answer = client.post("/audit/tasks/annotate", json=body, headers=headers_of(client))
    assert answer.json()["task"] == "young"
    for task, n in (("young", 1), ("smiling", 0)):
        page = client.get(f"/audit/tasks/examples.json?annotated=yes&task={task}").json()
        assert page["total"] == n


def test_looking_makes_no_file(client: TestClient, tmp_path: Path) -> None:
    for page in ("/examples", "/annotations", "/annotations.csv"):
        assert client.get(f"/audit/plain{page}").status_code == 200
    assert not (tmp_path / "said.sqlite").exists()
