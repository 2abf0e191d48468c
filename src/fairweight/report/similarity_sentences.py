"""How bias goes along with distances of representations, in sentences: over variants, no cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairweight.report.figures.inputs import correlation, untold
from fairweight.report.numbers import count, missing, number, real, shown
from fairweight.report.rows import records

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

NO_CAUSE = (
    "These are associations over variants, which share dense models and differ in more than their "
    "distances; they name no cause."
)
_METRICS = {"cev": "CEV", "sde": "SDE"}


def similarity_sentences(result: AuditResult) -> Iterator[str]:
    """Distances beside the floor, then a sentence per measure and bias metric; none without."""
    points = result.explanations.get("similarity_points")
    if points is not None and len(points):
        for measure in dict.fromkeys(points["measure"]):
            yield from _distances(points[points["measure"] == measure], str(measure))
    frame = result.explanations.get("similarity")
    if frame is None:
        return
    for measure in dict.fromkeys(frame["measure"]):
        for metric, word in _METRICS.items():
            own = frame[(frame["measure"] == measure) & (frame["metric"] == metric)]
            yield from _associated(records(own), str(measure), word)
    if frame["correlation"].notna().any():
        yield NO_CAUSE


def _distances(points: pd.DataFrame, measure: str) -> Iterator[str]:
    said = []
    for block, own in points.groupby("block", sort=False):
        known = own["distance"].dropna()
        if known.empty:
            continue
        low, high = number(float(known.min())), number(float(known.max()))
        floor = real(own["floor"].iloc[0])
        alone = "not known" if missing(floor) else number(floor)
        span = low if low == high else f"{low} to {high}"
        said.append(f"{span} in {shown(block)} (between dense models: {alone})")
    if said:
        yield (
            f"{measure.upper()} distances of the variants' representations to their dense models: "
            f"{'; '.join(said)}."
        )


def _associated(rows: list[dict[str, Any]], measure: str, word: str) -> Iterator[str]:
    told = [row for row in rows if not missing(row["correlation"])]
    rest = [row for row in rows if missing(row["correlation"])]
    if told:
        sizes = sorted({int(row["n_variants"]) for row in told})
        span = count(sizes[0]) if len(sizes) == 1 else f"{count(sizes[0])} to {count(sizes[-1])}"
        each = ", ".join(f"{correlation(row)} in {shown(row['block'])}" for row in told)
        yield (
            f"Over {span} variants, the correlation of {word} with the {measure.upper()} distance "
            f"is {each}."
        )
    reasons: dict[str, list[str]] = {}
    for row in rest:
        reasons.setdefault(untold(row) or "cannot tell", []).append(shown(row["block"]))
    for reason, blocks in reasons.items():
        yield (
            f"How {word} goes with the {measure.upper()} distance in {', '.join(blocks)}: {reason}."
        )
