"""The image of one example, and no other file."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fairweight.web.cards import SMALL
from fairweight.web.page import PROBLEMS, OfItem, OfSite
from fairweight.web.pages.example import ExampleId

router = APIRouter(tags=["examples"])


@router.get(
    "/audit/{key}/image",
    summary="An image",
    response_class=Response,
    responses=PROBLEMS | {200: {"content": {"image/png": {}, "image/jpeg": {}}}},
)
def image(
    site: OfSite,
    item: OfItem,
    id: ExampleId,
    size: Annotated[int, Query(ge=16, le=1024, description="Pixels of the longer side.")] = SMALL,
) -> Response:
    """The image of an example, from the study's own data."""
    found = site.pictures(item).encoded(id, size)
    if found is None:
        raise HTTPException(404, "This example has no image")
    content, media_type = found
    return Response(
        content, media_type=media_type, headers={"Cache-Control": "private, max-age=3600"}
    )
