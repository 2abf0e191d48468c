"""A line per request: method, path, status, time; no query, which may hold a token or a name."""

from __future__ import annotations

import logging
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairweight.report.numbers import shown

_LOG = logging.getLogger("fairweight.web")


class RequestLog:
    """Write the lines, where somebody reads them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = time.perf_counter()
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            took = 1000 * (time.perf_counter() - begun)
            path = shown(scope["path"], 200)
            _LOG.info("%s %s %d %.0f ms", shown(scope["method"], 10), path, status, took)
