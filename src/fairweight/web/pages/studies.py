"""The list of what can be looked at."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter

from fairweight.web.page import OfSite, add_page
from fairweight.web.rendering import of_item


@dataclass(frozen=True)
class StudyEntry:
    """One entry of the list."""

    key: str
    title: str
    link: str
    audit: bool
    examples: bool
    report: bool


@dataclass(frozen=True)
class StudiesPage:
    """Everything that was found below the path."""

    studies: list[StudyEntry]


def studies(site: OfSite) -> StudiesPage:
    """Studies, audits and prediction tables, in the order of their names."""
    return StudiesPage(
        [
            StudyEntry(
                item.key,
                item.title,
                of_item(item.key),
                item.audit_json is not None,
                item.tables is not None,
                item.report is not None,
            )
            for item in site.items.values()
        ]
    )


router = APIRouter(tags=["studies"])
add_page(router, "/", studies, "studies.html.j2", summary="Studies", twin="/index.json")
