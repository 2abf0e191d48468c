"""The stored report, shut off from everything else here; its twin is the audit itself."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, Response

from fairweight.web.page import PROBLEMS, OfItem
from fairweight.web.places import require_own
from fairweight.web.security.headers import STORED_REPORT_POLICY

router = APIRouter(tags=["audit"])


@router.get(
    "/audit/{key}/report",
    summary="The stored report",
    response_class=HTMLResponse,
    responses=PROBLEMS,
)
def report(item: OfItem) -> Response:
    """`report.html` as it was written."""
    if item.report is None or not item.report.is_file():
        raise HTTPException(404, "There is no stored report; make one with fairweight audit")
    require_own(item.report)  # it may have become a link since
    return FileResponse(
        item.report,
        media_type="text/html; charset=utf-8",
        headers={"Content-Security-Policy": STORED_REPORT_POLICY},
    )


@router.get("/audit/{key}/report.json", summary="The audit (JSON)", responses=PROBLEMS)
def report_json(item: OfItem) -> Response:
    """`audit.json` as it was written."""
    if item.audit_json is None or not item.audit_json.is_file():
        raise HTTPException(404, "There is no audit; make one with fairweight audit")
    require_own(item.audit_json)
    return FileResponse(item.audit_json, media_type="application/json")
