"""The application: pages inside layers of safety."""

from __future__ import annotations

import errno
import gc
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread
import uvicorn
from fastapi import FastAPI

import fairweight
from fairweight.errors import InputError
from fairweight.web import page
from fairweight.web.items import Item
from fairweight.web.pages import annotation, audit, examples, studies
from fairweight.web.problems import RequestLog, add_error_pages
from fairweight.web.security import (
    MOST_AT_ONCE,
    MOST_WAITING,
    BodyLimit,
    KnownHosts,
    SafeWrites,
    SecureHeaders,
    TimelyProtocol,
    TokenAccess,
)
from fairweight.web.site import Settings, Site

# A page is computed by one thread: more of them would only wait for each other.
THREADS = 8
_ABOUT = (
    "Who pays when a neural network is compressed: audits, figures and examples. Every page has a "
    "twin for programs at its address + `.json`, with the same parameters and the same numbers."
)
# Addresses are compared in this order: that of an audit comes last.
_PAGES = (
    studies,
    examples,
    annotation,
    audit,
    page,
)


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
    # From the inside out: what is added last is asked first.
    app.add_middleware(BodyLimit, most=settings.max_body)
    app.add_middleware(SafeWrites, secret=site.csrf, writable=settings.writable)
    if settings.token is not None:
        app.add_middleware(TokenAccess, token=settings.token, port=settings.port)
    app.add_middleware(KnownHosts, served=settings.host)
    app.add_middleware(RequestLog)
    app.add_middleware(SecureHeaders)
    return app


# A server that listens, says so, and ends cleanly.

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
        raise InputError(f"--port {port} is not a port number; give one from 1024 to 65535.")
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
        why = f"--host '{host}' cannot be used ({error.strerror}); give an address of this machine."
        if error.errno == errno.EADDRINUSE:
            why = f"Port {port} is taken; give another one with --port, or 0 for any that is free."
        elif error.errno == errno.EACCES:
            why = f"Port {port} may not be used; give one above 1024 with --port."
        raise InputError(why) from None
    return made


def address(settings: Settings) -> str:
    """What is opened in a browser, with the token where there is one."""
    wildcard = settings.host in ("0.0.0.0", "::", "")
    name = socket.gethostname() if wildcard else settings.host
    host = f"[{name}]" if ":" in name else name
    token = "" if settings.token is None else f"?token={settings.token}"
    return f"http://{host}:{settings.port}/{token}"


class Server(uvicorn.Server):
    """A server that is not started yet; `ready` is called when it listens."""

    def __init__(self, app: FastAPI, ready: Callable[[], None]) -> None:
        super().__init__(
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
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        self._ready()


def run(app: FastAPI, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until somebody presses Ctrl-C."""

    def started() -> None:
        gc.freeze()  # modules stay; looking through them again and again would halt all pages
        ready()

    try:
        Server(app, started).run(sockets=[listener])
    finally:
        gc.unfreeze()  # what is left in the end is cleared up as ever
