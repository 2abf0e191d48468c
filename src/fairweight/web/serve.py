"""A server that listens, says so, and ends cleanly."""

from __future__ import annotations

import errno
import gc
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fairweight.errors import InputError
from fairweight.web.settings import Settings

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

WAITING = 128  # connections that are not accepted yet


def made_token() -> str:
    """A token that cannot be guessed."""
    return secrets.token_urlsafe(24)


def token_in(path: Path) -> str:
    """The token in a file that only its owner can read; made where there is none."""
    try:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            if os.name != "nt" and path.stat().st_mode & 0o077:
                raise InputError(
                    f"--token-file '{path}' can be read by others; run: chmod 600 {path}"
                ) from None
            return path.read_text(encoding="ascii").strip()
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(made := made_token())
            return made
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--token-file '{path}' cannot be used ({error}); name another.") from None


def listening(host: str, port: int) -> socket.socket:
    """A socket at an address; an error says why there cannot be one."""
    if not 0 <= port <= 65535:
        raise InputError(f"--port {port} does not exist; give one from 1024 to 65535.")
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError):
        raise InputError(f"--host '{host}' is no address of this machine.") from None
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(WAITING)
    except OSError as error:
        made.close()
        raise InputError(_why(error, host, port)) from None
    return made


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is taken; give another one with --port, or 0 for any that is free."
    if error.errno == errno.EACCES:
        return f"Port {port} may not be used; give one above 1024 with --port."
    return f"--host '{host}' cannot be listened on ({error.strerror}); is it of this machine?"


def address(settings: Settings) -> str:
    """What is opened in a browser, with the token where there is one."""
    wildcard = settings.host in ("0.0.0.0", "::", "")
    name = socket.gethostname() if wildcard else settings.host
    host = f"[{name}]" if ":" in name else name
    token = "" if settings.token is None else f"?token={settings.token}"
    return f"http://{host}:{settings.port}/{token}"


def server(app: FastAPI, ready: Callable[[], None]) -> uvicorn.Server:
    """A server that is not started yet; `ready` is called when it listens."""
    import uvicorn

    from fairweight.web.security.connections import MOST_AT_ONCE, MOST_WAITING, TimelyProtocol

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

    return Server(
        uvicorn.Config(
            app,
            http=TimelyProtocol,
            log_level="warning",
            access_log=False,  # its lines hold queries; ours do not
            server_header=False,
            ws="none",
            backlog=WAITING,
            limit_concurrency=MOST_AT_ONCE + MOST_WAITING,
            timeout_graceful_shutdown=3,
        )
    )


def run(app: FastAPI, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until somebody presses Ctrl-C."""

    def started() -> None:
        gc.freeze()  # modules stay; looking through them again and again would halt all pages
        ready()

    try:
        server(app, started).run(sockets=[listener])
    finally:
        gc.unfreeze()  # what is left in the end is cleared up as ever
