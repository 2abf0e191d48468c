"""Who may look: a token, exchanged once for a cookie that scripts cannot read.

The token comes in the first address that is opened (`?token=…`). The answer sets the cookie and
leads to the same address without it, so that it stays in no history and no bookmark.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
from html import escape
from typing import Any
from urllib.parse import urlencode, urlsplit

import h11
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from fairweight.web.problems import refusal

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


# No request is larger than it may be, whether it says its length or comes in pieces.


class BodyLimit:
    """Read a body up to the limit before anything else sees it."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = HTTPConnection(scope).headers.get("content-length", "0")
        length = int(said) if said.isascii() and said.isdecimal() else 0
        try:
            body = None if length > self._most else await self._read(receive)
        except ClientDisconnect:
            return  # half a file is no file
        if body is None:
            sentence = f"The request is larger than {self._most:,} bytes; send less at once."
            response = refusal(scope, 413, sentence)
            # What is still under way is not read: the connection ends here.
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return
        left = [body]

        async def again() -> Message:
            if not left:
                return await receive()
            return {"type": "http.request", "body": left.pop(), "more_body": False}

        await self._app(scope, again, send)

    async def _read(self, receive: Receive) -> bytes | None:
        parts: list[bytes] = []
        length = 0
        while True:
            message = await receive()
            if message["type"] != "http.request":  # the reader has gone
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            length += len(parts[-1])
            if length > self._most:
                return None
            if not message.get("more_body", False):
                return b"".join(parts)


# Requests arrive whole and in time, so that those who only begin one keep nobody out.
#
# uvicorn has a time limit between two requests and none within one, and its limit of connections
# counts those that have sent half a line. Here a connection that waits for its client (nothing
# came yet, half a request, the pause after an answer) has a time to do so, and of such connections
# there are at most `MOST_WAITING`: one more, and another is cut off. Those that have asked
# something already go first, then those that have waited longest. Requests that are there in full
# have places of their own.

MOST_AT_ONCE = 200  # whole requests; beyond it one is answered with 503
# So many that a client which sends at once is read before as many others can connect.
MOST_WAITING = 500
HEAD_SECONDS = 10.0  # from the end of the last answer, or the connection, to the end of the headers
BODY_SECONDS = 120.0  # the largest file that may be imported, at half a megabit per second
READ_SECONDS = 60.0  # for which an answer is held that nobody fetches


class TimelyProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with an end to waiting."""

    _phase: Any = None  # what is waited for: headers (IDLE), a body (SEND_BODY), or nothing
    _since = 0.0
    _limit: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(READ_SECONDS, self._cut_off)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _watch(self) -> None:
        """Start the time of what is waited for, when that has changed."""
        state = self.conn.their_state
        phase = state if state in (h11.IDLE, h11.SEND_BODY) else None
        if phase is self._phase or self.transport.is_closing():
            return
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        if self._phase is None:  # a body belongs to the wait that began with its headers
            self._since = self.loop.time()
        self._phase = phase
        if phase is None:
            return
        seconds = HEAD_SECONDS if phase is h11.IDLE else BODY_SECONDS
        self._limit = self.loop.call_later(seconds, self._cut_off)
        others: set[Any] = self.connections
        waiting = [one for one in others if one._phase is not None]
        if len(waiting) > MOST_WAITING:
            min(waiting, key=lambda one: (one.cycle is None, one._since))._cut_off()

    def _cut_off(self) -> None:
        self._stop_timers()
        self.connections.discard(self)  # its place is free now, not when the loop comes round
        self.transport.abort()

    def _stop_timers(self) -> None:
        for timer in (self._limit, self._unread):
            if timer is not None:
                timer.cancel()
        self._limit = self._unread = None


# Headers of every answer: what a page may load, and who may embed it.

# Scripts and styles are files of ours: a name in the data can never become code. The one data:
# address is the empty icon.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A stored report is somebody's file with scripts inside: it runs in a world of its own (no origin,
# no cookies, no storage of ours), and loads nothing.
STORED_REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class SecureHeaders:
    """Add the headers; a page may only narrow what it is allowed (`STORED_REPORT_POLICY`)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", POLICY)
                headers.setdefault("Cache-Control", "no-store")
                for name, value in _ALWAYS.items():
                    headers[name] = value
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


# Which names a request may use for this server.
#
# A page of a stranger can point a domain of its own at 127.0.0.1 and read what is served there
# (DNS rebinding). The browser then still sends the stranger's name in `Host`, so only known names,
# and addresses written as numbers, are answered.

_LOCAL = "localhost"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> [is_loopback(h) for h in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "192.168.0.7")]
    [True, True, True, False, False]
    """
    address = _address(host)
    return host.lower() == _LOCAL if address is None else address.is_loopback


def host_name(header: str) -> str:
    """The name in a `Host` header, without the port; empty where it has another form.

    >>> host_name("localhost:8000"), host_name("[::1]:8000"), host_name("a@b"), host_name("x:y")
    ('localhost', '::1', '', '')
    """
    if header.startswith("["):
        name, _, rest = header[1:].partition("]")
    else:
        name, colon, port = header.partition(":")
        rest = colon + port
    whole = not rest or (rest[0] == ":" and rest[1:].isdecimal())
    plain = all(c.isalnum() or c in ".-:_" for c in name)
    return name.lower() if whole and plain else ""


def known_host(header: str, served: str) -> bool:
    """Whether a `Host` header names the server that listens on the address `served`.

    >>> known_host("localhost:8000", "127.0.0.1"), known_host("evil.example", "127.0.0.1")
    (True, False)
    >>> known_host("192.168.0.7:8000", "0.0.0.0"), known_host("192.168.0.7:8000", "127.0.0.1")
    (True, False)
    """
    name = host_name(header)
    if not name:
        return False
    if is_loopback(name) or name == served.lower():
        return True
    if is_loopback(served):
        return False
    own = socket.gethostname().lower()
    return _address(name) is not None or name in (own, f"{own}.local")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address that a name is; None where it is no number."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


class KnownHosts:
    """Refuse requests that name another server."""

    def __init__(self, app: ASGIApp, served: str) -> None:
        self._app, self._served = app, served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        named = HTTPConnection(scope).headers.getlist("host")
        if len(named) == 1 and known_host(named[0], self._served):
            await self._app(scope, receive, send)
            return
        sentence = "The Host header names another server; open the address that fairweight printed."
        await refusal(scope, 421, sentence)(scope, receive, send)


# Writes come from our own pages only.
#
# Three rules, of which each would do alone in most browsers: `Origin` is this server,
# `Sec-Fetch-Site` (where the browser sends it) says so too, and a secret is sent along that only
# our pages hold.

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
