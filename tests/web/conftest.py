"""The application over small studies, asked without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from fairweight.report import html
from fairweight.web import site
from fairweight.web.application import create_app
from fairweight.web.items import find_items
from fairweight.web.site import Settings
from fairweight.web.votes import builder
from fairweight.web.votes.builder import indexed

from .studies import HOSTILE, rows, write_study

BASE = "http://127.0.0.1:8000"


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Indexes of tests are no business of the user's cache; the large bundle stays in it."""
    with pytest.MonkeyPatch.context() as patch:
        kept = html.javascript()
        patch.setattr(html, "javascript", lambda: kept)
        patch.setenv("FAIRWEIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(site, "PATIENCE", 300.0)  # a busy machine changes no answer
        patch.setattr(builder, "built_apart", indexed)  # a process takes longer than small tables
        yield


@pytest.fixture(scope="session")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`plain`, `tasks` and `hostile`."""
    root = tmp_path_factory.mktemp("studies")
    write_study(root / "plain", rows())
    write_study(root / "tasks", rows(30, tasks=("smiling", "young")), images=False)
    write_study(root / "hostile", rows(40, names=HOSTILE))
    return root


Open = Callable[..., TestClient]


@pytest.fixture
def opened(studies: Path, tmp_path: Path) -> Iterator[Open]:
    """Open the application: `opened(read_only=True)`."""
    items = find_items(studies)
    clients: list[TestClient] = []

    def made(base: str = BASE, **changes: object) -> TestClient:
        settings = Settings(annotations=tmp_path / "said.sqlite", **changes)
        app = create_app(items, settings=settings)
        clients.append(TestClient(app, base_url=base, follow_redirects=False))
        clients[-1].__enter__()
        return clients[-1]

    yield made
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture
def client(opened: Open) -> TestClient:
    """An application of its own, for tests that write."""
    return opened()


@pytest.fixture(scope="session")
def reader(studies: Path) -> Iterator[TestClient]:
    """One application for all tests that only look."""
    settings = Settings(annotations=studies / "said.sqlite")
    app = create_app(find_items(studies), settings=settings)
    with TestClient(app, base_url=BASE, follow_redirects=False) as made:
        yield made


def headers_of(client: TestClient) -> dict[str, str]:
    """What a page of ours sends along with a write."""
    secret = client.get("/session.json").json()["csrf"]
    return {"Origin": str(client.base_url).rstrip("/"), "X-CSRF-Token": secret}
