"""SG: rates of classes and groups, and the table before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from fairweight.auditing.result import AuditResult
from fairweight.report.figures import draw

from .specs import spec_of


def changed(result: AuditResult, where: dict[str, str], **values: Any) -> AuditResult:
    """The audit with other values in the rows that match."""
    rows = result.results.copy()
    here = pd.Series(True, index=rows.index)
    for column, wanted in where.items():
        here &= rows[column] == wanted
    assert here.any()
    for column, value in values.items():
        rows.loc[here, column] = value
    return replace(result, results=rows)


NEVER = {"compressed": None, "shift": None, "compressed_low": None, "compressed_high": None,
         "status": "not_estimable: undefined in the data"}  # fmt: skip


@pytest.mark.parametrize(("id", "metric"), [("SG-F1", "fpr"), ("SG-F2", "precision")])
def test_a_class_has_both_intervals_and_the_floor(
    id: str, metric: str, population: AuditResult
) -> None:
    one = {"metric": metric, "class": "3", "variant": "int8"}
    audit = changed(population, one, baseline=0.01, compressed=0.05, noise_floor=0.02, n=512)
    audit = changed(audit, one | {"scope": "model"}, compressed_low=0.04, compressed_high=0.06)
    audit = changed(audit, one | {"scope": "method"}, compressed_low=0.02, compressed_high=0.08)
    values = spec_of(id, audit)["data"]["values"]
    before, after = [v for v in values if v["class"] == "3"]
    assert (before["model"], after["model"]) == ("dense", "int8")
    assert (before["value"], after["value"]) == pytest.approx((1.0, 5.0))
    assert (after["low"], after["high"]) == pytest.approx((4.0, 6.0))
    assert (after["wide_low"], after["wide_high"]) == pytest.approx((2.0, 8.0))
    # 1 ± 2 points, and a share is not below 0.
    assert (after["floor_low"], after["floor_high"]) == pytest.approx((0.0, 3.0))
    assert (before["floor_low"], before["floor_high"]) == (None, None)
    assert after["n"] == 512
    assert "512" in spec_of(id, changed(audit, {"metric": metric}, n=512))["title"]


def test_a_class_that_is_never_predicted_is_missing_and_not_zero(population: AuditResult) -> None:
    one = {"metric": "precision", "class": "3", "variant": "int8"}
    spec = spec_of("SG-F2", changed(population, one, **NEVER))
    _, after = [v for v in spec["data"]["values"] if v["class"] == "3"]
    assert after["value"] is None
    assert after["why"] == "the class is never predicted"
    assert "×: 1 value is missing (the class is never predicted)" in spec["title"]


def test_one_pair_has_one_interval_and_no_floor(result: AuditResult) -> None:
    values = spec_of("SG-F1", result)["data"]["values"]
    assert all(v["low"] is not None for v in values)
    assert all(v["wide_low"] is None and v["floor_low"] is None for v in values)


def test_accuracy_and_auc_of_every_level(population: AuditResult) -> None:
    spec = spec_of("SG-F3", population, "pruned-90")
    accuracy, auc = spec["concat"]
    titles = [panel["layer"][-1]["encoding"]["y"]["title"] for panel in (accuracy, auc)]
    assert titles == ["accuracy, %", "AUC, %"]
    (line,) = [layer for layer in auc["layer"] if layer["mark"]["type"] == "line"]
    points = line["data"]["values"]
    assert [(p["sparsity"], p["value"], p["this"]) for p in points] == [
        (0.5, 96.0, False),
        (0.9, 96.0, True),
    ]
    assert (points[0]["floor_low"], points[0]["floor_high"]) == pytest.approx((96.5, 99.5))
    assert "n 4,000" in spec["title"]


def test_without_scores_there_is_no_panel_of_auc_and_the_reason(population: AuditResult) -> None:
    gone = {"compressed": None, "baseline": None, "status": "not_estimable: no scores"}
    spec = spec_of("SG-F3", changed(population, {"metric": "auc"}, **gone))
    assert len(spec["concat"]) == 1
    assert spec["title"].endswith("; no AUC (no scores)")


def panel_of(spec: dict[str, Any], group: str) -> list[dict[str, Any]]:
    (found,) = [p for p in spec["concat"] if p["data"]["values"][0]["group"] == group]
    values: list[dict[str, Any]] = found["data"]["values"]
    return values


def test_a_panel_holds_the_baseline_and_every_variant(binary_population: AuditResult) -> None:
    spec = spec_of("SG-F4", binary_population, "pruned-90")
    values = panel_of(spec, "sex=Female")
    order = {(v["place"], v["model"], v["metric"], v["this"]) for v in values}
    assert order == {
        (place, model, metric, model == "pruned-90")
        for place, model in enumerate(("dense", "int8", "pruned-90"))
        for metric in ("FPR", "FNR")
    }
    heading = spec["concat"][0]["layer"][0]["mark"]["text"]
    assert heading[1].startswith("n ")
    axis = spec["concat"][0]["layer"][-1]["encoding"]["x"]["scale"]["domain"]
    assert axis == ["dense", "int8", "pruned-90"]


def test_groups_of_single_columns_only(binary_population: AuditResult) -> None:
    spec = spec_of("SG-F4", binary_population)
    groups = {p["data"]["values"][0]["group"] for p in spec["concat"]}
    assert groups == {"sex=Female", "sex=Male", "sex=Other", "age=old", "age=young"}
    crossed = replace(binary_population, groupings=("sex*age",), single_columns=())
    panels = spec_of("SG-F4", crossed)["concat"]
    assert all(" & " in p["data"]["values"][0]["group"] for p in panels)


def test_a_rate_far_above_the_others_is_written_at_the_frame(
    binary_population: AuditResult,
) -> None:
    audit = changed(binary_population, {"by": "group", "metric": "fpr"}, compressed=0.05)
    far = {"by": "group", "metric": "fpr", "variant": "pruned-90", "group": "sex=Female"}
    audit = changed(audit, far, compressed=0.95)
    spec = spec_of("SG-F4", audit)
    (y,) = [
        layer["encoding"]["y"]
        for layer in spec["concat"][0]["layer"]
        if layer["mark"]["type"] == "line"
    ]
    assert y["scale"]["domain"][0] == 0.0
    assert y["scale"]["domain"][1] < 95.0
    cut = [v for v in panel_of(spec, "sex=Female") if v["value"] > y["scale"]["domain"][1]]
    assert [(v["model"], round(v["value"], 6)) for v in cut] == [("pruned-90", 95.0)]


def test_a_group_without_positives_is_missing_with_its_reason(
    binary_population: AuditResult,
) -> None:
    one = {"by": "group", "metric": "fnr", "group": "sex=Other"}
    gone = NEVER | {"baseline": None, "status": "not_estimable: no examples"}
    spec = spec_of("SG-F4", changed(binary_population, one, **gone))
    missing = [v for v in panel_of(spec, "sex=Other") if v["value"] is None]
    assert {v["metric"] for v in missing} == {"FNR"}
    assert "×: 3 values are missing (no examples)" in spec["title"]


def test_ratios_end_at_one(binary_population: AuditResult) -> None:
    spec = spec_of("SG-F6", binary_population)
    axis = spec["concat"][0]["layer"][1]["encoding"]["y"]
    assert axis["scale"]["domain"][1] == 1.0
    assert 0.0 < axis["scale"]["domain"][0] < 1.0
    values = panel_of(spec, "age=old")
    rows = binary_population.results
    row = rows[(rows["metric"] == "ppv_ratio") & (rows["group"] == "age=old")].iloc[0]
    assert values[0]["value"] == pytest.approx(row["baseline"])
    assert values[1]["value"] == pytest.approx(row["compressed"])


@pytest.mark.parametrize(
    ("id", "metric", "value", "domain"),
    [("SG-F4", "fpr", 0.0, [0.0, 100.0]), ("SG-F6", "ppv_ratio", 1.0, [0.9, 1.0])],
)
def test_an_axis_has_a_length_where_nothing_differs(
    id: str, metric: str, value: float, domain: list[float], binary_population: AuditResult
) -> None:
    audit = binary_population
    same = [c for c in audit.results.columns if c.startswith(("baseline", "compressed"))]
    for own in {metric, "fnr"} if id == "SG-F4" else {metric}:
        one = {"by": "group", "metric": own}
        audit = changed(audit, one, noise_floor=0.0, **dict.fromkeys(same, value))
    scale = spec_of(id, audit)["concat"][0]["layer"][1]["encoding"]["y"]["scale"]
    assert scale["domain"] == domain


def test_without_a_positive_class_there_is_no_ratio(population: AuditResult) -> None:
    row = population.results[population.results["by"] == "grouping"].iloc[[0]].copy()
    row["metric"], row["status"] = "ppv_ratio", "not_estimable: no positive class"
    rows = pd.concat([population.results, row], ignore_index=True)
    assert draw("SG-F6", replace(population, results=rows)).reason == "no positive class"


def test_the_gap_is_the_positive_class_minus_the_other(binary_population: AuditResult) -> None:
    audit = binary_population
    for name, value in (("0", 0.80), ("1", 0.905)):
        one = {"metric": "recall", "by": "class", "class": name, "variant": "int8"}
        audit = changed(audit, one, compressed=value)
    spec = spec_of("SG-F5", audit)
    recall, precision = spec["hconcat"]
    gaps = {g["model"]: g["gap"] for g in recall["layer"][-1]["data"]["values"]}
    assert gaps["int8"] == "+10.5"
    assert list(gaps) == ["dense", "int8", "pruned-90"]
    assert precision["layer"][0]["encoding"]["x"]["title"] == "precision, %"
    ringed = {v["model"] for v in recall["data"]["values"] if v["this"]}
    assert ringed == {"int8"}
    assert spec["title"].startswith("1 minus 0; ")


def test_a_gap_to_an_undefined_precision_is_a_dash(binary_population: AuditResult) -> None:
    one = {"metric": "precision", "class": "1", "variant": "pruned-90"}
    spec = spec_of("SG-F5", changed(binary_population, one, **NEVER))
    gaps = {g["model"]: g["gap"] for g in spec["hconcat"][1]["layer"][-1]["data"]["values"]}
    assert gaps["pruned-90"] == "—"
    assert "—" not in (gaps["dense"], gaps["int8"])


def test_more_than_two_classes_have_no_gap(population: AuditResult) -> None:
    assert draw("SG-F5", population).reason == "the labels are not binary"


def cells_of(result: AuditResult, row: str) -> dict[str, dict[str, Any]]:
    cells = spec_of("SG-T1", result)["data"]["values"]
    return {cell["column"]: cell for cell in cells if cell["row"] == row}


def test_a_line_of_the_table_by_hand(population: AuditResult) -> None:
    one = {"metric": "fpr", "class": "3", "variant": "int8"}
    audit = changed(population, one, baseline=0.012, compressed=0.05, noise_floor=0.021, n=512)
    ends = {"compressed_low": 0.044, "compressed_high": 0.061, "sim_low": 0.01, "sim_high": 0.07}
    audit = changed(audit, one | {"scope": "model"}, **ends)
    audit = changed(audit, one | {"scope": "method"}, **(ends | {"sim_low": -0.01}))
    line = cells_of(audit, "FPR of 3, %")
    assert line["n"]["text"] == "512"
    assert line["dense"]["text"].startswith("1.2")
    assert line["int8"]["text"] == "5.0 [4.4, 6.1]"
    # More false positives: worse; among these models only.
    assert line["int8"]["ink"] == "worse, these models"
    assert line["int8"]["this"] is True
    assert line["retraining, up to"]["text"] == "2.1"


def test_kappa_is_a_number_and_loses_where_it_falls(population: AuditResult) -> None:
    audit = changed(
        population, {"metric": "kappa"}, sim_low=-0.03, sim_high=-0.01, compressed=-0.02
    )
    line = cells_of(audit, "kappa")
    assert line["dense"]["text"] == "0.920"
    assert line["int8"]["text"] == "−0.020"
    assert line["int8"]["ink"] == "worse, the method"


def test_undefined_cells_are_crosses_with_reasons(population: AuditResult) -> None:
    one = {"metric": "precision", "class": "3", "variant": "int8"}
    audit = changed(population, one, **NEVER)
    assert cells_of(audit, "precision of 3, %")["int8"]["text"] == "×"
    assert "(the class is never predicted)" in spec_of("SG-T1", audit)["title"]


def test_a_large_table_is_cut_and_says_so(
    make_result: Callable[..., AuditResult], make_population: Callable[..., AuditResult]
) -> None:
    spec = spec_of("SG-T1", make_population(make_result(n=3000, n_classes=20)))
    assert "the 12 of 20 classes with the largest change" in spec["title"]
    rows = {cell["row"] for cell in spec["data"]["values"]}
    assert len([row for row in rows if row.startswith("recall of ")]) == 12


def test_of_more_classes_than_fit_the_largest_change_comes_first(
    make_result: Callable[..., AuditResult], make_population: Callable[..., AuditResult]
) -> None:
    spec = spec_of("SG-F2", make_population(make_result(n=4000, n_classes=50)))
    assert "the 40 of 50 classes with the largest change" in spec["title"]
    values = spec["data"]["values"]
    moves = [
        abs(after["value"] - before["value"])
        for before, after in zip(values[::2], values[1::2], strict=True)
        if before["value"] is not None and after["value"] is not None
    ]
    assert len(moves) > 30
    assert moves == sorted(moves, reverse=True)
    few = spec_of("SG-F2", make_population(make_result(n=1000, n_classes=6)))["data"]["values"]
    assert [v["class"] for v in few[::2]] == [str(i) for i in range(6)]
