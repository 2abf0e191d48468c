"""Whatever goes wrong is one sentence: on a page for people, in JSON for programs."""

from __future__ import annotations

import logging
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
_AGAIN = "2"  # seconds until a page that is not ready is asked for again


@dataclass(frozen=True)
class Problem:
    """One sentence: what was given, and the remedy."""

    error: str


def refusal(scope: Scope, status: int, sentence: str) -> Response:
    """The answer to a request that is not served."""
    problem = Problem(shown(sentence, _LONGEST))
    if _for_program(HTTPConnection(scope), scope["method"]):
        return as_json(problem, status)
    title = _TITLES.get(status, "That did not work")
    return rendered("error.html.j2", {"title": title, "problem": problem, "status": status}, status)


def _for_program(request: HTTPConnection, method: str) -> bool:
    """Whether JSON is wanted: twins, writes, and whoever does not ask for pages."""
    if method != "GET" or str(request.scope["path"]).endswith(".json"):
        return True
    return "text/html" not in request.headers.get("accept", "text/html")


def add_error_pages(app: FastAPI) -> None:
    """Turn every exception that we raise into a sentence."""

    def unknown(request: Request, error: Exception) -> Response:
        return refusal(request.scope, 404, str(error))

    def bad(request: Request, error: Exception) -> Response:
        return refusal(request.scope, 400, str(error))

    def not_kept(request: Request, error: Exception) -> Response:
        _LOG.error("%s", error)
        return refusal(request.scope, 500, str(error))

    def not_ready(request: Request, error: Exception) -> Response:
        response = refusal(request.scope, 503, str(error))
        response.headers["Retry-After"] = _AGAIN
        if response.media_type != "application/json":
            response.headers["Refresh"] = _AGAIN
        return response

    def status(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        response = refusal(request.scope, error.status_code, _sentence(error))
        response.headers.update(error.headers or {})
        return response

    def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return refusal(request.scope, 422, _validation_sentence(error))

    app.add_exception_handler(UnknownNameError, unknown)
    app.add_exception_handler(InputError, bad)
    app.add_exception_handler(OutputError, not_kept)
    app.add_exception_handler(NotReadyError, not_ready)
    app.add_exception_handler(HTTPException, status)
    app.add_exception_handler(RequestValidationError, invalid)


_PLAIN = {  # of the framework itself
    "Not Found": "There is no page of this address; begin at the list of studies",
    "Method Not Allowed": "This address takes another method",
}


def _sentence(error: HTTPException) -> str:
    return f"{_PLAIN.get(error.detail, error.detail)}."


def _validation_sentence(error: RequestValidationError) -> str:
    """What is wrong with the first of the values; never the value, which may be anything."""
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"][1:]) or "body"
    return f"'{place}' cannot be used: {str(first['msg'])[:200]}."


class Unforeseen:
    """Our own mistakes are pages too, and carry the headers of every other answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if scope["type"] != "http" or begun:
                raise
            _LOG.error("an error of ours at %s", shown(scope["path"], 200), exc_info=error)
            sentence = f"An error of ours ({type(error).__name__}); please report it."
            await refusal(scope, 500, sentence)(scope, receive, send)
