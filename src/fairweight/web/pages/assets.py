"""Scripts and styles, kept by browsers for good: another content has another name."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fairweight.web.assets import asset, asset_path, names

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
