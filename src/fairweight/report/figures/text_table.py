"""A table as a figure: text in cells, some of them coloured or bold."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from fairweight.report.figures.registry import Spec

WORSE, BETTER = "rgba(213,94,0,0.3)", "rgba(0,114,178,0.25)"
NONE = "rgba(0,0,0,0)"


@dataclass(frozen=True)
class TextCell:
    """What stands in one cell; `why` says what is missing."""

    row: str
    column: str
    text: str
    ink: str = NONE
    strong: bool = False
    why: str | None = None


def text_table(cells: list[TextCell], columns: list[str], *, step: int = 124) -> Spec:
    """The body of a specification; rows stand in the order of the cells."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    at: Spec = {
        "y": {
            "field": "row",
            "type": "nominal",
            "title": None,
            "sort": rows,
            "axis": {"domain": False, "ticks": False},
        },
        "x": {
            "field": "column",
            "type": "nominal",
            "title": None,
            "sort": columns,
            "scale": {"domain": columns},
            "axis": {
                "orient": "top",
                "labelAngle": 0,
                "domain": False,
                "ticks": False,
                "labelLimit": step - 4,
            },
        },
    }
    tooltip = [
        {"field": field, "type": "nominal", "title": title}
        for field, title in (("row", "row"), ("column", "column"), ("text", "value"),
                             ("why", "why"))
    ]  # fmt: skip
    write: list[Spec] = [
        {
            "transform": [{"filter": which}],
            "mark": {"type": "text", "fontSize": 11, "fontWeight": weight, "limit": step - 2},
            "encoding": {**at, "text": {"field": "text", "type": "nominal"}, "tooltip": tooltip},
        }
        for which, weight in (("!datum.strong", "normal"), ("datum.strong", "bold"))
    ]
    color = {"field": "ink", "type": "nominal", "scale": None, "legend": None}
    return {
        "width": {"step": step},
        "height": {"step": 20},
        "data": {"values": [asdict(cell) for cell in cells]},
        "layer": [{"mark": {"type": "rect"}, "encoding": {**at, "color": color}}, *write],
    }
