"""Whatever goes wrong is one sentence: on a page for people, in JSON for programs."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairweight.base.wording import shown
from fairweight.errors import InputError, OutputError, UnknownNameError
from fairweight.web.rendering import as_json, rendered
from fairweight.web.votes.builder import NotReadyError

_LOG = logging.getLogger("fairweight.web")
_LONGEST = 600  # a name of 10,000 characters need not be said in full
_TITLES = {
    400: "That cannot be shown",
    401: "A token is needed",
    403: "Not allowed",
    404: "Not here",
    405: "Not in this way",
    413: "Too large",
    421: "Another server was meant",
    422: "That cannot be read",
    500: "An error of ours",
    503: "Just a moment",
}
_PLAIN = {  # of the framework itself
    "Not Found": "There is no page at this address; start at the list of studies",
    "Method Not Allowed": "This address takes another HTTP method",
}
_AGAIN = "2"  # seconds until a page that is not ready is asked for again


@dataclass(frozen=True)
class Problem:
    """One sentence: what was given, and the remedy."""

    error: str


def refusal(scope: Scope, status: int, sentence: str) -> Response:
    """The answer to a request that is not served."""
    problem = Problem(shown(sentence, _LONGEST))
    # JSON for twins, for writes, and for whoever does not ask for pages.
    accepted = HTTPConnection(scope).headers.get("accept", "text/html")
    program = scope["method"] != "GET" or str(scope["path"]).endswith(".json")
    if program or "text/html" not in accepted:
        return as_json(problem, status)
    title = _TITLES.get(status, "That did not work")
    return rendered("error.html.j2", {"title": title, "problem": problem, "status": status}, status)


def problem_of(request: Request, error: Exception) -> Response:
    """The answer to an exception that we, or the framework, raised on purpose."""
    status, sentence, headers = 400, str(error), {}
    if isinstance(error, UnknownNameError):
        status = 404
    elif isinstance(error, OutputError):
        status = 500
        _LOG.error("%s", error)
    elif isinstance(error, NotReadyError):
        status, headers = 503, {"Retry-After": _AGAIN}
    elif isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        sentence = f"{_PLAIN.get(error.detail, error.detail)}."
    elif isinstance(error, RequestValidationError):
        # Of the first value; never the value itself, which may be anything.
        status, first = 422, error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or "body"
        sentence = f"'{place}' cannot be used: {str(first['msg'])[:200]}."
    response = refusal(request.scope, status, sentence)
    response.headers.update(headers)
    if isinstance(error, NotReadyError) and response.media_type != "application/json":
        response.headers["Refresh"] = _AGAIN
    return response


def add_error_pages(app: FastAPI) -> None:
    """Turn every exception that is raised on purpose into a sentence."""
    for kind in (InputError, OutputError, NotReadyError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, problem_of)


class RequestLog:
    """A line per request, and a page where there was an error of ours.

    Method, path, status and time; no query, which may hold a token or a name.
    """

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

        path = shown(scope["path"], 200)
        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if status:  # the answer has begun
                raise
            _LOG.error("internal error at %s", path, exc_info=error)
            sentence = f"Internal error ({type(error).__name__}); please report it."
            await refusal(scope, 500, sentence)(scope, receive, watched)
        finally:
            took = 1000 * (time.perf_counter() - begun)
            _LOG.info("%s %s %d %.0f ms", shown(scope["method"], 10), path, status, took)
