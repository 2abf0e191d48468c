"""SS: exemplars of methods, levels of sparsity, errors of classes, distances, two tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.explain.similarity import regress, similarity
from fairweight.auditing.result import AuditResult
from fairweight.report.figures import draw

from .specs import spec_of, values_in

CEV = (100.0, 180.0, 150.0, 260.0, 400.0)
DISTANCES = (0.05, 0.06, 0.09, 0.11, 0.14)


def test_exemplars_of_one_method_only_are_those_of_the_variant(explained: AuditResult) -> None:
    spec = spec_of("SS-F1", explained, "pruned-90")
    heads = [v["t"] for v in values_in(spec) if str(v.get("t", "")).startswith("exemplars")]
    assert heads == ["exemplars under every method", "exemplars under pruned-90 only"]
    assert len([v for v in values_in(spec) if "image" in v]) == 2 + 3
    one = replace(explained, variants=("int8",))
    assert draw("SS-F1", one).reason == "there is one method"


def test_classes_with_a_baseline_of_zero_are_counted_in_the_title(result: AuditResult) -> None:
    rows = result.results.copy()
    where = (rows["metric"] == "fnr") & (rows["class"] == "4")
    rows.loc[where, "baseline"] = 0.0
    spec = spec_of("SS-F3", replace(result, results=rows))
    assert "1 class with a baseline rate of 0 left out" in spec["title"]
    assert "4" not in {v.get("class") for v in values_in(spec)}


# --- SS-F2 ---------------------------------------------------------------------------------------


def in_panel(spec: dict[str, Any], panel: int, mark: str) -> list[dict[str, Any]]:
    """The data of every layer with this mark in one panel."""
    panels = spec.get("vconcat") or spec["concat"]
    found = [layer for layer in panels[panel]["layer"] if layer["mark"]["type"] == mark]
    return [v for layer in found for v in layer["data"]["values"]]


def test_levels_of_sparsity_are_read_from_the_variants_table(population: AuditResult) -> None:
    spec = spec_of("SS-F2", population, "pruned-90")
    accuracy = in_panel(spec, 0, "line")
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
    small = in_panel(spec_of("SS-F2", population), 1, "line")
    assert [v["value"] for v in small] == [28.0]  # 0.7 * 40; of the other nothing is left
    assert all(v["floor_high"] is None for v in small)  # a floor of values as published
    data = population.data.copy()
    data["n"] = data["n"] * 10  # at least 3,000 examples of every class
    large = in_panel(spec_of("SS-F2", replace(population, data=data)), 1, "line")
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
    assert [v["value"] for v in in_panel(spec, 1, "line")] == [1.1, 1.1]


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
    assert {v["method"] for v in in_panel(spec, 0, "line")} == {"gmp", "random"}
    (line,) = [layer for layer in spec["concat"][0]["layer"] if layer["mark"]["type"] == "line"]
    assert line["encoding"]["color"]["scale"]["domain"] == ["gmp", "random"]


# --- SS-F5, SS-T2, SS-T3 -------------------------------------------------------------------------


def cells(spec: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(c["row"], c["column"]): c for c in spec["data"]["values"]}


def layers(panel: dict[str, Any], mark: str) -> Iterator[dict[str, Any]]:
    for layer in panel["layer"]:
        if layer["mark"]["type"] == mark and layer["data"]["values"]:
            yield layer


@pytest.fixture(scope="module")
def five(explained: AuditResult) -> AuditResult:
    """Five points in two blocks, as if so many variants had been audited."""
    first = pd.DataFrame(
        {
            "measure": "svcca",
            "block": "block1",
            "variant": [f"v{i}" for i in range(5)],
            "distance": DISTANCES,
            "floor": 0.04,
            "cev": CEV,
            "sde": 5.0,
            "accuracy": 0.9,
            "sparsity": [0.3, 0.45, 0.6, 0.75, np.nan],
        }
    )
    points = pd.concat([first, first.assign(block="logits", distance=0.2, floor=np.nan)])
    tables = {"similarity_points": points, "similarity": similarity(points)}
    return replace(explained, explanations={**explained.explanations, **tables})


def test_a_panel_per_block_says_what_its_line_is(five: AuditResult) -> None:
    spec = spec_of("SS-F5", five)
    first, last = spec["concat"]
    line = regress(DISTANCES, CEV)
    ends = f"[{line.correlation_low:.2f}, {line.correlation_high:.2f}]".replace("-", "−")
    assert first["title"]["text"] == f"block1: r {line.correlation:.2f} {ends}, 5 variants"
    assert last["title"]["text"] == "logits: cannot tell (the distances are all equal)"
    assert spec["title"] == "5 variants against dense"
    assert "not a cause" in draw("SS-F5", five).figure.caption


def test_the_line_and_its_band_are_those_of_the_fit(five: AuditResult) -> None:
    first, last = spec_of("SS-F5", five)["concat"]
    (band,) = layers(first, "area")
    values = band["data"]["values"]
    line = regress(DISTANCES, CEV)
    start, end = values[0], values[-1]
    assert (start["distance"], end["distance"]) == pytest.approx((0.05, 0.14))
    assert end["cev"] == pytest.approx(line.intercept + line.slope * 0.14)
    assert all(v["low"] < v["cev"] < v["high"] for v in values)
    widths = [v["high"] - v["low"] for v in values]
    assert min(widths) < min(widths[0], widths[-1])  # narrowest in the middle
    assert list(layers(last, "area")) == []
    assert list(layers(last, "line")) == []


def test_the_floor_is_a_rule_and_colours_are_sparsities(five: AuditResult) -> None:
    first, last = spec_of("SS-F5", five)["concat"]
    (rule,) = layers(first, "rule")
    assert rule["data"]["values"] == [{"distance": 0.04}]
    assert list(layers(last, "rule")) == []
    known, bare = layers(first, "point")
    assert known["encoding"]["color"]["field"] == "sparsity"
    assert known["encoding"]["color"]["scale"]["domain"] == [0.3, 0.75]
    assert len(known["data"]["values"]) == 4
    assert [v["variant"] for v in bare["data"]["values"]] == ["v4"]
    assert "value" in bare["encoding"]["color"]


def test_a_variant_without_cev_has_no_point(five: AuditResult) -> None:
    points = five.explanations["similarity_points"]
    without = points.assign(cev=np.where(points["variant"] == "v1", np.nan, points["cev"]))
    tables = {"similarity_points": without, "similarity": similarity(without)}
    spec = spec_of("SS-F5", replace(five, explanations=tables))
    names = [v["variant"] for p in layers(spec["concat"][0], "point") for v in p["data"]["values"]]
    assert names == ["v0", "v2", "v3", "v4"]
    assert spec["title"] == "4 variants against dense"
    none = replace(five, explanations={"similarity_points": points.assign(cev=np.nan)})
    assert draw("SS-F5", none).reason == "no variant has both a distance and a CEV"


def down_sampled(audit: AuditResult, shares: dict[str, float]) -> AuditResult:
    data = audit.data.copy()
    trained = (data["split"] == "train") & (data["by"] == "class")
    data.loc[trained, "n"] = [
        round(2000 * shares.get(name, 1.0)) for name in data.loc[trained, "class"]
    ]
    return replace(audit, data=data)


def test_classes_with_few_training_examples_come_first(explained: AuditResult) -> None:
    audit = down_sampled(explained, {"3": 0.5, "7": 0.1, "5": 0.95})
    spec = spec_of("SS-T2", audit)
    found = cells(spec)
    assert list(dict.fromkeys(column for _, column in found)) == ["7, 10 %", "3, 50 %"]
    assert list(dict.fromkeys(row for row, _ in found)) == ["dense", "int8", "pruned-90"]
    # As the results have it: .918782 [.887592, .941884] before; after .829949, −.088832.
    assert found["dense", "3, 50 %"]["text"] == "91.9 [88.8, 94.2]"
    assert found["int8", "3, 50 %"]["text"] == "83.0: −8.9 [−12.0, −5.8]"
    assert spec["title"] == "2 variants against dense"


def test_cells_are_coloured_by_simultaneous_limits(explained: AuditResult) -> None:
    audit = down_sampled(explained, {"3": 0.5})
    strong = cells(spec_of("SS-T2", audit))["int8", "3, 50 %"]["ink"]
    rows = audit.results
    here = (rows["metric"] == "recall") & (rows["class"] == "3")
    method = rows.assign(sim_high=rows["sim_high"].mask(here & (rows["scope"] == "method"), 0.01))
    pale = cells(spec_of("SS-T2", replace(audit, results=method)))["int8", "3, 50 %"]["ink"]
    both = rows.assign(sim_high=rows["sim_high"].mask(here, 0.01))
    none = cells(spec_of("SS-T2", replace(audit, results=both)))["int8", "3, 50 %"]["ink"]
    assert strong == "rgba(213,94,0,0.6)"
    assert pale == "rgba(213,94,0,0.25)"
    assert none == "rgba(0,0,0,0)"


def test_balanced_data_have_a_table_of_all_classes(explained: AuditResult) -> None:
    spec = spec_of("SS-T2", down_sampled(explained, {"3": 0.91}))
    assert "no class is down-sampled: all classes" in spec["title"]
    assert len({column for _, column in cells(spec)}) == 10
    without = explained.data[explained.data["split"] == "test"]
    reason = draw("SS-T2", replace(explained, data=without)).reason
    assert reason == "no counts of the training data by class were given"


def test_the_table_of_methods_holds_everything_that_is_known(explained: AuditResult) -> None:
    spec = spec_of("SS-T3", explained)
    found = cells(spec)
    columns = {column for _, column in found}
    # In the order of the axis, not of the cells: rows come first among them.
    axis = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert axis == ["SVCCA block1", "SVCCA logits", "modal", "CEV", "SDE", "accuracy, %"]
    assert columns == set(axis)
    assert found["dense", "SVCCA block1"]["text"] == "0.040"
    assert found["pruned-90", "SVCCA block1"]["text"] == "0.100"
    assert found["int8", "CEV"]["text"] == "40.0 [0, 60.0]"
    assert found["int8", "accuracy, %"]["text"] == "90.1 [89.2, 91.0]"
    assert found["dense", "accuracy, %"]["text"] == "92.5 [91.6, 93.3]"
    within, beyond = (found[who, "modal"] for who in ("int8", "pruned-90"))
    assert (within["text"], beyond["text"]) == ("40; 1.10 % (1.13 %)", "80; 2.20 % (1.13 %)")
    assert within["ink"] != beyond["ink"]


def test_parts_that_are_missing_are_left_out_or_say_why(explained: AuditResult) -> None:
    alone = spec_of("SS-T3", replace(explained, explanations={}))
    assert {column for _, column in cells(alone)} == {"CEV", "SDE", "accuracy, %"}
    rows = explained.results.copy()
    lost = (rows["metric"] == "cev") & (rows["variant"] == "int8")
    rows.loc[lost, "status"] = "not_estimable: zero baseline in class 3"
    blank = cells(spec_of("SS-T3", replace(explained, results=rows)))["int8", "CEV"]
    assert (blank["text"], blank["why"]) == ("×", "zero baseline in class 3")
    kept = rows[~rows["metric"].isin(["cev", "sde"])]
    nothing = draw("SS-T3", replace(explained, results=kept, explanations={}))
    assert nothing.reason == "there are neither distances nor exemplars, CEV or SDE"
