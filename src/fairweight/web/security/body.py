"""No request is larger than it may be, whether it says its length or comes in pieces."""

from __future__ import annotations

from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairweight.web.errors import refusal


class BodyLimit:
    """Read a body up to the limit before anything else sees it."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app, self._most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = HTTPConnection(scope).headers.get("content-length", "0")
        try:
            body = None if _length(said) > self._most else await self._read(receive)
        except ClientDisconnect:
            return  # half a file is no file
        if body is None:
            sentence = f"The request is larger than {self._most:,} bytes; send less at once."
            response = refusal(scope, 413, sentence)
            # What is still under way is not read: the connection ends here.
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)

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


def _length(said: str) -> int:
    return int(said) if said.isascii() and said.isdecimal() else 0


def _replayed(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
