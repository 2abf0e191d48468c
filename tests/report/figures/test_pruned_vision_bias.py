"""IO: boxes over attributes, settings side by side, two tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairweight.auditing.result import AuditResult
from fairweight.report.figures import draw

from .specs import override_rows, spec_of, with_tables


def layers(panel: dict[str, Any], mark: str) -> Iterator[list[dict[str, Any]]]:
    for layer in panel["layer"]:
        if layer["mark"]["type"] == mark:
            yield layer["data"]["values"]


def with_table(audit: AuditResult, name: str, **columns: Any) -> AuditResult:
    changed = audit.explanations[name].assign(**columns)
    return replace(audit, explanations={**audit.explanations, name: changed})


def test_worst_case_amplification_is_in_points_by_sparsity(explained: AuditResult) -> None:
    spec = spec_of("IO-F1b", explained)
    (boxes,) = layers(spec, "bar")
    order = [box["place"] for box in boxes]
    assert order[0] == "dense"
    assert order[1:] == sorted(explained.variants, key=order.index)
    assert set(order[1:]) == set(explained.variants)
    # Attributes of the baseline: 4, 6 and 9 points.
    assert boxes[0]["median"] == pytest.approx(6)
    assert (boxes[0]["mean"], boxes[0]["n"]) == (pytest.approx(7), 3)
    assert spec["title"] == "3 attributes, 2 variants"


def test_categories_stand_side_by_side_for_both_models(explained: AuditResult) -> None:
    first, second = explained.variants
    (boxes,) = layers(spec_of("IO-F1a", explained, second), "bar")
    assert [(b["place"], b["series"]) for b in boxes] == [
        ("sex", "dense"), ("sex", second), ("age", "dense"), ("age", second),
    ]  # fmt: skip
    assert boxes[1]["median"] == pytest.approx(2 + 2 + 2)  # .02, of Blond .02 more, third variant
    assert first not in {b["series"] for b in boxes}


def test_an_attribute_without_a_value_is_not_a_point(explained: AuditResult) -> None:
    frame = explained.explanations["attributes"]
    gone = (frame["task"] == "Oval") & (frame["metric"] == "tcb")
    audit = with_table(explained, "attributes", value=frame["value"].mask(gone))
    tcb, ece, related = spec_of("IO-F2", audit)["hconcat"]
    points, _ = layers(tcb, "point")
    assert {p["attribute"] for p in points} == {"Smiling", "Blond"}
    points, _ = layers(ece, "point")
    assert {p["attribute"] for p in points} == {"Smiling", "Blond", "Oval"}
    titles = [panel["layer"][-1]["encoding"]["y"]["title"] for panel in (tcb, ece, related)]
    assert titles == ["threshold bias (TCB)", "calibration error (ECE), %", "interrelation, R²"]


def test_a_mean_that_the_audit_has_not_is_that_of_the_points(explained: AuditResult) -> None:
    frame = explained.explanations["attributes"]
    audit = with_table(explained, "attributes", value=frame["value"].mask(frame["task"].isna()))
    (boxes,) = layers(spec_of("IO-F1b", audit), "bar")
    assert boxes[0]["mean"] == pytest.approx((4 + 6 + 9) / 3)
    assert boxes[0]["low"] is None


def test_thresholds_pair_a_variant_with_its_calibrated_self(explained: AuditResult) -> None:
    bias, _ = spec_of("IO-F5a", explained)["hconcat"]
    (boxes,) = layers(bias, "bar")
    assert [(b["place"], b["series"]) for b in boxes] == [
        (name, which)
        for name in ("dense", explained.variants[0])
        for which in ("as they are", "calibrated thresholds")
    ]
    frame = explained.explanations["attributes"]
    plain = frame[~frame["variant"].str.endswith("+thresholds")]
    audit = replace(explained, explanations={"attributes": plain})
    assert (
        draw("IO-F5a", audit).reason
        == "no variant is named like another with +thresholds behind it"
    )


def test_uncertain_exemplars_stand_beside_the_others(explained: AuditResult) -> None:
    (boxes,) = layers(spec_of("IO-F5b", explained), "bar")
    found = {(b["place"], b["series"]): b["median"] for b in boxes}
    assert found[explained.variants[0], "exemplars"] == pytest.approx(70)
    assert found[explained.variants[0], "other examples"] == pytest.approx(10)
    blind = with_table(
        explained, "exemplar_counts", uncertain_share=np.nan, uncertain_share_others=np.nan
    )
    assert "no scores" in str(draw("IO-F5b", blind).reason)


@pytest.mark.parametrize("id", ["IO-F3", "IO-F4"])
def test_lines_over_sparsity_do_not_jump_to_calibrated_variants(
    id: str, explained: AuditResult
) -> None:
    held = explained.explanations["settings"]["variant"]
    assert held.str.endswith("+thresholds").any()
    text = json.dumps(draw(id, explained).spec)
    assert '"int8"' in text
    assert "+thresholds" not in text


def test_only_attributes_of_two_settings_are_compared(explained: AuditResult) -> None:
    spec = spec_of("IO-F3", explained)
    assert [len(row["hconcat"]) for row in spec["vconcat"]] == [1, 1, 1, 1]
    accuracy = spec["vconcat"][0]["hconcat"][0]
    (line,) = layers(accuracy, "line")
    assert {v["setting"] for v in line} == {"joint", "single"}
    joint = [v["value"] for v in line if v["setting"] == "joint"]
    assert joint[0] == pytest.approx(95)
    bias = spec["vconcat"][3]["hconcat"][0]
    assert bias["title"]["text"].startswith("Oval: ")
    frame = explained.explanations["settings"]
    male = with_table(explained, "settings", category=frame["category"].replace("age", "Male"))
    bias = spec_of("IO-F3", male)["vconcat"][3]["hconcat"][0]
    assert bias["title"]["text"] == "Oval: Male"  # the paper's category, where there is one
    alone = explained.explanations["settings"]
    audit = replace(explained, explanations={"settings": alone[alone["setting"] == "joint"]})
    assert draw("IO-F3", audit).reason == "no attribute was trained in two settings"


def test_a_backdoor_has_a_panel_per_attribute(explained: AuditResult) -> None:
    (panel,) = spec_of("IO-F4", explained)["concat"]
    assert panel["title"]["text"] == "Blond"
    (line,) = layers(panel, "line")
    assert {v["setting"] for v in line} == {"grayscale"}
    frame = explained.explanations["settings"]
    clean = frame[frame["category"] != "backdoor"]
    audit = replace(explained, explanations={"settings": clean})
    assert draw("IO-F4", audit).reason == "no setting has marked examples"


def cells(spec: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(c["row"], c["column"]): c for c in spec["data"]["values"]}


def test_the_table_of_quality_and_cost(explained: AuditResult) -> None:
    found = cells(spec_of("IO-T1", explained))
    assert found["dense", "accuracy, %"]["text"] == "93.0 [91.0, 95.0]"
    assert found["dense", "balanced accuracy, %"]["text"] == "88.0 [86.0, 90.0]"
    frame = explained.explanations["attributes"]
    gone = (frame["metric"] == "auc") & frame["task"].isna()
    audit = with_table(explained, "attributes", value=frame["value"].mask(gone))
    assert cells(spec_of("IO-T1", audit))["dense", "AUC, %"]["text"] == "×"


def test_cells_of_amplification_are_orange_only_beyond_noise(explained: AuditResult) -> None:
    first, second = explained.variants
    rose = cells(spec_of("IO-TJ", explained, second))["Smiling", "sex"]
    still = cells(spec_of("IO-TJ", explained, first))["Smiling", "sex"]
    assert (rose["text"], still["text"]) == ("+2.0 → +4.0", "+2.0 → +3.0")
    assert rose["ink"] != still["ink"] == "rgba(0,0,0,0)"
    frame = explained.explanations["attributes"]
    gone = with_table(
        explained,
        "attributes",
        value=frame["value"].mask(frame["task"] == "Oval"),
        status=frame["status"].mask(frame["task"] == "Oval", "not_estimable: few positives"),
    )
    cell = cells(spec_of("IO-TJ", gone, second))["Oval", "age"]
    assert (cell["text"], cell["why"]) == ("—", "cannot tell (few positives)")


def values(panel: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = panel["layer"][0]["data"]["values"]
    return found


def test_human_and_dense_labels_have_panels(explained: AuditResult) -> None:
    made = with_tables(explained, override_curves=override_rows(explained.variants[0]))
    spec = draw("IO-F6", made).spec
    assert spec is not None
    titles = [panel["title"]["text"] for panel in spec["concat"]]
    assert titles == ["sex: human labels", "sex: dense labels"]
    assert [v["budget"] for v in values(spec["concat"][0])] == pytest.approx([0, 10, 20])
