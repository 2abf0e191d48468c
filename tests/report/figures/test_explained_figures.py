"""The figures of exemplars and explanations: HK, PA and SS-F1."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from fairweight.auditing.prediction_matrix import from_arrays
from fairweight.auditing.result import AuditResult
from fairweight.auditing.sweep import tabulated
from fairweight.errors import InputError
from fairweight.report.figures import draw, figures

IDS = [f.id for f in figures() if f.explains]
ONCE = {f.id for f in figures() if f.once}
IMAGES = ("HK-F3", "SS-F1", "PA-F10")


def spec_of(id: str, audit: AuditResult, variant: str | None = None) -> dict[str, Any]:
    drawing = draw(id, audit, variant)
    assert drawing.spec is not None, drawing.reason
    return drawing.spec


def parts(spec: Any) -> Iterator[dict[str, Any]]:
    """Every dictionary anywhere in a specification, data left out."""
    if isinstance(spec, list):
        for held in spec:
            yield from parts(held)
    elif isinstance(spec, dict):
        yield spec
        for key, held in spec.items():
            if key != "values":
                yield from parts(held)


def values_in(spec: Any) -> list[dict[str, Any]]:
    return [v for part in parts(spec) for v in part.get("values", []) if isinstance(v, dict)]


def cell(spec: dict[str, Any], row: str, column: str) -> dict[str, Any]:
    (found,) = [c for c in values_in(spec) if (c.get("row"), c.get("column")) == (row, column)]
    return found


def changed(audit: AuditResult, table: str, where: dict[str, Any], **values: Any) -> AuditResult:
    """The audit with other values in the rows of a table that match."""
    frame = audit.explanations[table].copy()
    here = pd.Series(True, index=frame.index)
    for column, wanted in where.items():
        here &= frame[column] == wanted
    assert here.any()
    for column, value in values.items():
        frame.loc[here, column] = value
    return replace(audit, explanations={**audit.explanations, table: frame})


# --- all of them ---------------------------------------------------------------------------------


def test_the_figures_of_examples_and_explanations_are_registered() -> None:
    assert set(IDS) == {
        "HK-F1", "HK-F2", "HK-F3", "HK-F4", "HK-T1", "HK-T2", "HK-T4", "PA-F1", "PA-F2",
        "PA-F3a", "PA-F3b", "PA-F3c", "PA-F6", "PA-F8", "PA-F10", "PA-F11", "PA-F13", "PA-F14",
        "PA-F15", "PA-T1", "PA-T2", "SS-F1", "SS-F5", "SS-T2", "SS-T3",
        "IO-F1a", "IO-F1b", "IO-F2", "IO-F3", "IO-F4", "IO-F5a", "IO-F5b", "IO-T1", "IO-TJ",
        "IO-F6", "PA-F4a", "PA-F4b", "FW-4", "FW-5",
    }  # fmt: skip


@pytest.mark.parametrize("id", IDS)
def test_each_compiles_with_hostile_names_and_has_alt_text(
    id: str, hostile_explained: AuditResult
) -> None:
    import vl_convert

    spec = spec_of(id, hostile_explained)
    assert len(spec["description"]) > 40
    svg = vl_convert.vegalite_to_svg(json.dumps(spec, allow_nan=False), vl_version="6.4")
    assert svg.startswith("<svg")
    for bad in ("<script", "<img", "NaN", "undefined"):
        assert bad not in svg
    least = 4 if id in IMAGES else 20
    assert len(re.findall(r"<path|<text|<line|<rect|<image", svg)) > least


@pytest.mark.parametrize("id", IDS)
def test_nothing_is_loaded_by_a_figure(id: str, hostile_explained: AuditResult) -> None:
    spec = spec_of(id, hostile_explained)
    addresses = [part["url"] for part in parts(spec) if "url" in part]
    assert all(address == {"field": "image", "type": "nominal"} for address in addresses)
    assert bool(addresses) == (id in IMAGES)
    images = [v["image"] for v in values_in(spec) if "image" in v]
    assert all(re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/=]+", image) for image in images)
    plain = json.dumps({k: v for k, v in spec.items() if k != "$schema"})
    assert "http" not in re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", plain)


@pytest.mark.parametrize("id", ["HK-F3", "SS-F1", "PA-F10"])
@pytest.mark.parametrize(
    "address",
    [
        "https://example.org/a.png",
        "data:image/svg+xml;base64,AAAA",
        "data:image/png;base64,AA') url(https://example.org",
        "file:///etc/passwd",
        None,
    ],
)
def test_an_image_that_is_no_png_inside_the_page_is_refused(
    id: str, address: str | None, explained: AuditResult
) -> None:
    table = "tilt_example" if id == "PA-F10" else "exemplar_images"
    frame = explained.explanations[table].assign(image=address)
    audit = replace(explained, explanations={**explained.explanations, table: frame})
    with pytest.raises(InputError, match=r"must be a data URI \(data:image/png;base64,…\)"):
        draw(id, audit)


@pytest.mark.parametrize("id", IDS)
def test_a_figure_without_its_data_says_why(id: str, bare: AuditResult) -> None:
    drawing = draw(id, bare)
    assert drawing.spec is None
    assert drawing.reason
    assert not drawing.reason.endswith(".")


@pytest.mark.parametrize("id", IDS)
def test_a_figure_of_all_variants_is_the_same_for_each(id: str, explained: AuditResult) -> None:
    first, second = (values_in(spec_of(id, explained, v)) for v in explained.variants)
    assert (first == second) == (id in ONCE)
    with pytest.raises(InputError, match="Variant 'int9' does not exist"):
        draw(id, explained, "int9")


def test_a_variant_without_rows_has_a_reason(explained: AuditResult) -> None:
    frames = {
        name: frame[frame["variant"] == "int8"] if "variant" in frame.columns else frame
        for name, frame in explained.explanations.items()
    }
    audit = replace(explained, explanations=frames)
    assert draw("HK-F2", audit, "int8").spec is not None
    reason = draw("HK-F2", audit, "pruned-90").reason
    assert reason == "the groups among exemplars were not counted for pruned-90"


def test_a_table_of_tasks_is_read_by_task(explained: AuditResult) -> None:
    frame = explained.explanations["exemplar_counts"]
    both = pd.concat([frame.assign(task="Blond"), frame.assign(task="Smiling", n_exemplars=7)])
    audit = replace(explained, tasks=("Blond", "Smiling"), explanations={"exemplar_counts": both})
    first = draw("HK-T1", audit).spec
    smiling = draw("HK-T1", audit, None, "Smiling").spec
    assert first is not None
    assert smiling is not None
    assert cell(first, "int8", "modal")["text"] == "40 (1.00 %)"
    assert cell(smiling, "int8", "modal")["text"] == "7 (1.00 %)"
    with pytest.raises(InputError, match="Task 'Old' does not exist"):
        draw("HK-T1", audit, None, "Old")


# --- exemplars -----------------------------------------------------------------------------------


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


def test_exemplars_of_one_method_only_are_those_of_the_variant(explained: AuditResult) -> None:
    spec = spec_of("SS-F1", explained, "pruned-90")
    heads = [v["t"] for v in values_in(spec) if str(v.get("t", "")).startswith("exemplars")]
    assert heads == ["exemplars under every method", "exemplars under pruned-90 only"]
    assert len([v for v in values_in(spec) if "image" in v]) == 2 + 3
    one = replace(explained, variants=("int8",))
    assert draw("SS-F1", one).reason == "there is one method"


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


# --- techniques and classes ----------------------------------------------------------------------


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


# --- individuals ---------------------------------------------------------------------------------


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
    monkeypatch.setattr("fairweight.report.figures.choice_points.MANY", 2)
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


def test_probabilities_are_in_percent_and_only_of_those_that_qualify(
    explained: AuditResult,
) -> None:
    near, best, frontier = spec_of("FW-5", explained)["hconcat"]
    assert [v["probability"] for v in near["data"]["values"]] == pytest.approx([95.0, 55.0])
    assert len(near["layer"]) == 1  # no bootstrap frequency
    assert [v["probability"] for v in best["data"]["values"]] == pytest.approx([70.0, 30.0])
    assert [v["frequency"] for v in frontier["data"]["values"]] == pytest.approx([95.0, 95.0])
