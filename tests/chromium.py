"""A real Chromium without a network, for every test that looks at a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = (
    "The browser tests need Chromium and Playwright: `apt-get install chromium` (or the package of "
    "your system) and `pip install --group dev`."
)
# Nothing but this computer: names are not resolved, and no service calls home.
OFFLINE = [
    "--no-sandbox",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


def chromium() -> str | None:
    return next((path for name in NAMES if (path := shutil.which(name))), None)


def missing(what: str) -> None:
    """Fail where the suite must be whole, and skip elsewhere."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{what} is missing. {MISSING}", pytrace=False)
    pytest.skip(f"{what} is missing. {MISSING}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("Playwright")
    path = chromium()
    if path is None:
        missing("Chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=OFFLINE)
        yield opened
        opened.close()


@dataclass
class Watched:
    """A page, and everything that it complained about or asked the network for."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    context = browser.new_context(accept_downloads=True, viewport={"width": 1200, "height": 900})
    context.set_default_timeout(20_000)
    seen = Watched(context.new_page())
    seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
    seen.page.on(
        "console",
        lambda said: seen.errors.append(said.text) if said.type == "error" else None,
    )
    seen.page.on("request", lambda asked: seen.requests.append(asked.url))
    yield seen
    context.close()


@pytest.fixture
def browser_page(watched: Watched) -> Iterator[Page]:
    """A page whose console must stay empty."""
    yield watched.page
    assert watched.errors == []
