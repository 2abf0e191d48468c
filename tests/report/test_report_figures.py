from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError
from fairweight.report.figures import Absent, draw, figure, figures
from fairweight.report.figures.ss_f3 import SIGMAS, ellipse

IDS = [f.id for f in figures() if not f.explains]  # the others: test_explained_figures.py
BINARY = ("SG-F5", "SG-F6")  # they need two classes, one of them positive


def spec_of(id: str, result: AuditResult, variant: str | None = None) -> dict[str, Any]:
    drawing = draw(id, result, variant)
    assert drawing.spec is not None, drawing.reason
    return drawing.spec


def audit_for(id: str, request: pytest.FixtureRequest, names: str = "") -> AuditResult:
    """An audit that has what the figure needs."""
    kind = "binary_population" if id in BINARY else "population"
    audit: AuditResult = request.getfixturevalue(names + kind)
    return audit


def values_in(spec: Any) -> list[dict[str, Any]]:
    """Every data value anywhere in a specification."""
    if isinstance(spec, list):
        return [v for part in spec for v in values_in(part)]
    if not isinstance(spec, dict):
        return []
    own = spec.get("data", {}).get("values", []) if isinstance(spec.get("data"), dict) else []
    return own + [v for key, part in spec.items() if key != "data" for v in values_in(part)]


def test_the_figures_of_this_part_are_registered() -> None:
    assert set(IDS) == {
        "SS-F2", "SS-F3", "FW-1", "FW-2", "FW-3", "FW-6", "FW-7", "HK-T3",
        "SG-T1", "SG-F1", "SG-F2", "SG-F3", "SG-F4", "SG-F5", "SG-F6",
    }  # fmt: skip


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("names", ["", "hostile_"])
def test_every_figure_compiles_and_has_alt_text(
    id: str, names: str, request: pytest.FixtureRequest
) -> None:
    import vl_convert

    spec = spec_of(id, audit_for(id, request, names))
    text = json.dumps(spec, allow_nan=False)
    assert len(spec["description"]) > 40
    svg = vl_convert.vegalite_to_svg(text, vl_version="6.4")
    assert svg.startswith("<svg")
    for bad in ("<script", "<img", "NaN", "undefined"):
        assert bad not in svg
    # A mark was drawn for the data: more than the frame and axes.
    assert len(re.findall(r"<path|<text|<line|<rect", svg)) > 20


@pytest.mark.parametrize("id", IDS)
def test_nothing_is_loaded_by_a_figure(id: str, request: pytest.FixtureRequest) -> None:
    spec = spec_of(id, audit_for(id, request, "hostile_"))
    text = json.dumps({k: v for k, v in spec.items() if k != "$schema"})
    assert '"url"' not in text
    assert "http" not in text


@pytest.mark.parametrize("id", IDS)
def test_a_figure_without_its_data_says_why(id: str, bare: AuditResult) -> None:
    drawing = draw(id, bare)
    assert drawing.spec is None
    assert drawing.reason
    assert not drawing.reason.endswith(".")


@pytest.mark.parametrize("id", IDS)
def test_each_variant_has_its_own_figure(id: str, request: pytest.FixtureRequest) -> None:
    population = audit_for(id, request)
    int8, pruned = spec_of(id, population, "int8"), spec_of(id, population, "pruned-90")
    assert values_in(int8) != values_in(pruned)
    assert spec_of(id, population) == int8
    with pytest.raises(InputError, match="Variant 'int9' does not exist"):
        draw(id, population, "int9")


@pytest.fixture(scope="module")
def many_classes(
    make_result: Callable[..., AuditResult], make_population: Callable[..., AuditResult]
) -> AuditResult:
    return make_population(make_result(n=6000, n_classes=60))


@pytest.mark.parametrize("id", ["SS-F3", "FW-1", "FW-3", "FW-6", "FW-7", "SG-F1", "SG-F2"])
def test_many_classes_are_cut_and_said(id: str, many_classes: AuditResult) -> None:
    spec = spec_of(id, many_classes)
    if id == "SS-F3":
        assert len([v for v in values_in(spec) if "class" in v]) >= 40
    else:
        shown = {"FW-3": 30, "FW-6": 25, "FW-7": 25}.get(id, 40)
        assert f"the {shown} of 60 classes with the largest change" in spec["title"]
        names = {v.get("label", v.get("class", v.get("name"))) for v in values_in(spec)}
        assert len({n for n in names if n is not None and n.isdigit()}) == shown


def test_the_ellipse_holds_95_percent_of_a_normal_cloud() -> None:
    rng = np.random.default_rng(3)
    points = rng.multivariate_normal([5, -2], [[9, 4], [4, 4]], size=20_000)
    ring = ellipse(points[:, 0].tolist(), points[:, 1].tolist(), steps=360)
    outline = np.array([[p["fpr"], p["fnr"]] for p in ring])
    # Inside a convex outline: on the left of every edge.
    edges = np.roll(outline[:-1], -1, axis=0) - outline[:-1]
    offset = points[:, None, :] - outline[None, :-1, :]
    cross = edges[:, 0] * offset[..., 1] - edges[:, 1] * offset[..., 0]
    inside = np.abs(np.sign(cross).sum(axis=1)) == len(edges)
    assert abs(inside.mean() - 0.95) < 0.006
    assert math.isclose(SIGMAS, math.sqrt(-2 * math.log(0.05)), abs_tol=0.001)


def test_classes_with_a_baseline_of_zero_are_counted_in_the_title(result: AuditResult) -> None:
    rows = result.results.copy()
    where = (rows["metric"] == "fnr") & (rows["class"] == "4")
    rows.loc[where, "baseline"] = 0.0
    spec = spec_of("SS-F3", replace(result, results=rows))
    assert "1 class with a baseline rate of 0 left out" in spec["title"]
    assert "4" not in {v.get("class") for v in values_in(spec)}


def test_normalised_changes_are_relative_to_the_baseline(result: AuditResult) -> None:
    rows = result.results.copy()
    where = (rows["metric"] == "error_rate") & (rows["group"] == "sex=Female")
    rows.loc[where, ["baseline", "compressed"]] = [0.05, 0.06]
    cells = values_in(spec_of("HK-T3", replace(result, results=rows)))
    female = {c["column"]: c for c in cells if c["who"] == "sex=Female"}
    assert female["error, %"]["text"] == "5.00"
    assert female["error, change %"]["change"] == pytest.approx(20.0)  # 0.01 / 0.05
    assert female["error, change %"]["text"] == "+20.0"


def test_small_groups_do_not_colour_the_table(result: AuditResult) -> None:
    cells = values_in(spec_of("HK-T3", result))
    small = [c for c in cells if c["who"] == "sex=Other & age=young" and "change" in c]
    assert small
    assert all(c["change"] is None for c in small)


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


def test_an_id_is_registered_once_and_an_unknown_one_is_named(result: AuditResult) -> None:
    with pytest.raises(InputError, match="registered already"):
        figure("FW-1", title="x", caption="y")(lambda result, variant, task: Absent("z"))
    with pytest.raises(InputError, match="Figure 'FW-99' does not exist"):
        draw("FW-99", result)
