"""The words of Vega-Lite that every form uses: fields, tooltips, layers and spans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from fairweight.report.figures.theme import GREY, Spec

Values: TypeAlias = list[dict[str, Any]]
DASHED = [4, 4]


def nominal(field: str, **more: Any) -> Spec:
    """A field of names.

    >>> nominal("class", title=None)
    {'field': 'class', 'type': 'nominal', 'title': None}
    """
    return {"field": field, "type": "nominal", **more}


def quantitative(field: str, **more: Any) -> Spec:
    """A field of numbers.

    >>> quantitative("n", title="examples")
    {'field': 'n', 'type': 'quantitative', 'title': 'examples'}
    """
    return {"field": field, "type": "quantitative", **more}


def numbers(form: str, *untitled: str, **titled: str) -> list[Spec]:
    """Numbers of a tooltip in one format; a keyword gives a field its title.

    >>> numbers(".1f", "n", low="from")  # doctest: +NORMALIZE_WHITESPACE
    [{'field': 'n', 'type': 'quantitative', 'format': '.1f'},
     {'field': 'low', 'type': 'quantitative', 'format': '.1f', 'title': 'from'}]
    """
    plain = [quantitative(field, format=form) for field in untitled]
    return plain + [quantitative(f, format=form, title=title) for f, title in titled.items()]


def names(*untitled: str, **titled: str) -> list[Spec]:
    """Names of a tooltip; a keyword gives a field its title."""
    return [nominal(field) for field in untitled] + [
        nominal(field, title=title) for field, title in titled.items()
    ]


def colors(
    field: str, scale: Mapping[str, str] | Sequence[str], inks: Sequence[str] = (), **more: Any
) -> Spec:
    """A colour per name: a mapping, or names that take the inks in turn."""
    found = (
        scale
        if isinstance(scale, Mapping)
        else {name: inks[i % len(inks)] for i, name in enumerate(scale)}
    )
    both = {"domain": list(found), "range": list(found.values())}
    return nominal(field, title=None, scale=both, **more)


def valid(*fields: str) -> str:
    """A filter of rows that have all these fields.

    >>> valid("low", "high")
    'isValid(datum.low) && isValid(datum.high)'
    """
    return " && ".join(f"isValid(datum.{field})" for field in fields)


def layer(
    mark: str,
    encoding: Spec,
    *,
    values: Values | None = None,
    where: str | None = None,
    **options: Any,
) -> Spec:
    """One layer of a chart.

    Parameters
    ----------
    values
        Rows of its own; without them it draws those of the chart around it.
    where
        A filter of the rows.
    **options
        How the mark looks.
    """
    made: Spec = {"mark": {"type": mark, **options}, "encoding": encoding}
    if where is not None:
        made["transform"] = [{"filter": where}]
    if values is not None:
        made["data"] = {"values": values}
    return made


def ends(axis: Literal["x", "y"], low: str, high: str, along: Spec) -> Spec:
    """Encodings of a mark that reaches from one field to another; `along` says title and scale.

    >>> ends("x", "low", "high", {"title": "points"})  # doctest: +NORMALIZE_WHITESPACE
    {'x': {'field': 'low', 'type': 'quantitative', 'title': 'points'}, 'x2': {'field': 'high'}}
    """
    return {axis: quantitative(low, **along), f"{axis}2": {"field": high}}


def span(
    axis: Literal["x", "y"], low: str, high: str, place: Spec, along: Spec, **mark: Any
) -> Spec:
    """A line from one field to another, of rows that have both.

    Parameters
    ----------
    place
        The other encodings: where on the other axis, and the colour.
    along
        Title and scale of the axis along which the line lies.
    """
    at = {**place, **ends(axis, low, high, along)}
    return layer("rule", at, where=valid(low, high), **mark)


def reference(axis: Literal["x", "y"], at: float, along: Spec | None = None, **mark: Any) -> Spec:
    """A grey line at one value."""
    encoding: Spec = {axis: quantitative("at", **(along or {}))}
    return layer("rule", encoding, values=[{"at": at}], color=GREY, **mark)


def diagonal(x: Spec, y: Spec, ends: Sequence[float], **mark: Any) -> Spec:
    """A dashed grey line where both fields are equal."""
    values = [{x["field"]: end, y["field"]: end} for end in ends]
    ink = {"strokeDash": DASHED, "color": GREY, **mark}
    return layer("line", {"x": x, "y": y}, values=values, **ink)


def gaps(place: Spec, limit: int, **text: Any) -> Spec:
    """A cross and the reason for every row without a value."""
    made = layer(
        "text",
        {**place, "x": {"value": 4}, "text": {"field": "said", **text}},
        align="left",
        fontSize=10,
        limit=limit,
    )
    because = {"calculate": "'× ' + datum.why", "as": "said"}
    return {**made, "transform": [{"filter": "!isValid(datum.value)"}, because]}
