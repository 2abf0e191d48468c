"""Pieces that several figures share: clean data values, limits on what fits, the two models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from fairweight.base.wording import missing, shown
from fairweight.report.figures.theme import GREY, ORANGE
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

Item = TypeVar("Item")

NAME_LIMIT = 44


def value(number: Any, scale: float = 1.0) -> float | None:
    """A number for a specification; what is undefined is null (JSON has no NaN).

    >>> value(0.25, 100), value(float("nan"))
    (25.0, None)
    """
    if missing(number):
        return None
    scaled = scale * float(number)
    return scaled if math.isfinite(scaled) else None


def label(name: Any) -> str:
    """A name as it stands on an axis: cut in the middle, because intersections differ at the end.

    >>> label("sex=Female & age=" + "x" * 30)
    'sex=Female & age=xxxx…xxxxxxxxxxxxxxxxxxxxxx'
    """
    text = shown(name)
    half = NAME_LIMIT // 2
    return text if len(text) <= NAME_LIMIT else f"{text[: half - 1]}…{text[-half:]}"


def labels(names: Sequence[Any]) -> list[str]:
    """Names as they stand on an axis, kept distinct where cutting made two of them equal.

    >>> labels(["x" * 30 + "a" + "x" * 30, "x" * 30 + "b" + "x" * 30])[1].endswith("x (2)")
    True
    """
    seen: dict[str, int] = {}
    out = []
    for name in names:
        text = label(name)
        seen[text] = seen.get(text, 0) + 1
        out.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return out


def largest(items: Sequence[Item], sizes: Sequence[float], limit: int) -> list[Item]:
    """The `limit` items of the largest size, in their own order.

    >>> largest("abcd", [1, 5, 0, 3], 2)
    ['b', 'd']
    """
    ranked = sorted(range(len(items)), key=lambda i: -sizes[i])[:limit]
    return [items[i] for i in sorted(ranked)]


def selection(shown_: int, total: int, what: str, order: str = "the largest change") -> str:
    """What the title says when not everything fits; empty when it does.

    >>> selection(30, 1000, "classes")
    'the 30 of 1,000 classes with the largest change'
    """
    return "" if shown_ >= total else f"the {count(shown_)} of {count(total)} {what} with {order}"


def cut_domain(values: Sequence[dict[str, Any]]) -> list[float]:
    """What the axis covers: every shift, and every limit except of far wider intervals.

    The interval of one tiny group would else squeeze all others into a line. Whoever loses or
    gains is drawn whole.

    >>> row = {"shift": -2.0, "sim_low": -4.0, "sim_high": 0.5}
    >>> cut_domain([row, row | {"sim_low": -90.0, "sim_high": 80.0}, row])
    [-4.0, 0.5]
    """
    spans = []
    for v in values:
        low = v["sim_low"] if v["sim_low"] is not None else v.get("low")
        high = v["sim_high"] if v["sim_high"] is not None else v.get("high")
        if low is not None and high is not None:
            spans.append((low, high))
    widths = sorted(high - low for low, high in spans)
    limit = 4 * widths[len(widths) // 2] if widths else 0.0
    shown_ = [(low, high) for low, high in spans if high - low <= limit or low > 0 or high < 0]
    ends = [end for span in shown_ for end in span]
    ends += [v["shift"] for v in values if v["shift"] is not None] + [0.0]
    return [min(ends), max(ends)]


def models(result: AuditResult, variant: str) -> dict[str, Any]:
    """The colour scale of baseline and variant: grey and orange in every figure."""
    return {
        "field": "model",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [label(result.baseline), label(variant)], "range": [GREY, ORANGE]},
    }


def pair_title(result: AuditResult, variant: str, *more: str) -> str:
    """The title inside a figure: which pair, and what was left out."""
    pair = f"{label(variant)} against {label(result.baseline)}"
    return "; ".join([pair, *(part for part in more if part)])
