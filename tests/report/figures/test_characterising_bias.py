"""HK: exemplars, and errors of subgroups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairweight.auditing.result import AuditResult

from .specs import cell, changed, spec_of, values_in


def test_exemplars_beyond_the_floor_are_coloured(explained: AuditResult) -> None:
    spec = spec_of("HK-T1", explained)
    assert cell(spec, "pruned-90", "modal")["text"] == "80 (2.00 %)"
    assert cell(spec, "pruned-90", "retraining alone, %")["text"] == "1.13 [0.75, 1.55]"
    # At the sizes of the splits: 1.1 % lies within them, 2.2 % beyond.
    within, beyond = (cell(spec, who, "compressed, %") for who in ("int8", "pruned-90"))
    assert (within["text"], beyond["text"]) == ("1.10", "2.20")
    assert within["ink"] != beyond["ink"]
    none = changed(
        explained, "exemplar_counts", {"kind": "modal"}, floor=None, status="no noise floor: few"
    )
    blank = cell(spec_of("HK-T1", none), "int8", "retraining alone, %")
    assert (blank["text"], blank["why"]) == ("—", "no noise floor: few")


def test_accuracy_on_exemplars_and_what_cannot_be_told(explained: AuditResult) -> None:
    gone = dict.fromkeys(("baseline", "compressed", "compressed_low", "shift"))
    where = {"kind": "taxicab", "percentile": 99.0, "part": "exemplars", "variant": "int8"}
    audit = changed(
        explained, "exemplar_accuracy", where, n=3, status="small_group: n < 10", **gone
    )
    spec = spec_of("HK-F4", audit, "int8")
    values = values_in(spec)
    (modal,) = [v for v in values if v["what"] == "modal (n 40)" and v["model"] == "int8"]
    assert (modal["value"], modal["low"], modal["high"]) == pytest.approx((50.0, 47.0, 53.0))
    (ticks,) = {v["retrained"] for v in values if v["retrained"] is not None}
    assert ticks == 60.0
    (blank, _) = [v for v in values if v["what"].endswith("(n 3; cannot tell)")]
    assert blank["value"] is None
    assert blank["why"] == "cannot tell (n = 3)"
    assert "×: 2 values are missing (cannot tell (n = 3))" in spec["title"]
    assert cell(spec_of("HK-T2", audit), "int8: dense", "Taxicab, top 1 %")["text"] == "× (n = 3)"


def test_a_shift_on_exemplars_is_coloured_where_its_interval_excludes_zero(
    explained: AuditResult,
) -> None:
    spec = spec_of("HK-T2", explained)
    assert cell(spec, "int8: compressed", "modal")["text"] == "50.0 [47.0, 53.0]"
    others = cell(spec, "int8: compressed", "no exemplars")  # −1 [−3, +1]
    assert others["ink"] == cell(spec, "int8: dense", "modal")["ink"]
    assert others["ink"] != cell(spec, "int8: compressed", "modal")["ink"]


def test_odds_stand_beside_those_of_retraining(explained: AuditResult) -> None:
    spec = spec_of("HK-F2", explained)
    assert "Taxicab, top 10 %" in spec["title"]
    (old,) = [v for v in spec["data"]["values"] if v["group"] == "age=old"]
    assert (old["source"], old["exemplars"]) == pytest.approx((4.0, 8.0))
    assert (old["odds_ratio"], old["retraining_odds_ratio"]) == pytest.approx((1.8, 1.1))
    assert old["told"] == "yes"
    blank = spec["data"]["values"][-1]
    assert (blank["why"], blank["told"]) == ("cannot tell (n = 4)", "no")
    assert "beyond chance in 1 groups" in spec["description"]
    few = changed(
        explained, "enrichment", {"status": "ok"}, status="may reflect difficulty alone: one model"
    )
    assert spec_of("HK-F2", few)["title"].endswith("; may reflect difficulty alone: one model")
    no_train = explained.explanations["enrichment"].assign(share_train=None)
    audit = replace(explained, explanations={"enrichment": no_train})
    (old,) = [v for v in spec_of("HK-F2", audit)["data"]["values"] if v["group"] == "age=old"]
    assert old["source"] == pytest.approx(6.0)


def test_pairs_are_of_one_class(explained: AuditResult) -> None:
    values = values_in(spec_of("HK-F3", explained))
    said = [v["said"] for v in values if "image" in v]
    assert len(said) == 4  # two classes, one whole pair of each
    for exemplar, other in zip(said[::2], said[1::2], strict=True):
        assert exemplar.split(";")[0] == other.split(";")[0]
        assert "→" in exemplar
        assert "→" not in other


def test_changes_of_subgroups_are_in_percent_of_the_baseline(explained: AuditResult) -> None:
    rows = explained.results.copy()
    here = (rows["metric"] == "error_rate") & (rows["group"] == "sex=Female")
    cells = ["baseline", "compressed", "ci_low", "ci_high", "noise_floor"]
    rows.loc[here, cells] = [0.05, 0.06, 0.005, 0.015, 0.02]
    zero = (rows["metric"] == "fpr") & (rows["group"] == "sex=Female")
    rows.loc[zero, "baseline"] = 0.0
    spec = spec_of("HK-T4", replace(explained, results=rows))
    (panel,) = [p for p in spec["concat"] if p["layer"][-1]["mark"].get("text") == ["sex=Female"]]
    value = panel["data"]["values"][0]
    found = [value[k] for k in ("value", "low", "high", "floor_low", "floor_high")]
    assert found == pytest.approx([20.0, 10.0, 30.0, -40.0, 40.0])
    place = spec["concat"].index(panel) + spec["columns"]  # the next line: FPR
    assert {v["why"] for v in spec["concat"][place]["data"]["values"]} == {
        "the baseline's rate is 0"
    }


def test_rare_groups_come_last_and_few_examples_are_in_brackets(explained: AuditResult) -> None:
    spec = spec_of("HK-F1", explained)
    assert len(spec["vconcat"]) == 3
    groups = spec["vconcat"][1]["data"]["values"]
    assert [v["who"] for v in groups[-2:]] == ["sex=Female", "sex=Female"]
    assert [(v["split"], v["n"]) for v in groups[-2:]] == [("training", "40"), ("test", "(40)")]


def test_normalised_changes_are_relative_to_the_baseline(result: AuditResult) -> None:
    rows = result.results.copy()
    where = (rows["metric"] == "error_rate") & (rows["group"] == "sex=Female")
    rows.loc[where, ["baseline", "compressed"]] = [0.05, 0.06]
    cells = values_in(spec_of("HK-T3", replace(result, results=rows)))
    female = {c["column"]: c for c in cells if c["who"] == "sex=Female"}
    assert female["error rate, %"]["text"] == "5.00"
    assert female["error rate, change %"]["change"] == pytest.approx(20.0)  # 0.01 / 0.05
    assert female["error rate, change %"]["text"] == "+20.0"


def test_small_groups_do_not_colour_the_table(result: AuditResult) -> None:
    cells = values_in(spec_of("HK-T3", result))
    small = [c for c in cells if c["who"] == "sex=Other & age=young" and "change" in c]
    assert small
    assert all(c["change"] is None for c in small)
