"""The words of Vega-Lite."""

from __future__ import annotations

from fairweight.report.figures.forms.encoding import colors, diagonal, layer, quantitative, span


def test_a_layer_has_only_what_it_was_given() -> None:
    assert layer("rule", {}) == {"mark": {"type": "rule"}, "encoding": {}}
    full = layer("rule", {"x": 1}, values=[], where="datum.a", size=3)
    assert full == {
        "mark": {"type": "rule", "size": 3},
        "encoding": {"x": 1},
        "transform": [{"filter": "datum.a"}],
        "data": {"values": []},
    }


def test_a_span_needs_both_ends() -> None:
    made = span("x", "low", "high", {"y": "row"}, {"title": "points"}, strokeWidth=2)
    assert made["transform"] == [{"filter": "isValid(datum.low) && isValid(datum.high)"}]
    assert made["encoding"]["x"] == quantitative("low", title="points")
    assert made["encoding"]["x2"] == {"field": "high"}


def test_names_take_colours_in_turn() -> None:
    scale = colors("group", ["a", "b", "c"], ("red", "blue"))["scale"]
    assert scale == {"domain": ["a", "b", "c"], "range": ["red", "blue", "red"]}


def test_a_diagonal_has_both_fields_equal() -> None:
    x, y = quantitative("before"), quantitative("after")
    assert diagonal(x, y, (0, 1))["data"]["values"] == [
        {"before": 0, "after": 0},
        {"before": 1, "after": 1},
    ]
