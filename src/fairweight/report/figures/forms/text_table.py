"""Tables: text in cells, some of them coloured or bold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from fairweight.report.figures.forms.encoding import Values, colors, layer, names, nominal
from fairweight.report.figures.theme import Spec

WORSE, BETTER = "rgba(213,94,0,0.3)", "rgba(0,114,178,0.25)"
NONE = "rgba(0,0,0,0)"
# By whose limits a change is told, in a table that tells both apart.
WORSE_FOR = {"the method": "rgba(213,94,0,0.6)", "these models": "rgba(213,94,0,0.25)"}
BETTER_FOR = {"these models": "rgba(0,114,178,0.22)", "the method": "rgba(0,114,178,0.5)"}
_LEGEND = {f"worse, {whose}": ink for whose, ink in WORSE_FOR.items()} | {
    f"better, {whose}": ink for whose, ink in BETTER_FOR.items()
}


@dataclass(frozen=True)
class TextCell:
    """What stands in one cell; `why` says what is missing."""

    row: str
    column: str
    text: str
    ink: str = NONE
    strong: bool = False
    why: str | None = None


def columns_above(columns: Sequence[str], **axis: object) -> Spec:
    """The axis of a table: the names of its columns, above it."""
    shown = {"orient": "top", "labelAngle": 0, "domain": False, "ticks": False, **axis}
    order = list(columns)
    return nominal("column", title=None, sort=order, scale={"domain": order}, axis=shown)


def text_table(cells: list[TextCell], columns: list[str], *, step: int = 124) -> Spec:
    """The body of a specification; rows stand in the order of the cells."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    at: Spec = {
        "y": nominal("row", title=None, sort=rows, axis={"domain": False, "ticks": False}),
        "x": columns_above(columns, labelLimit=step - 4),
    }
    tooltip = names(row="row", column="column", text="value", why="why")
    written = {**at, "text": nominal("text"), "tooltip": tooltip}
    return {
        "width": {"step": step},
        "height": {"step": 20},
        "data": {"values": [asdict(cell) for cell in cells]},
        "layer": [
            layer("rect", {**at, "color": nominal("ink", scale=None, legend=None)}),
            *(
                layer("text", written, where=which, fontSize=11, fontWeight=weight, limit=step - 2)
                for which, weight in (("!datum.strong", "normal"), ("datum.strong", "bold"))
            ),
        ],
    }


def change_table(cells: Values, rows: list[str], columns: list[str]) -> Spec:
    """A table with a legend: `ink` of a cell says worse or better, and by whose limits.

    Cells whose `this` is true are bold.
    """
    inks = {cell.get("ink") for cell in cells}
    used = {ink: color for ink, color in _LEGEND.items() if ink in inks}
    at = {
        "y": nominal("row", title=None, sort=rows),
        "x": columns_above(columns, labelLimit=126),
    }
    tooltip = names(row="what", column="model", text="value", why="missing")
    written = {**at, "text": nominal("text"), "tooltip": tooltip}
    return {
        "width": {"step": 132},
        "height": {"step": 20},
        "data": {"values": cells},
        "layer": [
            layer("rect", {**at, "color": colors("ink", used)}, where="isValid(datum.ink)"),
            *(
                layer("text", written, where=which, fontSize=11, fontWeight=weight)
                for which, weight in (("!datum.this", "normal"), ("datum.this === true", "bold"))
            ),
        ],
    }
