"""PA: individuals, their properties and tilt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairweight.auditing.result import AuditResult
from fairweight.report.figures import draw

from .specs import cell, spec_of


def test_the_largest_shrunken_losses_have_intervals(explained: AuditResult) -> None:
    spec = spec_of("PA-F1", explained, "pruned-90")
    people = explained.explanations["individuals"]
    own = people[people["variant"] == "pruned-90"].sort_values("shift_shrunk").head(10)
    spans = spec["hconcat"][1]["layer"][-1]["data"]["values"]
    assert [v["who"] for v in spans] == own["individual"].tolist()
    assert spans[0]["compressed_low"] == pytest.approx(100 * own["compressed_low"].iloc[0])
    lines = spec["hconcat"][0]["layer"][-1]["data"]["values"]
    assert {v["group"] for v in lines} == {"Female", "Male", "Other"}


def test_constant_properties_have_no_panel(explained: AuditResult) -> None:
    titles = [
        p["layer"][1]["encoding"]["x"]["title"] for p in spec_of("PA-F2", explained)["concat"]
    ]
    assert titles == ["tilt", "ink (mean pixel)", "distance to the class mean", "absolute tilt"]
    people = explained.explanations["individuals"].drop(
        columns=["tilt", "abs_tilt", "ink", "distance"]
    )
    audit = replace(explained, explanations={"individuals": people})
    for id in ("PA-F2", "PA-F8", "PA-F13"):
        assert (
            draw(id, audit).reason == "the individuals have no property that differs between them"
        )
    assert draw("PA-F11", audit).reason == "the individuals have no tilt"


def test_the_histogram_of_a_property_holds_every_individual(explained: AuditResult) -> None:
    rows = spec_of("PA-F8", explained)["vconcat"]
    assert [sum(v["n"] for v in row["hconcat"][1]["data"]["values"]) for row in rows] == [60] * 4
    assert rows[0]["hconcat"][1]["encoding"]["x"]["title"] == "distance to the class mean"


def test_each_group_s_histogram_adds_up_to_all_of_it(explained: AuditResult) -> None:
    panels = spec_of("PA-F11", explained)["concat"]
    assert len(panels) == 2 * 3
    for panel in panels:
        assert sum(v["share"] for v in panel["data"]["values"]) == pytest.approx(100.0)
        assert len({v["group"] for v in panel["data"]["values"]}) == 1


def test_lines_are_those_of_the_table_of_fits(explained: AuditResult) -> None:
    spec = spec_of("PA-F13", explained, "int8")
    lines = [v for v in spec["hconcat"][1]["layer"][1]["data"]["values"] if v["group"] == "Male"]
    start, end = lines
    slope = (end["compressed"] - start["compressed"]) / (end["p0"] - start["p0"])
    assert slope == pytest.approx(-30.0)  # −0.3 per unit, in percent
    table = spec_of("PA-T1", explained, "int8")
    assert cell(table, "Male", "after slope")["text"] == "−0.300 ± 0.050"
    assert cell(table, "Male", "after slope")["strong"]
    assert not cell(table, "Male", "before slope")["strong"]
    assert cell(table, "all", "n")["text"] == "20"


def test_the_line_of_the_tilt_passes_through_the_image(explained: AuditResult) -> None:
    spec = spec_of("PA-F10", explained)
    line = spec["hconcat"][1]["layer"][1]["data"]["values"]
    # column = −0.4 · row + 18.9 at the edges −0.5 and 27.5
    assert [round(v["column"], 6) for v in line] == [19.1, 7.9]
    assert "tilt −0.40" in spec["title"]
    blank = explained.explanations["tilt_example"].assign(slope=None)
    audit = replace(explained, explanations={"tilt_example": blank})
    assert draw("PA-F10", audit).reason == (
        "the image has no foreground through which a line could be laid"
    )
