"""Which names a request may use for this server.

A page of a stranger can point a domain of its own at 127.0.0.1 and read what is served there (DNS
rebinding). The browser then still sends the stranger's name in `Host`, so only known names, and
addresses written as numbers, are answered.
"""

from __future__ import annotations

import ipaddress
import socket

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from fairweight.web.errors import refusal

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
