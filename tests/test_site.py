"""The documentation as a site: every page is in it, nothing comes from the network, it builds."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


class Config(yaml.SafeLoader):
    """Reads mkdocs.yml without making the objects that it names."""


Config.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    read: dict[str, Any] = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Config)
    return read


@pytest.fixture
def hooks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("mkdocs")
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("site_hooks")


def pages(part: Any) -> Iterator[str]:
    """The files that a part of the navigation names."""
    if isinstance(part, str):
        yield part
    else:
        for inner in part if isinstance(part, list) else part.values():
            yield from pages(inner)


def test_every_page_is_in_the_navigation_once(config: dict[str, Any], hooks: ModuleType) -> None:
    named = list(pages(config["nav"]))
    stored = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert sorted(named) == sorted(stored | set(hooks.OF_THE_ROOT.values()))


def test_the_sections_are_those_that_were_asked_for(config: dict[str, Any]) -> None:
    titles = [title for entry in config["nav"] for title in entry]
    wanted = ["Home", "Guide", "How-tos", "Reference", "Gallery", "Results", "Errata"]
    assert titles[: len(wanted)] == wanted


def test_the_configuration_asks_for_nothing_from_the_network(config: dict[str, Any]) -> None:
    assert config["theme"]["font"] is False
    assert "https://" not in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    # Without a stand-in of this name the offline plugin takes one from the network.
    assert any("iframe-worker" in script for script in config["extra"]["polyfills"])
    assert config["strict"] is True
    assert config["validation"]["links"]["anchors"] == "warn"


def test_lists_and_tables_stand_apart_but_code_stays(hooks: ModuleType) -> None:
    given = ["Say:", "- a", "  more", "- b", "", "Then", "| c |", "|---|", "| `d\\|e` |"]
    given += ["```sh", "x", "- y", "| `f\\|g` |", "```"]
    assert list(hooks.apart(given, str.upper)) == [
        "SAY:", "", "- A", "  MORE", "- B", "", "THEN", "", "| C |", "|---|", "| `D|E` |",
        "```sh", "x", "- y", "| `f\\|g` |", "```",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "given", "made"),
    [
        ("index.md", "[a](../ARCHITECTURE.md#why)", "[a](architecture.md#why)"),
        ("how-to/choose.md", "[a](../guide.md) [b](#c)", "[a](../guide.md) [b](#c)"),
        ("architecture.md", "[a](docs/how-to/choose.md)", "[a](how-to/choose.md)"),
        ("how-to/choose.md", "[a](../../CHANGELOG.md)", "[a](../changelog.md)"),
        ("decisions/index.md", "[`a`](../../src/a.py), [b](../b.md)", "`a`, [b](../b.md)"),
        ("index.md", "[a](https://example.org/docs/x.md)", "[a](https://example.org/docs/x.md)"),
    ],
)
def test_links_to_the_root_lead_to_its_pages(
    hooks: ModuleType, place: str, given: str, made: str
) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=place))
    assert hooks.on_page_markdown(given, page, None, None) == made + "\n"


class Loaded(HTMLParser):
    """What a page makes a browser load: scripts, styles, pictures, frames."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") not in ("stylesheet", "icon", "preload"):
            return
        if tag in ("script", "img", "iframe", "source", "link"):
            self.found += [str(given[name]) for name in ("src", "href") if given.get(name)]


def test_what_a_page_loads_is_seen() -> None:
    page = Loaded()
    page.feed('<link rel="stylesheet" href="a.css"><a href="b"></a><script src="c.js"></script>')
    assert page.found == ["a.css", "c.js"]


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_without_a_network(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    built = sorted((tmp_path / "site").rglob("*.html"))
    assert len(built) > 40
    for path in built:
        page = Loaded()
        page.feed(path.read_text(encoding="utf-8"))
        assert len(page.found) >= 3, path.name
        outside = [name for name in page.found if re.match(r"(https?:)?//", name)]
        assert outside == [], path.name
    assert (tmp_path / "site/search/search_index.js").stat().st_size > 100_000
