"""SS-F1: exemplars that all methods share beside those of one method only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import shown
from fairweight.report.figures.explained import explained
from fairweight.report.figures.parts import label, pair_title
from fairweight.report.figures.pictures import Tile, tiles
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

IMAGES = 5
_PARTS = ("shared", "one-only")


@figure(
    "SS-F1",
    title="Exemplars of all methods and of one only",
    caption=(
        "Above: examples whose most frequent answer changes under every method, often images that "
        "people would find hard too. Below: those that change under this method alone. A choice "
        "of few images, not a measure."
    ),
    more=True,
    explains=True,
)
def shared_exemplars(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    if len(result.variants) < 2:
        return Absent("there is one method")
    found = explained(result, "exemplar_images", None, task)
    if isinstance(found, Absent):
        return found
    rows = records(found.drop_duplicates(["part", "example_id", "variant"]))
    shared = {str(row["example_id"]): row for row in rows if row["part"] == _PARTS[0]}
    alone = [row for row in rows if row["part"] == _PARTS[1] and row["variant"] == name]
    drawn = {
        "exemplars under every method": list(shared.values())[:IMAGES],
        f"exemplars under {label(name)} only": alone[:IMAGES],
    }
    known = {heading: own for heading, own in drawn.items() if own}
    if not known:
        return Absent("no image of an exemplar of all methods or of this one only was given")
    placed = [
        Tile(row["image"], column, i, _lines(row))
        for i, own in enumerate(known.values())
        for column, row in enumerate(own)
    ]
    missing = [f"no image of {heading}" for heading, own in drawn.items() if not own]
    return {
        "title": pair_title(result, name, *missing),
        "description": (
            f"{count(len(drawn['exemplars under every method']))} images of exemplars under every "
            f"method, and {count(len(alone[:IMAGES]))} of exemplars under {label(name)} only."
        ),
        **tiles(placed, dict(enumerate(known))),
    }


def _lines(row: dict[str, Any]) -> tuple[str, ...]:
    before, after = shown(row["modal_baseline"], 16), shown(row["modal_compressed"], 16)
    return (f"label {shown(row['label'], 18)}", f"{before} → {after}")
