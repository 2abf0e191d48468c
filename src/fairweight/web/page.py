"""A page and its twin: one function makes the data, two addresses show them."""

# No postponed annotations here: dependencies of pages are values of a function's own scope.
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from fastapi import APIRouter, Depends, Path, Request
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fairweight.auditing.archive import head
from fairweight.web.items import Item
from fairweight.web.problems import Problem
from fairweight.web.rendering import (
    as_json,
    asset,
    asset_path,
    json_bytes,
    names,
    page_bytes,
    rendered,
)
from fairweight.web.site import Site

PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "A value that cannot be used, in one sentence."},
    401: {"model": Problem, "description": "The server's token is needed."},
    404: {"model": Problem, "description": "A name that does not exist."},
    421: {"model": Problem, "description": "The Host header names another server."},
    422: {"model": Problem, "description": "A value that cannot be read."},
    503: {"model": Problem, "description": "Predictions are being indexed; try again in a moment."},
}


# What only looks something up is asynchronous: a thread of the pool would cost more than the work,
# and each change of threads waits for whoever computes a page.
async def of_site(request: Request) -> Site:
    """What the pages share."""
    site: Site = request.app.state.site
    return site


OfSite = Annotated[Site, Depends(of_site)]
Key = Annotated[str, Path(description="The study's short name, as the list of studies has it.")]


async def item_of(site: OfSite, key: Key) -> Item:
    """The study that is looked at."""
    return site.item(key)


OfItem = Annotated[Item, Depends(item_of)]


@dataclass(frozen=True)
class Tab:
    """One of the pages of a study."""

    title: str
    page: str


def tabs(site: Site, item: Item) -> list[Tab]:
    """The pages that there are."""
    found = [Tab("Overview", "")]
    audit = item.audit_json
    if audit is not None:
        found += [Tab("Classes", "level?by=class"), Tab("Groups", "level?by=group")]
        # Its head alone: the libraries that hold its tables need not be loaded for it.
        if site.kept(item, "tasks", lambda: bool(head(audit).get("tasks"))):
            found.append(Tab("Tasks", "task"))
    if item.tables is not None:
        found += [Tab("Examples", "examples"), Tab("Pairs", "pairs")]
        found.append(Tab("Annotations", "annotations"))
    if item.report is not None:
        found.append(Tab("Report", "report"))
    return found


def context(request: Request, page: Any) -> dict[str, Any]:
    """What every template may use."""
    site: Site = request.app.state.site
    key = request.path_params.get("key")
    item = None if key is None else site.item(key)
    return {
        "page": page,
        "item": item,
        "tabs": [] if item is None else tabs(site, item),
        "here": request.url.path,
        "twin": f"{request.url.path.rstrip('/') or '/index'}.json",
        "query": request.url.query,
        "csrf": site.csrf,
        "writable": site.settings.writable,
    }


def add_page(
    router: APIRouter,
    path: str,
    page: Callable[..., Any],
    template: str,
    *,
    summary: str,
    kept: bool = False,
    twin: str | None = None,
) -> None:
    """Show what `page` returns under `path` to people, and under `path`.json to programs.

    Parameters
    ----------
    page
        A dependency whose parameters are those of both addresses.
    kept
        The data are the same object each time: then so is the page, made once.
    """

    # Whoever holds the bytes holds the data too, so their identity is not given to others.
    def html(request: Request, data: Annotated[Any, Depends(page)]) -> Response:
        if not kept:
            return rendered(template, context(request, data))
        body = _kept(
            request,
            ("html", id(data), request.url.query),
            lambda: (data, page_bytes(template, context(request, data))),
        )
        return Response(body, media_type="text/html; charset=utf-8")

    def program(request: Request, data: Annotated[Any, Depends(page)]) -> Response:
        if not kept:
            return as_json(data)
        body = _kept(request, ("json", id(data)), lambda: (data, json_bytes(data)))
        return Response(body, media_type="application/json")

    name = page.__name__
    # The twin first: `/audit/{key}` would take `x.json` for a key.
    router.add_api_route(
        twin or f"{path}.json", program, summary=f"{summary} (JSON)", responses=PROBLEMS,
        response_model=get_type_hints(page)["return"], name=f"{name}_json",
        operation_id=f"{name}_json", description=page.__doc__,
    )  # fmt: skip
    router.add_api_route(
        path, html, summary=summary, response_class=HTMLResponse, responses=PROBLEMS, name=name,
        operation_id=f"{name}_page", description=page.__doc__,
    )  # fmt: skip


def _kept(request: Request, name: Any, make: Callable[[], tuple[Any, bytes]]) -> bytes:
    site: Site = request.app.state.site
    return site.kept(site.item(request.path_params["key"]), name, make)[1]


# Scripts and styles, kept by browsers for good: another content has another name.

router = APIRouter(include_in_schema=False)


@router.get("/static/{name}")
def static(name: str) -> Response:
    """A file by the name that carries its checksum."""
    stem, _, rest = name.partition(".")
    plain = f"{stem}.{rest.rpartition('.')[2]}"
    if plain not in names() or asset_path(plain) != f"/static/{name}":
        raise HTTPException(404, "There is no such file")
    found = asset(plain)
    kept = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(found.content, media_type=found.media_type, headers=kept)
