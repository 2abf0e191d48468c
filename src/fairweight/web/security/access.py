"""Who may look: a token, exchanged once for a cookie that scripts cannot read.

The token comes in the first address that is opened (`?token=…`). The answer sets the cookie and
leads to the same address without it, so that it stays in no history and no bookmark.
"""

from __future__ import annotations

import secrets
from html import escape
from urllib.parse import urlencode

from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from fairweight.web.errors import refusal

_ONWARDS = (
    '<!doctype html><meta charset="utf-8"><title>fairweight</title><link rel="icon" href="data:,">'
    '<meta http-equiv="refresh" content="0; url={place}"><p><a href="{place}">Open fairweight</a>'
)


def same(given: str, secret: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell how much of them is."""
    return secrets.compare_digest(given.encode("utf-8", "replace"), secret.encode())


class TokenAccess:
    """Let those in who have the token, or the cookie that was given for it."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app, self._token = app, token
        # Cookies know no ports: two servers on one machine need two names.
        self._cookie = f"fairweight-{port}"
        # Not the token itself: a cookie of an earlier start is worth nothing.
        self._session = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        given = request.query_params.getlist("token")
        if given and scope["method"] == "GET" and any(same(word, self._token) for word in given):
            await self._exchange(request)(scope, receive, send)
            return
        if self._known(request):
            await self._app(scope, receive, send)
            return
        sentence = "This server needs its token; open the address that fairweight printed."
        await refusal(scope, 401, sentence)(scope, receive, send)

    def _known(self, request: HTTPConnection) -> bool:
        scheme, _, word = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and same(word.strip(), self._token):
            return True
        return same(request.cookies.get(self._cookie, ""), self._session)

    def _exchange(self, request: HTTPConnection) -> Response:
        rest = [pair for pair in request.query_params.multi_items() if pair[0] != "token"]
        # One slash: two would name another server.
        place = "/" + request.url.path.lstrip("/\\")
        query = urlencode(rest, errors="replace")
        response: Response = RedirectResponse(place + (f"?{query}" if query else ""), 303)
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            # A browser keeps the new cookie back on a redirect that another page began (a file,
            # a link in a chat). This page begins the next request itself.
            response = HTMLResponse(onwards(response.headers["location"]))
        response.set_cookie(self._cookie, self._session, httponly=True, samesite="strict", path="/")
        return response


def onwards(url: str) -> str:
    """A page that leads to an address: in a file, so that the address is in no process list."""
    return _ONWARDS.format(place=escape(url))
