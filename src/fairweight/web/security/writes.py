"""Writes come from our own pages only.

Three rules, of which each would do alone in most browsers: `Origin` is this server,
`Sec-Fetch-Site` (where the browser sends it) says so too, and a secret is sent along that only our
pages hold.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from fairweight.web.errors import refusal
from fairweight.web.security.access import same

CSRF_HEADER = "X-CSRF-Token"
_READS = frozenset(("GET", "HEAD", "OPTIONS"))


class SafeWrites:
    """Refuse writes from elsewhere, and all of them where nothing may be written."""

    def __init__(self, app: ASGIApp, secret: str, *, writable: bool) -> None:
        self._app, self._secret, self._writable = app, secret, writable

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sentence = None
        if scope["type"] == "http" and scope["method"] not in _READS:
            sentence = self._refused(HTTPConnection(scope))
        if sentence is None:
            await self._app(scope, receive, send)
        else:
            await refusal(scope, 403, sentence)(scope, receive, send)

    def _refused(self, request: HTTPConnection) -> str | None:
        if not self._writable:
            return "This server is read-only; start it without --read-only to annotate."
        if not own_origin(request.headers.getlist("origin"), request.headers.get("host", "")):
            return "The Origin header is not this server; write from its own pages."
        if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return "The request was begun by another site; write from this server's own pages."
        if not same(request.headers.get(CSRF_HEADER, ""), self._secret):
            return f"The {CSRF_HEADER} header is missing or old; load the page again."
        return None


def own_origin(origins: list[str], host: str) -> bool:
    """Whether a request was begun by a page of the server that it goes to.

    >>> own_origin(["http://localhost:8000"], "localhost:8000")
    True
    >>> [own_origin(o, "localhost:8000") for o in ([], ["null"], ["http://localhost:9000"])]
    [False, False, False]
    """
    if len(origins) != 1 or not host:
        return False
    try:
        parts = urlsplit(origins[0])
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
