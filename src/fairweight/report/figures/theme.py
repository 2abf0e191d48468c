"""How every figure looks: one theme for light and dark pages, names on axes, titles.

Text and lines take `currentColor`, so the page's style sheet decides them; data colours are those
of Okabe and Ito without black and yellow, which vanish on a dark or a light page; diverging scales
fade to transparent at zero. A specification therefore never has to be drawn again for dark mode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from fairweight.base.wording import counted, missing, shown
from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

Spec: TypeAlias = dict[str, Any]
Item = TypeVar("Item")

BLUE, ORANGE, GREEN, PURPLE, SKY, AMBER = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00",
)  # fmt: skip
GREY = "#8c8c8c"
SERIES = (ORANGE, BLUE, GREEN, PURPLE, SKY, AMBER)
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
NAME_LIMIT = 44
EVERYONE = "all"  # those without a group

# Orange: more errors or a fall; blue: fewer or a rise. Text on the cells stays readable: 75 % ink.
DIVERGING = ["rgba(213,94,0,0.75)", "rgba(140,140,140,0)", "rgba(0,114,178,0.75)"]

CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": "system-ui, -apple-system, 'Segoe UI', sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 340,
        "labelSeparation": 6,  # else the first label touches its neighbour
        "domainColor": GREY,
        "tickColor": GREY,
        "gridColor": GREY,
        "gridOpacity": 0.25,
    },
    "legend": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 240,
        "orient": "top",
    },
    "header": {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 12},
    "title": {
        "color": "currentColor",
        "subtitleColor": "currentColor",
        "anchor": "start",
        "fontSize": 13,
        "fontWeight": "normal",
        "limit": 640,
    },
    "text": {"color": "currentColor", "fontSize": 12},
    "rule": {"color": GREY},
    "range": {"category": [GREY, *SERIES]},
}


class Absent(Exception):  # noqa: N818  it is no error
    """Why a figure cannot be drawn from this audit: returned, or raised by what reads its rows."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


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


def largest_first(items: Sequence[Item], sizes: Sequence[float], limit: int) -> list[Item]:
    """All items in their own order; of more than fit, the largest, in the order of their size.

    >>> largest_first("abcd", [1, 5, 0, 3], 4), largest_first("abcd", [1, 3, 0, 5], 2)
    (['a', 'b', 'c', 'd'], ['d', 'b'])
    """
    ranked = sorted(range(len(items)), key=lambda i: -sizes[i])[:limit]
    return [items[i] for i in (ranked if len(items) > limit else sorted(ranked))]


def selection(shown_: int, total: int, what: str, order: str = "the largest change") -> str:
    """What the title says when not everything fits; empty when it does.

    >>> selection(30, 1000, "classes")
    'the 30 of 1,000 classes with the largest change'
    """
    return "" if shown_ >= total else f"the {count(shown_)} of {count(total)} {what} with {order}"


def titled(*parts: str) -> str:
    """The title inside a figure: its parts that say something.

    >>> titled("3 variants", "", "ring: int8")
    '3 variants; ring: int8'
    """
    return "; ".join(part for part in parts if part)


def pair_title(result: AuditResult, variant: str, *more: str) -> str:
    """The title inside a figure of one variant: which pair, and what was left out."""
    return titled(f"{label(variant)} against {label(result.baseline)}", *more)


def variants_title(result: AuditResult, n: int, *more: str) -> str:
    """The title inside a figure of several variants."""
    return titled(f"{counted(n, 'variant')} against {label(result.baseline)}", *more)


def heading(text: str) -> Spec:
    """The title of a panel."""
    return {"text": text, "fontSize": 12}


def models(result: AuditResult, variant: str) -> Spec:
    """The colour scale of baseline and variant: grey and orange in every figure."""
    return {
        "field": "model",
        "type": "nominal",
        "title": None,
        "scale": {"domain": [label(result.baseline), label(variant)], "range": [GREY, ORANGE]},
    }
