"""Audits open at once; answers are indexed when they are asked for, and a page says how far."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from fairweight.cli.view import _prepare
from fairweight.errors import InputError
from fairweight.tables.spec import TableSpec, sources_of
from fairweight.web import site
from fairweight.web.items import find_items
from fairweight.web.votes import builder
from fairweight.web.votes.builder import Builder, NotReadyError, built_apart, index_folder, indexed
from fairweight.web.votes.index import open_index

from .conftest import Open
from .studies import rows

Told = Callable[[str, int, int], None]


class Slow:
    """Stands for building: says that it is at three of seven, and waits until it may go on."""

    def __init__(self) -> None:
        self.at_three, self.go_on = threading.Event(), threading.Event()
        self.begun: list[str] = []
        self.error: Exception | None = None

    def __call__(self, item: Any, progress: Told) -> Path:
        self.begun.append(item.key)
        progress("reading votes", 3, 7)
        self.at_three.set()
        assert self.go_on.wait(60)
        if self.error is not None:
            raise self.error
        progress("reading votes", 7, 7)
        return indexed(item)


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    """An empty cache, a reader without patience, and a build that waits."""
    made = Slow()
    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(site, "PATIENCE", 0.05)
    monkeypatch.setattr(builder, "built_apart", made)
    yield made
    made.go_on.set()


def finished(client: TestClient, place: str) -> Any:
    """The first answer that is not to wait."""
    for _ in range(600):
        answer = client.get(place)
        if answer.status_code != 503:
            return answer
    raise AssertionError("It was never ready.")


def test_a_page_says_how_far_the_index_is_and_comes_back(opened: Open, slow: Slow) -> None:
    client = opened()
    client.get("/audit/plain/examples")
    assert slow.at_three.wait(60)
    page = client.get("/audit/plain/examples", headers={"Accept": "text/html"})
    assert page.status_code == 503
    assert page.headers["refresh"] == page.headers["retry-after"] == "2"
    assert "reading votes, 3 of 7" in page.text
    assert 'role="status"' in page.text
    twin = client.get("/audit/plain/examples.json")
    assert (twin.status_code, twin.headers["retry-after"]) == (503, "2")
    assert "refresh" not in twin.headers
    assert "3 of 7" in twin.json()["error"]
    for at_once in ("/", "/audit/plain", "/audit/plain/report"):
        assert client.get(at_once).status_code == 200
    slow.go_on.set()
    assert finished(client, "/audit/plain/examples.json").json()["total"] == 60
    assert slow.begun == ["plain"]


def test_indexes_are_built_one_after_the_other(opened: Open, slow: Slow) -> None:
    client = opened()
    client.get("/audit/plain/examples")
    assert slow.at_three.wait(60)
    assert "waiting for others" in client.get("/audit/tasks/examples.json").json()["error"]
    assert slow.begun == ["plain"]
    slow.go_on.set()
    assert finished(client, "/audit/tasks/examples.json").json()["total"] == 30
    assert slow.begun == ["plain", "tasks"]


def test_an_error_is_told_once_and_then_it_is_tried_again(opened: Open, slow: Slow) -> None:
    client = opened()
    slow.error = InputError("The table is torn; copy it again.")
    assert client.get("/audit/plain/pairs.json").status_code == 503
    slow.go_on.set()
    refused = finished(client, "/audit/plain/pairs.json")
    assert (refused.status_code, refused.json()["error"]) == (400, str(slow.error))
    slow.error = None
    assert finished(client, "/audit/plain/pairs.json").status_code == 200


def test_a_server_that_ends_stops_building(studies: Path, slow: Slow) -> None:
    builder = Builder()
    first, second, *_ = find_items(studies)
    for item in (first, second):
        with pytest.raises(NotReadyError):
            builder.folder(item)
    assert slow.at_three.wait(60)
    ended = threading.Thread(target=builder.close)
    ended.start()
    while not builder._ends:
        time.sleep(0.005)
    slow.go_on.set()
    ended.join(60)
    assert slow.begun == [first.key]
    assert not index_folder(first).exists()  # the next word of progress ended it


def test_a_process_builds_tells_and_stops(
    studies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path / "cache"))
    item = find_items(studies / "plain")[0]
    told: list[tuple[object, ...]] = []

    def stop(*words: object) -> None:
        told.append(words)
        if len(told) > 1:
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        built_apart(item, stop)
    # Nothing half-written is left; a build so small may have been done before it was stopped.
    left = {folder.name for folder in (tmp_path / "cache" / "views").glob("*") if folder.is_dir()}
    assert left <= {index_folder(item).name}
    shutil.rmtree(index_folder(item), ignore_errors=True)
    built_apart(item, lambda *words: told.append(words))
    assert told[-1][1] == told[-1][2]
    assert open_index(index_folder(item)).task().n_examples == 60
    lost = replace(item, tables=TableSpec(sources_of("nowhere.parquet")))
    with pytest.raises(InputError, match="nowhere"):
        built_apart(lost, lambda *_: None)


@pytest.mark.parametrize("several", [True, False])
def test_only_a_table_alone_is_indexed_before_the_first_page(
    studies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, several: bool
) -> None:
    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path / "cache"))
    alone = tmp_path / "preds.csv"
    rows(12).to_csv(alone, index=False)
    items = find_items(studies if several else alone)
    _prepare(items, lambda *_: None)
    assert [index_folder(item).exists() for item in items] == ([False] * 3 if several else [True])
