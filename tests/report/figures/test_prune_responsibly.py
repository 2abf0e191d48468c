"""PA: techniques and classes, frontiers, the model of class accuracies."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from fairweight.auditing.prediction_matrix import from_arrays
from fairweight.auditing.result import AuditResult
from fairweight.auditing.sweep import tabulated
from fairweight.report.figures import draw

from .specs import cell, spec_of, values_in


def test_class_curves_start_at_the_unpruned_accuracy(explained: AuditResult) -> None:
    seeds = explained.per_seed.copy()
    here = (seeds["metric"] == "recall") & (seeds["class"] == "3")
    seeds.loc[here & (seeds["variant"] == "dense"), "value"] = 0.9
    seeds.loc[here & (seeds["variant"] == "int8"), "value"] = [0.8] * 3 + [0.7] * 3
    spec = spec_of("PA-F3a", replace(explained, per_seed=seeds))
    (panel,) = spec["concat"]
    own = [v for v in panel["data"]["values"] if v["class"] == "3"]
    assert [(v["sparsity"], round(v["value"], 6)) for v in own[:2]] == [(0.0, 90.0), (0.5, 75.0)]
    assert {round(v["before"], 6) for v in own} == {90.0}
    assert own[1]["low"] < own[1]["high"]


def test_each_treatment_of_the_weights_has_a_panel(explained: AuditResult) -> None:
    table = pd.DataFrame(
        {"variant": ["int8", "pruned-90"], "sparsity": [0.5, 0.9], "method": ["l1", "l1"],
         "treatment": ["rewind", "finetune"]}
    )  # fmt: skip
    audit = replace(explained, variants_table=table)
    for id in ("PA-F3b", "PA-F3c"):
        panels = spec_of(id, audit)["hconcat"]
        assert [panel["title"] for panel in panels] == ["rewind", "finetune"]
        shown = [{v["variant"] for v in values_in(panel) if "variant" in v} for panel in panels]
        assert shown == [{"int8"}, {"pruned-90"}]
        assert {v["method"] for v in values_in(panels) if "method" in v} == {"l1"}
    classes = spec_of("PA-F3a", audit)["concat"]
    assert [panel["title"]["text"] for panel in classes] == ["l1, rewind", "l1, finetune"]


def test_an_untreated_variant_beside_treated_ones_says_so(explained: AuditResult) -> None:
    table = pd.DataFrame(
        {"variant": ["int8", "pruned-90"], "sparsity": [0.5, 0.9], "method": ["l1", "l1"],
         "treatment": [None, "finetune"]}
    )  # fmt: skip
    panels = spec_of("PA-F3b", replace(explained, variants_table=table))["hconcat"]
    assert [panel["title"] for panel in panels] == ["not trained again", "finetune"]


def test_the_gap_between_classes_is_drawn_with_its_floor(explained: AuditResult) -> None:
    points = [v for v in values_in(spec_of("PA-F3c", explained)) if v.get("variant") == "int8"]
    assert points[0]["baseline"] == pytest.approx(6.0)
    assert (points[0]["floor_low"], points[0]["floor_high"]) == pytest.approx((4.0, 8.0))
    assert (points[0]["low"], points[0]["high"]) == pytest.approx((10.0, 20.0))


def test_class_sizes_are_those_of_the_training_data(explained: AuditResult) -> None:
    data = explained.data
    test_size = data[(data["split"] == "test") & (data["class"] == "0") & (data["by"] == "class")]
    (zero,) = [v for v in values_in(spec_of("PA-F6", explained)) if v["class"] == "0"]
    assert zero["n"] == 5 * test_size["n"].iloc[0]
    only = replace(explained, data=data[data["split"] == "test"])
    assert spec_of("PA-F6", only)["title"] == "test data"
    turned = replace(explained, data=data.iloc[::-1])  # training tables have no order
    shown = [v["class"] for v in values_in(spec_of("PA-F6", turned))]
    assert shown == list(explained.classes)


def test_classes_of_a_sweep_are_coloured_too() -> None:
    """A sweep is tabulated and not compared: it has no rows of recall."""
    made = tabulated(
        from_arrays(
            ["a", "a", "b", "b"], {"dense": ["a", "a", "b", "a"], "pruned": ["a", "b", "b", "b"]}
        )
    )
    shown = {v["class"]: (v["n"], v["before"]) for v in values_in(spec_of("PA-F6", made))}
    assert shown == {"a": (2.0, 100.0), "b": (2.0, 50.0)}


def test_coefficients_with_intervals_of_every_fit(explained: AuditResult) -> None:
    spec = spec_of("PA-T2", explained)
    assert spec["title"] == "n 400; R² 0.780; 12 lineages"
    imbalance = cell(spec, "imbalance", "coefficient")
    assert imbalance["text"] == "1.24 [1.12, 1.36]"  # 1.2429 ± 2 · 0.06
    assert imbalance["strong"]
    assert cell(spec, "imbalance", "p, one-tailed")["text"] == "0.0015 (> 0)"
    # HAC excludes 0 (−0.2 ± 0.08), errors by lineage do not (± 0.24): the latter decides.
    assert not cell(spec, "sparsity", "coefficient")["strong"]
    assert cell(spec, "sparsity", "errors by lineage")["text"] == "−0.200 [−0.440, 0.0400]"


def test_shares_of_a_column_add_up(explained: AuditResult) -> None:
    cells = [v for v in values_in(spec_of("PA-F14", explained)) if "share" in v]
    totals: dict[float, float] = {}
    for one in cells:
        totals[one["x"]] = totals.get(one["x"], 0.0) + one["share"]
    assert all(total == pytest.approx(100.0) for total in totals.values())
    assert sum(one["n"] for one in cells) == 400


def test_residuals_are_counted_once(explained: AuditResult) -> None:
    spec = spec_of("PA-F15", explained)
    assert sum(v["n"] for v in values_in(spec["hconcat"][0])) == 400
    spread = explained.explanations["class_residuals"]["residual"].std(ddof=0)
    assert f"standard deviation {100 * spread:.1f} points" in spec["title"]


def test_the_frontier_has_sparsity_across_and_the_gap_upwards(explained: AuditResult) -> None:
    spec = spec_of("PA-F4a", explained)
    titles = [spec["layer"][-1]["encoding"][axis]["title"] for axis in ("x", "y")]
    assert titles == ["sparsity (higher is better)", "unfairness, % (lower is better)"]
    points = spec["data"]["values"]
    assert [point["on"] for point in points] == [True, False, False]
    assert points[0]["o1"] == pytest.approx(10.0)
    assert (points[0]["o0_low"], points[0]["o1_low"]) == (None, pytest.approx(8.0))
    assert points[-1]["standing"] == "does not qualify"
    color = spec_of("PA-F4b", explained)["layer"][1]["encoding"]["color"]
    assert color["title"] == "accuracy, % (higher is better)"


def test_names_on_the_frontier_leave_each_other_room(explained: AuditResult) -> None:
    ranked, valued = (explained.explanations[name] for name in ("choice", "choice_values"))
    audit = replace(
        explained,
        explanations={**explained.explanations, "choice": ranked.assign(frontier="frontier")},
    )
    # 130 × 14 of 420 × 300 pixels: a third of the width or a twentieth of the height apart.
    for near, named in ((0.0, [True, False, True]), (0.06, [True, True, True])):
        places = {"unfairness": [0.0, near, 1.0], "sparsity": [0.0, 0.1, 1.0]}
        moved = valued.copy()
        for term, values in places.items():
            moved.loc[moved["term"] == term, "value"] = values
        held = replace(audit, explanations={**audit.explanations, "choice_values": moved})
        points = spec_of("PA-F4a", held)["data"]["values"]
        assert [point["named"] for point in points] == named


def test_many_points_have_no_names(explained: AuditResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairweight.report.figures.forms.scatter.MANY", 2)
    points = spec_of("PA-F4a", explained)["data"]["values"]
    assert any(point["on"] for point in points)
    assert not any(point["named"] for point in points)


def test_a_frontier_needs_its_objectives(explained: AuditResult) -> None:
    frame = explained.explanations["choice_values"]
    for id, terms in (("PA-F4a", ["accuracy"]), ("PA-F4b", ["accuracy", "sparsity"])):
        fewer = frame[frame["term"].isin(terms)]
        audit = replace(explained, explanations={**explained.explanations, "choice_values": fewer})
        reason = draw(id, audit).reason
        assert reason is not None
        assert reason.startswith("there are fewer than")
