"""Individuals as points: their accuracies, shifts and properties, coloured by group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing import schema
from fairweight.auditing.result import records
from fairweight.base.wording import missing
from fairweight.report.figures.parts import label, labels, selection, value
from fairweight.report.figures.registry import Spec
from fairweight.report.figures.theme import AMBER, BLUE, GREEN, ORANGE, PURPLE, SKY

if TYPE_CHECKING:
    import pandas as pd

LIMIT = 2000
EVERYONE = "all"
_COLORS = (ORANGE, BLUE, GREEN, PURPLE, SKY, AMBER)
_WORDS = {
    "tilt": "tilt",
    "abs_tilt": "absolute tilt",
    "ink": "ink (mean pixel)",
    "distance": "distance to the class mean",
}
_SHARES = (
    "baseline", "baseline_shrunk", "compressed", "compressed_shrunk", "compressed_low",
    "compressed_high", "shift", "shift_shrunk", "shift_low", "shift_high",
)  # fmt: skip


def properties(frame: pd.DataFrame) -> list[str]:
    """The columns that describe the individuals and differ between them."""
    own = [str(c) for c in frame.columns if c not in schema.column_names("individuals")]
    return [c for c in own if frame[c].dtype.kind in "fiu" and frame[c].nunique() > 1]


def in_words(name: str) -> str:
    """A property as it stands on an axis.

    >>> in_words("abs_tilt"), in_words("stroke_width")
    ('absolute tilt', 'stroke width')
    """
    return _WORDS.get(name, label(name.replace("_", " ")))


def points(frame: pd.DataFrame, more: list[str]) -> list[dict[str, Any]]:
    """One point per individual, shares in percent, with the properties `more` as p0, p1, …"""
    kept = frame.nlargest(LIMIT, "n", keep="first") if len(frame) > LIMIT else frame
    rows = records(kept, ("individual", "group", "n", *_SHARES, *more))
    return [
        {
            "who": text,
            "group": EVERYONE if missing(row["group"]) else label(row["group"]),
            "n": value(row["n"]),
            **{name: value(row[name], 100) for name in _SHARES},
            **{f"p{i}": value(row[name]) for i, name in enumerate(more)},
        }
        for text, row in zip(labels([row["individual"] for row in rows]), rows, strict=True)
    ]


def left_out(shown: int, total: int) -> str:
    """What the title says when there are more individuals than points."""
    return selection(shown, total, "individuals", "the most examples")


def group_colors(values: list[dict[str, Any]]) -> Spec:
    """The colour of a group; without groups there is no legend."""
    groups = sorted({v["group"] for v in values})
    return {
        "field": "group",
        "type": "nominal",
        "title": None,
        "scale": {
            "domain": groups,
            "range": [_COLORS[i % len(_COLORS)] for i in range(len(groups))],
        },
        "legend": None if len(groups) < 2 else {"symbolOpacity": 1},
    }


def tooltip(more: list[tuple[str, str]]) -> list[Spec]:
    """Who a point is, both accuracies, the shrunken shift with its interval, and properties."""
    numbers = (
        ("n", ",.0f", "n"),
        ("baseline", ".1f", "before, %"),
        ("compressed", ".1f", "after, %"),
        ("shift", "+.1f", "shift, points"),
        ("shift_shrunk", "+.1f", "shrunken shift"),
        ("shift_low", "+.1f", "from"),
        ("shift_high", "+.1f", "to"),
        *((field, ".4g", words) for field, words in more),
    )
    return [
        {"field": "who", "type": "nominal", "title": "individual"},
        {"field": "group", "type": "nominal"},
        *(
            {"field": field, "type": "quantitative", "format": form, "title": words}
            for field, form, words in numbers
        ),
    ]


def fitted(
    values: list[dict[str, Any]], x: str, y: str, by_group: bool = True
) -> list[dict[str, Any]]:
    """The ends of the least-squares line of each group; none below three points.

    >>> row = {"group": "a", "x": 0.0, "y": 1.0}
    >>> ends = fitted([row, row | {"x": 1.0, "y": 3.0}, row | {"x": 2.0, "y": 5.0}], "x", "y")
    >>> [(round(e["x"], 6), round(e["y"], 6)) for e in ends]
    [(0.0, 1.0), (2.0, 5.0)]
    """
    import numpy as np

    made = []
    for group in sorted({v["group"] for v in values}) if by_group else [EVERYONE]:
        own = [(v[x], v[y]) for v in values if not by_group or v["group"] == group]
        known = [(a, b) for a, b in own if a is not None and b is not None]
        across = [a for a, _ in known]
        if len(known) < 3 or min(across) == max(across):
            continue
        slope, start = np.polyfit(across, [b for _, b in known], 1)
        made += [
            {"group": group, x: end, y: float(start + slope * end)}
            for end in (min(across), max(across))
        ]
    return made
