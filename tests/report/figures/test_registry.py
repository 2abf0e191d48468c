"""Every figure: its text, what it needs, how it is registered, and how a new one is added."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fairweight as fw
from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError
from fairweight.report.figures import (
    Absent,
    draw,
    figure,
    figures,
    individuals,
    own,
    registry,
)
from fairweight.report.figures.export import save_figure

from .specs import parts, spec_of, values_in

IDS = [f.id for f in figures() if not f.explains]
EXPLAINED = [f.id for f in figures() if f.explains]
ONCE = {f.id for f in figures() if f.once}
IMAGES = ("HK-F3", "SS-F1", "PA-F10")
BINARY = ("SG-F5", "SG-F6")  # they need two classes, one of them positive


def audit_for(id: str, request: pytest.FixtureRequest, names: str = "") -> AuditResult:
    """An audit that has what the figure needs."""
    kind = "binary_population" if id in BINARY else "population"
    audit: AuditResult = request.getfixturevalue(names + kind)
    return audit


# --- figures of an audit's own rows --------------------------------------------------------------


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


def test_an_id_is_registered_once_and_an_unknown_one_is_named(result: AuditResult) -> None:
    with pytest.raises(InputError, match="registered already"):
        figure("FW-1", title="x", caption="y")(lambda result, variant, task: Absent("z"))
    with pytest.raises(InputError, match="Figure 'FW-99' does not exist"):
        draw("FW-99", result)


# --- figures of explanations ---------------------------------------------------------------------


def test_the_figures_of_examples_and_explanations_are_registered() -> None:
    assert set(EXPLAINED) == {
        "HK-F1", "HK-F2", "HK-F3", "HK-F4", "HK-T1", "HK-T2", "HK-T4", "PA-F1", "PA-F2",
        "PA-F3a", "PA-F3b", "PA-F3c", "PA-F6", "PA-F8", "PA-F10", "PA-F11", "PA-F13", "PA-F14",
        "PA-F15", "PA-T1", "PA-T2", "SS-F1", "SS-F5", "SS-T2", "SS-T3",
        "IO-F1a", "IO-F1b", "IO-F2", "IO-F3", "IO-F4", "IO-F5a", "IO-F5b", "IO-T1", "IO-TJ",
        "IO-F6", "PA-F4a", "PA-F4b", "FW-4", "FW-5", "FW-8",
    }  # fmt: skip


@pytest.mark.parametrize("id", EXPLAINED)
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


@pytest.mark.parametrize("id", EXPLAINED)
def test_nothing_is_loaded_by_a_figure_of_explanations(
    id: str, hostile_explained: AuditResult
) -> None:
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


@pytest.mark.parametrize("id", EXPLAINED)
def test_a_figure_without_its_explanations_says_why(id: str, bare: AuditResult) -> None:
    drawing = draw(id, bare)
    assert drawing.spec is None
    assert drawing.reason
    assert not drawing.reason.endswith(".")


@pytest.mark.parametrize("id", EXPLAINED)
def test_a_figure_of_all_variants_is_the_same_for_each(id: str, explained: AuditResult) -> None:
    first, second = (values_in(spec_of(id, explained, v)) for v in explained.variants)
    assert (first == second) == (id in ONCE)
    with pytest.raises(InputError, match="Variant 'int9' does not exist"):
        draw(id, explained, "int9")


# --- texts, and how a figure is added ------------------------------------------------------------


def test_every_text_has_a_figure_and_every_figure_a_text() -> None:
    assert list(registry.texts()) == [entry.id for entry in figures()]
    assert set(registry.texts()) == set(registry.FIGURES)
    for entry in figures():
        catalogue = entry.function.__module__.rpartition(".")[2]
        assert catalogue in registry.CATALOGUES[entry.id.partition("-")[0]]
    used = {entry.function.__module__.rpartition(".")[2] for entry in figures()}
    assert used == {name for names in registry.CATALOGUES.values() for name in names}


def test_figures_of_a_section_are_those_that_say_so() -> None:
    explaining, others = figures(explains=True), figures(explains=False)
    assert {entry.explains for entry in explaining} == {True}
    assert {entry.explains for entry in others} == {False}
    assert set(explaining) | set(others) == set(figures())


def test_a_caption_says_the_number_that_is_drawn() -> None:
    assert f"intervals of the {individuals.WORST} with" in registry.FIGURES["PA-F1"].caption


TEXT = '''
["FW-9"]
title = "Groups in the order of their shift"
caption = """
A row is a group, the largest loss first. Thick: interval of that row alone. Thin: simultaneous
limits, which hold for all groups at once."""
alt = """
Shifts of {n} groups of {variant} against {baseline}, from {worst} points on."""
'''

CATALOGUE = """
@figure("FW-9")
def ranked_shifts(result, name, task):
    rows = at_task(select(result, name, "accuracy", "group"), result, task)
    known = records(rows[rows["shift"].notna()].sort_values("shift", kind="stable"))
    if not known:
        return Absent("there is no group with a shift")
    values = shift_values(known, [row["group"] for row in known])
    return {
        "title": pair_title(result, name),
        "description": alt(n=len(values), worst=f"{values[0]['shift']:.1f}"),
        **shift_rows(values, "accuracy by group, points", cut_domain(values), None),
    }
