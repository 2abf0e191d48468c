"""Everything about one variant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query

from fairweight.report.before_after import before_after
from fairweight.report.finding import find
from fairweight.report.members import members_of
from fairweight.report.rows import variant_of
from fairweight.web.addresses import of_item, of_row
from fairweight.web.figure_list import Offered, offered
from fairweight.web.findings import Section, section
from fairweight.web.item import Item
from fairweight.web.page import OfItem, OfSite, add_page
from fairweight.web.site import Site
from fairweight.web.tables import Table, converted, of_results

# What was decided before the data were seen; every other metric is on the pages of the levels.
_TABLES = (
    ("By group: accuracy", "group", "accuracy"),
    ("By class: recall", "class", "recall"),
    ("Group columns as a whole", "grouping", None),
    ("Comparisons and overall numbers", "overall", None),
)


@dataclass(frozen=True)
class VariantPage:
    """One variant against the baseline."""

    key: str
    variant: str
    variants: list[str]
    section: Section
    tables: list[Table]
    figures: list[Offered]
    gallery: str | None


def variant(
    site: OfSite,
    item: OfItem,
    variant: Annotated[
        str | None, Query(description="A compressed variant; the first by default.")
    ] = None,
) -> VariantPage:
    """The finding about one variant, and its rows with intervals and noise floors."""
    name = variant_of(site.audit(item), variant)
    return site.kept(item, ("variant", name), lambda: _made(site, item, name))


def _made(site: Site, item: Item, name: str) -> VariantPage:
    result = site.audit(item)
    numbers = before_after(result, find(result, name))
    tables = [] if numbers is None else [converted(numbers, "Baseline and compressed numbers")]
    own = result.results[result.results["variant"] == name]
    for title, by, metric in _TABLES:
        keep = own["by"] == by
        rows = own[keep if metric is None else keep & (own["metric"] == metric)]
        said = ("variant",) if metric is None else ("variant", "metric")
        made = of_results(
            title,
            rows,
            lambda row, name: of_row(item.key, row, name),
            said,
            members=members_of(result),
        )
        tables += [] if made is None else [made]
    gallery = None if item.predictions is None else of_item(item.key, "examples", variant=name)
    return VariantPage(
        item.key,
        name,
        list(result.variants),
        section(result, item.key, name),
        tables,
        offered(item.key, name, members_of(result)),
        gallery,
    )


router = APIRouter(tags=["audit"])
add_page(
    router, "/audit/{key}/variant", variant, "variant.html.j2", summary="One variant", kept=True
)
