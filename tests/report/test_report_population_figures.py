"""Figures of populations: FW-6 (members), FW-7 (both scopes), SS-F2 (levels of sparsity)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from fairweight.auditing.result import AuditResult
from fairweight.report.figures import draw


def spec_of(id: str, result: AuditResult, variant: str | None = None) -> dict[str, Any]:
    drawing = draw(id, result, variant)
    assert drawing.spec is not None, drawing.reason
    return drawing.spec


def layers(spec: dict[str, Any], panel: int, mark: str) -> list[dict[str, Any]]:
    """The data of every layer with this mark in one panel."""
    panels = spec.get("vconcat") or spec["concat"]
    found = [layer for layer in panels[panel]["layer"] if layer["mark"]["type"] == mark]
    return [v for layer in found for v in layer["data"]["values"]]


@pytest.mark.parametrize("id", ["FW-6", "FW-7"])
def test_one_pair_has_no_figure_of_members(id: str, result: AuditResult) -> None:
    assert draw(id, result).reason == "there is one model on each side"


def test_boxes_from_five_members_on_and_points_below(
    population: AuditResult, make_population: Callable[..., AuditResult], result: AuditResult
) -> None:
    six = spec_of("FW-6", population)
    # 9 groups with a shift, two models each; every member is a tick on the box.
    assert len(layers(six, 0, "bar")) == 18
    ticks = layers(six, 0, "tick")
    assert len([v for v in ticks if "member" in v]) == 18 * 6
    few = spec_of("FW-6", make_population(result, members=3))
    assert layers(few, 0, "bar") == []
    assert len(layers(few, 0, "point")) == 18 * 3


def test_a_box_holds_the_quartiles_of_its_members(population: AuditResult) -> None:
    seeds = population.per_seed.copy()
    here = (seeds["variant"] == "int8") & (seeds["metric"] == "recall") & (seeds["class"] == "3")
    seeds.loc[here, "value"] = [0.80, 0.81, 0.82, 0.84, 0.85, 0.90]
    spec = spec_of("FW-6", replace(population, per_seed=seeds))
    (box,) = [v for v in layers(spec, 1, "bar") if v["name"] == "3" and v["model"] == "int8"]
    # Positions 1.25, 2.5 and 3.75 of 0..5: 81.25, (82 + 84) / 2, 84.75.
    found = [round(box[k], 6) for k in ("least", "lower", "median", "upper", "most")]
    assert found == [80.0, 81.25, 83.0, 84.75, 90.0]


def test_both_scopes_and_the_floor_of_a_class(population: AuditResult) -> None:
    rows = population.results.copy()
    here = (rows["class"] == "3") & (rows["metric"] == "recall") & (rows["variant"] == "int8")
    for scope, low, high in (("model", -0.12, -0.05), ("method", -0.2, 0.01)):
        own = here & (rows["scope"] == scope)
        rows.loc[own, ["shift", "sim_low", "sim_high", "noise_floor"]] = [-0.09, low, high, 0.041]
    spec = spec_of("FW-7", replace(population, results=rows))
    model, method = [v for v in layers(spec, 1, "point") if v["name"] == "3"]
    assert (model["scope"], model["told"]) == ("These models", "yes")
    assert (method["scope"], method["told"]) == ("The method", "no")
    assert (method["sim_low"], method["sim_high"]) == (-20.0, 1.0)
    (band,) = [v for v in layers(spec, 1, "bar") if v["name"] == "3"]
    assert (band["floor_low"], band["floor_high"]) == pytest.approx((-4.1, 4.1))
    assert "for these models and in" in spec["description"]


def test_a_method_that_cannot_be_told_is_not_drawn(no_method: AuditResult) -> None:
    reason = draw("FW-7", no_method).reason
    assert reason == "nothing is known about the method (not_estimable: one baseline model)"
    assert draw("FW-6", no_method).spec is not None


def test_levels_of_sparsity_are_read_from_the_variants_table(population: AuditResult) -> None:
    spec = spec_of("SS-F2", population, "pruned-90")
    accuracy = layers(spec, 0, "line")
    assert [(v["variant"], v["sparsity"], v["this"]) for v in accuracy] == [
        ("int8", 0.5, False),
        ("pruned-90", 0.9, True),
    ]
    first = population.results.iloc[0]
    assert accuracy[0]["value"] == pytest.approx(100 * first["compressed"])
    assert accuracy[0]["floor_high"] == pytest.approx(100 * (first["baseline"] + 0.015))
    titles = [panel["layer"][-1]["encoding"]["y"]["title"] for panel in spec["concat"]]
    assert titles == ["accuracy, %", "CEV, corrected", "SDE, corrected"]


def test_cev_is_corrected_for_noise_only_in_small_classes(population: AuditResult) -> None:
    small = layers(spec_of("SS-F2", population), 1, "line")
    assert [v["value"] for v in small] == [28.0]  # 0.7 * 40; of the other nothing is left
    assert all(v["floor_high"] is None for v in small)  # a floor of values as published
    data = population.data.copy()
    data["n"] = data["n"] * 10  # at least 3,000 examples of every class
    large = layers(spec_of("SS-F2", replace(population, data=data)), 1, "line")
    assert [v["value"] for v in large] == [40.0, 80.0]
    assert [v["floor_low"] for v in large] == [0.0, 0.0]


def test_what_cannot_be_estimated_is_not_drawn(population: AuditResult) -> None:
    """A CEV of thousands with the status `unstable` is neither a point nor a point at 0."""
    results = population.results.copy()
    results.loc[results["metric"] == "cev", "status"] = "not_estimable: unstable"
    spec = spec_of("SS-F2", replace(population, results=results))
    titles = [panel["layer"][-1]["encoding"]["y"]["title"] for panel in spec["concat"]]
    points, noise = "CEV in points", ", corrected"
    assert titles == ["accuracy, %", points + noise, "SDE" + noise]
    assert [v["value"] for v in layers(spec, 1, "line")] == [1.1, 1.1]


@pytest.mark.parametrize(
    "table",
    [
        None,
        pd.DataFrame({"variant": ["int8", "pruned-90"]}),
        pd.DataFrame({"variant": ["int8", "pruned-90"], "sparsity": [0.5, 0.5]}),
        pd.DataFrame({"variant": ["int8", "pruned-90"], "sparsity": [0.5, None]}),
        pd.DataFrame({"variant": ["int8", "pruned-90"], "sparsity": ["high", "low"]}),
    ],
)
def test_without_two_levels_there_is_no_axis(
    population: AuditResult, table: pd.DataFrame | None
) -> None:
    reason = draw("SS-F2", replace(population, variants_table=table)).reason
    assert reason == "the variants table names fewer than two levels of sparsity"


def test_each_method_is_a_line(population: AuditResult) -> None:
    table = pd.DataFrame(
        {"variant": ["int8", "pruned-90"], "sparsity": [0.5, 0.9], "method": ["gmp", "random"]}
    )
    spec = spec_of("SS-F2", replace(population, variants_table=table))
    assert {v["method"] for v in layers(spec, 0, "line")} == {"gmp", "random"}
    (line,) = [layer for layer in spec["concat"][0]["layer"] if layer["mark"]["type"] == "line"]
    assert line["encoding"]["color"]["scale"]["domain"] == ["gmp", "random"]