"""


@pytest.fixture
def _ranked_shifts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A figure more: its text in the data file, its function in the catalogue, and no third file.

    What the catalogue `own` imports is all that the function needs.
    """
    path = tmp_path / "figures.toml"
    path.write_text(registry.TEXTS.read_text(encoding="utf-8") + TEXT, encoding="utf-8")
    monkeypatch.setattr(registry, "TEXTS", path)
    registry.texts.cache_clear()
    exec(compile(CATALOGUE, "own.py", "exec"), dict(vars(own)))
    yield
    registry.FIGURES.remove("FW-9")
    registry.texts.cache_clear()


@pytest.mark.usefixtures("_ranked_shifts")
def test_a_new_figure_is_a_catalogue_entry_and_a_text(
    tmp_path: Path, population: AuditResult, bare: AuditResult
) -> None:
    entry = figures()[-1]
    assert (entry.id, entry.title) == ("FW-9", "Groups in the order of their shift")
    assert entry.caption.startswith("A row is a group, the largest loss first. Thick:")
    spec = spec_of("FW-9", population, "pruned-90")
    shifts = [v["shift"] for v in spec["data"]["values"]]
    assert shifts == sorted(shifts)
    assert len(shifts) > 5
    assert spec["description"] == (
        f"Shifts of {len(shifts)} groups of pruned-90 against dense, from {shifts[0]:.1f} points "
        "on."
    )
    svg = save_figure(population, "FW-9", tmp_path / "ranked.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg")
    assert draw("FW-9", bare).reason == "there is no group with a shift"


def test_a_figure_of_another_package_brings_its_text(
    population: AuditResult,
) -> None:
    drawn = {"description": "Nothing.", "mark": "bar"}
    figure("XX-1", title="Theirs", caption="Read it.")(lambda result, variant, task: dict(drawn))
    assert figures()[-1].title == "Theirs"
    assert spec_of("XX-1", population)["description"] == "Nothing."
    registry.FIGURES.remove("XX-1")
    with pytest.raises(InputError, match="A figure 'XX-2' has no text"):
        figure("XX-2")(lambda result, variant, task: dict(drawn))


def test_a_plain_audit_draws_every_figure_or_says_why_not() -> None:
    label = np.arange(200) % 2
    int8 = np.where(np.arange(200) % 20 == 0, 1 - label, label)
    plain = fw.audit(label, {"dense": label, "int8": int8}, n_boot=20).result
    for entry in figures():
        drawing = draw(entry.id, plain)
        assert (drawing.spec is None) == bool(drawing.reason), entry.id
