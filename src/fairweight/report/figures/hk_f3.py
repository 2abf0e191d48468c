"""HK-F3: exemplars beside examples of the same class that are none."""

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

PAIRS = 12
ACROSS = 2  # pairs beside each other


@figure(
    "HK-F3",
    title="Exemplars beside other examples of their class",
    caption=(
        "Left of each pair an example on which the most frequent answer changed with compression, "
        "right one of the same class on which it did not. A choice of few images: it shows what "
        "they look like, not what they have in common."
    ),
    more=True,
    explains=True,
)
def exemplar_pairs(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    name = variant_of(result, variant)
    found = explained(result, "exemplar_images", name, task)
    if isinstance(found, Absent):
        return found
    pairs = _pairs(records(found))[:PAIRS]
    if not pairs:
        return Absent("no exemplar has an image beside one of its class that is none")
    placed = []
    for i, pair in enumerate(pairs):
        for side, row in enumerate(pair):
            placed.append(
                Tile(row["image"], 2 * (i % ACROSS) + side, i // ACROSS, _lines(row, side == 0))
            )
    return {
        "title": pair_title(result, name, "left of each pair: the exemplar"),
        "description": (
            f"{count(len(pairs))} pairs of images: an exemplar of {label(name)} and an example of "
            "the same class that is none."
        ),
        **tiles(placed),
    }


def _pairs(rows: list[dict[str, Any]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The first exemplar of a class with its first other example, and so on, classes in turn."""
    by_class: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for row in rows:
        parts = by_class.setdefault(str(row["label"]), {})
        parts.setdefault(str(row["part"]), []).append(row)
    columns = [
        list(zip(parts.get("exemplar", []), parts.get("non-exemplar", []), strict=False))
        for parts in by_class.values()
    ]
    longest = max((len(column) for column in columns), default=0)
    return [column[i] for i in range(longest) for column in columns if i < len(column)]


def _lines(row: dict[str, Any], exemplar: bool) -> tuple[str, ...]:
    before, after = shown(row["modal_baseline"], 16), shown(row["modal_compressed"], 16)
    answer = f"{before} → {after}" if exemplar else f"answer {before}"
    return (f"label {shown(row['label'], 18)}", answer)
