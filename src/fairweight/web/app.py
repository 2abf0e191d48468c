"""The application: pages inside layers of safety."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import anyio.to_thread
from fastapi import FastAPI

import fairweight
from fairweight.web.errors import Unforeseen, add_error_pages
from fairweight.web.item import Item
from fairweight.web.pages import (
    annotate,
    assets,
    example,
    examples,
    figure,
    image,
    level,
    overview,
    pairs,
    progress,
    report,
    studies,
    task,
    variant,
)
from fairweight.web.request_log import RequestLog
from fairweight.web.security.access import TokenAccess
from fairweight.web.security.body import BodyLimit
from fairweight.web.security.headers import SecureHeaders
from fairweight.web.security.hosts import KnownHosts
from fairweight.web.security.writes import SafeWrites
from fairweight.web.settings import Settings
from fairweight.web.site import Site

# A page is computed by one thread: more of them would only wait for each other.
THREADS = 8
_ABOUT = (
    "Who pays when a neural network is compressed: audits, figures and examples. Every page has a "
    "twin for programs at its address + `.json`, with the same parameters and the same numbers."
)
# `image` and `report` before `overview`: addresses are compared in this order.
_PAGES = (
    studies, examples, example, pairs, image, progress, annotate, variant, level, task, figure,
    report, overview, assets,
)  # fmt: skip


def create_app(items: Sequence[Item], *, settings: Settings) -> FastAPI:
    """The pages of these studies."""
    site = Site(items, settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield
        site.close()

    app = FastAPI(
        title="fairweight",
        version=fairweight.__version__,
        description=_ABOUT,
        # The pages of FastAPI load scripts from a network; the description itself stays.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.site = site
    for module in _PAGES:
        app.include_router(module.router)
    add_error_pages(app)
    _add_layers(app, site)
    return app


def _add_layers(app: FastAPI, site: Site) -> None:
    """From the inside out: what is added last is asked first."""
    settings = site.settings
    app.add_middleware(BodyLimit, most=settings.max_body)
    app.add_middleware(SafeWrites, secret=site.csrf, writable=settings.writable)
    if settings.token is not None:
        app.add_middleware(TokenAccess, token=settings.token, port=settings.port)
    app.add_middleware(KnownHosts, served=settings.host)
    app.add_middleware(Unforeseen)
    app.add_middleware(RequestLog)
    app.add_middleware(SecureHeaders)
