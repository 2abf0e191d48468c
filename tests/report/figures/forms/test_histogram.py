"""Bars, counted before they are drawn."""

from __future__ import annotations

from fairweight.report.figures.forms.histogram import bar_panel, edges, histogram, probability_bars


def test_every_value_is_in_one_bin_and_equal_values_have_one_too() -> None:
    values = [0.0, 0.2, 0.4, 0.9, 1.0]
    bars = histogram(values, edges(values))
    assert sum(bar["n"] for bar in bars) == 5
    assert (bars[0]["low"], bars[-1]["high"]) == (0.0, 1.0)
    assert edges([3.0, 3.0]).tolist() == [2.5, 3.0, 3.5]


def test_bars_lie_between_the_ends_of_their_bins() -> None:
    bars = [{"low": 0.0, "high": 1.0, "n": 3}]
    panel = bar_panel(bars, {"title": "ink"}, {"field": "n"}, (280, 90), {}, opacity=0.8)
    assert (panel["width"], panel["height"]) == (280, 90)
    assert panel["encoding"]["x"]["bin"] == {"binned": True}
    assert panel["encoding"]["x2"] == {"field": "high"}
    assert panel["mark"] == {"type": "bar", "opacity": 0.8}


def test_a_raw_frequency_is_a_tick_over_the_bar() -> None:
    rows = [{"variant": "int8", "probability": 70.0, "frequency": 90.0, "possible": "not in it"}]
    both = probability_bars(rows, "best, %", first=True, marked=False, frequency=True)
    assert [layer["mark"]["type"] for layer in both["layer"]] == ["bar", "tick"]
    bar = probability_bars(rows, "best, %", first=True, marked=True, frequency=False)["layer"]
    assert len(bar) == 1
    assert bar[0]["encoding"]["color"]["field"] == "possible"
