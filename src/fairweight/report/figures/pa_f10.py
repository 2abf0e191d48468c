"""PA-F10: how the tilt of one image is measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairweight.auditing.result import records, variant_of
from fairweight.base.wording import missing, real, shown
from fairweight.report.figures.explained import explained
from fairweight.report.figures.pictures import picture
from fairweight.report.figures.registry import Absent, Spec, figure
from fairweight.report.figures.theme import GREY, ORANGE
from fairweight.report.numbers import signed

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

HEIGHT = 220


@figure(
    "PA-F10",
    title="The tilt of one image",
    caption=(
        "An image, and on it the least-squares line of column on row over its foreground pixels. "
        "Its slope is the tilt: 0 is upright (dashed), negative leans to the right."
    ),
    more=True,
    explains=True,
    once=True,
)
def tilt_of_one(
    result: AuditResult, variant: str | None = None, task: str | None = None
) -> Spec | Absent:
    variant_of(result, variant)
    found = explained(result, "tilt_example", None, task)
    if isinstance(found, Absent):
        return found
    row = records(found)[0]
    if any(missing(row[key]) for key in ("width", "height", "slope", "intercept")):
        return Absent("the image has no foreground through which a line could be laid")
    tilt = signed(real(row["slope"]), 2)
    return {
        "title": f"example {shown(row['example_id'], 40)}, tilt {tilt}",
        "description": (
            f"Image {shown(row['example_id'], 40)}, alone and with the line whose slope is its "
            f"tilt, {tilt}."
        ),
        "hconcat": [_panel(row, False), _panel(row, True)],
        "spacing": 24,
    }


def _panel(row: dict[str, Any], line: bool) -> Spec:
    width, height = real(row["width"]), real(row["height"])
    across = HEIGHT * width / height
    # Pixels have their numbers at their centres.
    axis = {"type": "quantitative", "axis": None}
    x = {"field": "column", "scale": {"domain": [-0.5, width - 0.5], "nice": False}, **axis}
    y = {
        "field": "row",
        "scale": {"domain": [-0.5, height - 0.5], "nice": False, "reverse": True},
        **axis,
    }
    layers: list[Spec] = [
        {
            "data": {
                "values": [
                    {
                        "column": (width - 1) / 2,
                        "row": (height - 1) / 2,
                        "image": picture(row["image"]),
                    }
                ]
            },
            "mark": {"type": "image", "width": across, "height": HEIGHT, "smooth": False,
                     "aspect": False},
            "encoding": {"x": x, "y": y, "url": {"field": "image", "type": "nominal"}},
        }
    ]  # fmt: skip
    if line:
        slope, start = real(row["slope"]), real(row["intercept"])
        middle = start + slope * (height - 1) / 2
        rows = (-0.5, height - 0.5)
        for columns, mark in (
            ([start + slope * at for at in rows], {"color": ORANGE, "strokeWidth": 3}),
            ([middle, middle], {"color": GREY, "strokeWidth": 1.5, "strokeDash": [4, 4]}),
        ):
            ends = [{"row": at, "column": c} for at, c in zip(rows, columns, strict=True)]
            layers.append(
                {
                    "data": {"values": ends},
                    "mark": {"type": "line", "clip": True, **mark},
                    "encoding": {"x": x, "y": y, "order": {"field": "row"}},
                }
            )
    return {"width": across, "height": HEIGHT, "layer": layers}
