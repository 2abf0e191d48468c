"""FW: shifts, members, confusion, cascades and overrides, choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.auditing.result import AuditResult
from fairweight.auditing.schema import column_names
from fairweight.report.figures import draw
from fairweight.report.figures.own import by_effect

from .specs import override_rows, spec_of, values_in, with_tables


def test_confusion_changes_of_a_label_add_up_to_zero(result: AuditResult) -> None:
    cells = values_in(spec_of("FW-3", result))
    totals: dict[str, float] = {}
    for cell in cells:
        totals[cell["label"]] = totals.get(cell["label"], 0.0) + cell["change"]
    assert len(totals) == 10
    assert max(abs(t) for t in totals.values()) < 1e-9


def test_confusion_by_hand(result: AuditResult) -> None:
    # Label a: 10 of 10 right before, 7 right, 2 as b and 1 without an answer after.
    import pandas as pd

    confusion = pd.DataFrame(
        [
            ("dense", 0, None, "a", "a", 10),
            ("dense", 0, None, "b", "b", 5),
            ("int8", 0, None, "a", "a", 7),
            ("int8", 0, None, "a", "b", 2),
            ("int8", 0, None, "a", None, 1),
            ("int8", 0, None, "b", "b", 5),
        ],
        columns=["variant", "seed", "task", "label", "prediction", "count"],
    )
    small = replace(result, confusion=confusion, classes=("a", "b"), variants=("int8",))
    cells = {
        (c["label"], c["answer"]): round(c["change"], 9) for c in values_in(spec_of("FW-3", small))
    }
    assert cells == {("a", "a"): -30.0, ("a", "b"): 20.0, ("a", "no answer"): 10.0}


def test_the_noise_floor_is_drawn_where_there_is_one(result: AuditResult) -> None:
    assert all(v.get("floor_high") is None for v in values_in(spec_of("FW-1", result)))
    rows = result.results.assign(noise_floor=0.015)
    floors = {v["floor_high"] for v in values_in(spec_of("FW-1", replace(result, results=rows)))
              if "floor_high" in v}  # fmt: skip
    assert floors == {1.5}


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


def test_probabilities_are_in_percent_and_only_of_those_that_qualify(
    explained: AuditResult,
) -> None:
    near, best, frontier = spec_of("FW-5", explained)["hconcat"]
    assert [v["probability"] for v in near["data"]["values"]] == pytest.approx([95.0, 55.0])
    assert len(near["layer"]) == 1  # no bootstrap frequency
    assert [v["probability"] for v in best["data"]["values"]] == pytest.approx([70.0, 30.0])
    assert [v["frequency"] for v in frontier["data"]["values"]] == pytest.approx([95.0, 95.0])


def values(panel: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = panel["layer"][0]["data"]["values"]
    return found


def cascade_rows(variant: str, cost: float) -> pd.DataFrame:
    rows = [
        {"variant": variant, "part": part, "metric": "worst_group_shift", "group": "sex",
         "threshold": t, "share_deferred": t, "cost_ms": cost + t, "value": t / 10 - 0.1,
         "low": -0.2, "high": 0.0, "recommended": t == 0.5, "status": "ok"}
        for part in ("choosing", "judging")
        for t in (0.0, 0.5, 1.0)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(column_names("cascade_curve")))


def test_cascade_and_overrides_stand_side_by_side(explained: AuditResult) -> None:
    name = explained.variants[0]
    made = with_tables(
        explained, cascade_curve=cascade_rows(name, 3.0), override_curves=override_rows(name)
    )
    spec = draw("FW-4", made).spec
    assert spec is not None
    cascade, *overrides = spec["concat"]
    assert len(overrides) == 2
    assert cascade["layer"][0]["encoding"]["x"]["title"] == "cascade: ms per input"
    (used,) = cascade["layer"][2]["data"]["values"]
    assert (used["rows"], used["cost"], used["value"]) == ("judging", 3.5, pytest.approx(-5))
    random = [v for v in values(overrides[0]) if v["choice"] == "random"]
    assert {v["value"] for v in random} == {5.0}
    assert draw("FW-4", made, explained.variants[-1]).reason or len(explained.variants) == 1


def test_what_was_not_judged_has_no_panel_and_a_cut_is_told(explained: AuditResult) -> None:
    name = explained.variants[0]
    whole = cascade_rows(name, 3.0)
    unjudged = whole[whole["part"] == "choosing"].assign(group="age")
    many = [whole.assign(group=f"column {i}") for i in range(14)]
    for frames, panels, title in (
        ([whole, unjudged], 1, ""),
        (many, 12, "; the first 12 of 14 panels"),
    ):
        rows = pd.concat(frames, ignore_index=True)
        spec = draw("FW-4", replace(explained, explanations={"cascade_curve": rows})).spec
        assert spec is not None
        assert len(spec["concat"]) == panels
        assert spec["title"] == f"{name} against {explained.baseline}{title}"


def test_without_latencies_the_share_is_drawn(explained: AuditResult) -> None:
    name = explained.variants[0]
    made = with_tables(explained, cascade_curve=cascade_rows(name, np.nan))
    spec = draw("FW-4", made).spec
    assert spec is not None
    assert "sent to the dense model" in spec["concat"][0]["layer"][0]["encoding"]["x"]["title"]


def test_without_tables_the_reason_is_said(result: AuditResult) -> None:
    assert draw("FW-4", result).reason == "neither a cascade nor overrides were tried"
    assert draw("IO-F6", result).reason == "no overrides were tried"


def test_what_comes_back_by_unit_and_group(explained: AuditResult) -> None:
    spec = spec_of("FW-8", explained)
    cells = spec["data"]["values"]
    assert [cell["unit"] for cell in cells] == ["stem", "stem", "fc", "fc"]
    assert {cell["group"] for cell in cells} == {"everyone", "sex=Female"}
    best = next(cell for cell in cells if cell["out"])
    assert (best["unit"], best["group"]) == ("stem", "sex=Female")
    assert best["recovered"] == pytest.approx(9)
    assert best["loss"] == pytest.approx(-12)
    assert "at most 9" in spec["description"]
    assert "stem for sex=Female" in spec["description"]


def test_no_unit_has_numbers(explained: AuditResult) -> None:
    rows = explained.explanations["sensitivity"].assign(recovered=float("nan"))
    assert draw("FW-8", replace(explained, explanations={"sensitivity": rows})).reason


def test_of_many_classes_the_largest_loss_stands_first() -> None:
    """Those of three examples are not tested, and lead no chart."""
    rows = [{"class": str(i), "shift": s, "status": "ok"} for i, s in enumerate((0.1, -0.3, 0.2))]
    rows.append({"class": "few", "shift": -0.9, "status": "small_group: n < 10"})
    assert by_effect(rows, 4) == rows
    assert [row["class"] for row in by_effect(rows, 2)] == ["1", "2"]
