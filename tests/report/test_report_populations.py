"""Findings about populations: two scopes, noise floors as context, what cannot be had."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from fairweight.auditing.archive import from_json, to_json, write_tables
from fairweight.auditing.result import BOUND_COLUMNS, AuditResult
from fairweight.report.finding import Finding, find
from fairweight.report.notebook import fragment
from fairweight.report.sentences import NO_VETO, ONE_PAIR, PAIRED, TWO_SIDES, sentences
from fairweight.report.terminal import summary
from fairweight.report.view_model import view
from fairweight.report.view_tables import detail_tables, finding_tables

from .conftest import edited


def lines(finding: Finding, topic: str, scope: str | None = None) -> list[str]:
    return [s.text for s in sentences(finding) if s.topic == topic and s.scope == scope]


@pytest.mark.parametrize("scope", ["model", "method"])
def test_each_scope_speaks_of_its_own_rows(population: AuditResult, scope: str) -> None:
    rows = population.results
    rows = rows[(rows["scope"] == scope) & (rows["variant"] == "int8") & (rows["status"] == "ok")]
    judged = rows[
        ((rows["metric"] == "accuracy") & (rows["by"] == "group"))
        | ((rows["metric"] == "recall") & (rows["by"] == "class"))
    ]
    names = judged["group"].fillna(judged["class"])
    model, method = find(population).families
    table = model if scope == "model" else method
    assert {p.name for p in table.loses} == set(names[judged["sim_high"] < 0])
    more = (judged["excess_p_adjusted"] <= 0.05) & (judged["excess_shift"] < 0)
    assert {p.name for p in table.pays_more} == set(names[more])
    # What is said uses the lead of that scope.
    verdict = find(population).model if scope == "model" else find(population).method
    assert verdict is not None
    lead = population.lead
    lead = lead[(lead["scope"] == scope) & (lead["variant"] == "int8") & (lead["by"] != "overall")]
    names = lead["group"].fillna(lead["class"])
    lost = (lead["quantity"] == "shift") & (lead["high"] < 0)
    assert {p.name for p in verdict.loses} == set(names[lost])
    more = (lead["quantity"] == "excess") & (lead["p_lead"] <= 0.05) & (lead["estimate"] < 0)
    assert {p.name for p in verdict.pays_more} == set(names[more])
    assert set(names[more])


def test_a_loss_of_these_models_need_not_be_one_of_the_method(population: AuditResult) -> None:
    finding = find(population)
    assert finding.method is not None
    model, method = ({p.name for p in v.loses} for v in (finding.model, finding.method))
    assert method < model
    only = next(p for p in finding.model.loses if p.name not in method)
    assert any(only.name in line for line in lines(finding, "loses", "model"))
    assert not any(f"{only.name}:" in line for line in lines(finding, "loses", "method"))


def test_one_pair_has_no_second_scope(result: AuditResult) -> None:
    finding = find(result)
    assert finding.method is None
    assert not finding.members.population
    assert lines(finding, "scale") == []
    assert lines(finding, "scope")[0] == ONE_PAIR
    assert {s.scope for s in sentences(finding)} == {None, "model"}


def test_what_the_method_would_take_is_said(no_method: AuditResult) -> None:
    finding = find(no_method)
    assert finding.method is not None
    assert finding.method.reason == "one baseline model"
    assert finding.verdicts == (finding.model,)
    (first, *_) = lines(finding, "cannot tell")
    assert first == (
        "Nothing is said here about the method (one baseline model): that takes at least 4 members "
        "a side, from different dense models."
    )
    assert lines(finding, "scope")[0] == ONE_PAIR
    assert not any(s.scope == "method" for s in sentences(finding))
    assert len(finding.families) == 1


def test_of_three_members_the_tables_speak_and_the_lead_does_not(
    result: AuditResult, make_population: Callable[..., AuditResult]
) -> None:
    finding = find(make_population(result, members=3))
    assert finding.verdicts == (finding.model,)
    assert [v.scope for v in finding.families] == ["model", "method"]
    assert lines(finding, "cannot tell")[0] == (
        "Nothing is said here about the method (3 members a side; the tables have its limits): "
        "that takes at least 4 members a side, from different dense models."
    )
    assert not any(s.scope == "method" for s in sentences(finding))
    table = finding_tables(finding).get("loses")
    assert table is not None
    assert "shift in points, the method [simultaneous limits]" in table.headings
    assert lines(finding, "scope")[0] == ONE_PAIR


@pytest.mark.parametrize(("members", "few"), [(4, True), (5, True), (6, False)])
def test_of_few_members_only_large_differences_can_be_shown(
    result: AuditResult, make_population: Callable[..., AuditResult], members: int, few: bool
) -> None:
    finding = find(make_population(result, members=members))
    assert [v.scope for v in finding.verdicts] == ["model", "method"]
    assert any(s.scope == "method" for s in sentences(finding))
    said = "Under “the method”: few members, so only large differences can be shown."
    assert (said in lines(finding, "scope")) == few
    assert not any("Nothing is said" in line for line in lines(finding, "cannot tell"))


def test_the_smaller_side_decides_how_few_members_there_are(
    result: AuditResult, make_population: Callable[..., AuditResult]
) -> None:
    both = make_population(result, members=6)
    three = edited(both, both.results["n"].notna(), n_seeds_compressed=3)
    assert [v.scope for v in find(three).verdicts] == ["model"]
    assert "(3 members a side; " in lines(find(three), "cannot tell")[0]


def test_numbers_of_members_are_in_the_first_line(
    population: AuditResult, make_population: Callable[..., AuditResult], result: AuditResult
) -> None:
    assert lines(find(population), "pair") == [
        "int8 (6 members) against dense (6) on 4,000 examples, 10 classes."
    ]
    one = edited(population, population.results["n"].notna(), n_seeds_baseline=1)
    assert "against dense (1) on" in lines(find(one), "pair")[0]


def test_the_change_differs_by_class_by_the_least_p_of_an_excess(population: AuditResult) -> None:
    rows, lead = population.results, population.lead
    own = rows[(rows["variant"] == "int8") & (rows["metric"] == "recall") & (rows["by"] == "class")]
    first = lead[(lead["variant"] == "int8") & (lead["quantity"] == "excess")]
    first = first[first["by"] == "class"]
    finding = find(population)
    for told, table in zip(finding.verdicts, finding.families, strict=True):
        (column,) = [c for c in told.columns if c.kind == "class"]
        least = first[first["scope"] == told.scope]["p_lead"].min()
        assert column.p == least
        assert column.differs == (least <= 0.05)
        (column,) = [c for c in table.columns if c.kind == "class"]
        assert column.p == own[own["scope"] == table.scope]["excess_p_adjusted"].min()
    none = {"excess_shift": 0.0, "excess_sim_low": -0.02, "excess_sim_high": 0.02}
    calm = edited(population, rows["by"] == "class", **none)
    said = lines(find(calm), "columns", "method")
    assert said[-1] == "By class: no difference shown (p = 1)."


def test_the_noise_floor_vetoes_nothing(population: AuditResult) -> None:
    everywhere = population.results["noise_floor"].notna()
    high = find(edited(population, everywhere, noise_floor=0.9, p_retraining=1.0))
    before = find(population)
    for topic in ("columns", "most", "pays more", "loses", "gains", "accuracy"):
        for scope in ("model", "method"):
            assert lines(high, topic, scope) == lines(before, topic, scope)
    assert NO_VETO in lines(high, "scope")
    assert lines(high, "scope")[0] == TWO_SIDES


def test_what_retraining_moves_is_told_beside_what_compression_moves(
    population: AuditResult,
) -> None:
    rows = population.results
    here = (rows["class"] == "3") & (rows["metric"] == "recall")
    set_by_hand = edited(population, here, noise_floor=0.041, matched=0.098)
    overall, losers, beyond, *_ = lines(find(set_by_hand), "scale")
    # 6 members of the baseline are split into 3 and 3.
    assert overall == (
        "Retraining the dense model moves accuracy by up to 1.5 points (this compression: "
        "typically 2.4 points), 3 members against 3."
    )
    assert losers.startswith(
        "Of those who lose, retraining moves class 3 by up to 4.1 points (this compression: "
        "typically 9.8 points); "
    )
    shifts = find(set_by_hand).model.shifts
    moved = sum(p.matched > p.noise_floor for p in shifts)
    assert beyond == (
        f"With compression, {moved} of {len(shifts)} classes and groups typically move by more "
        "than that."
    )


@pytest.mark.parametrize("how", ["parent", "seed", "independent"])
def test_how_members_were_paired_is_said(population: AuditResult, how: str) -> None:
    paired = replace(population, pairing=dict.fromkeys(population.variants, how))
    assert PAIRED[how] in lines(find(paired), "scope")
    assert sum(line in PAIRED.values() for line in lines(find(paired), "scope")) == 1


def test_a_shift_of_hundredths_of_a_point_has_rates_with_as_many_digits(
    population: AuditResult,
) -> None:
    """97.05 → 97.03: with one digit it would read 97.1 → 97.0, a tenth of a point."""
    rows = population.results
    here = (rows["metric"] == "accuracy") & (rows["by"] == "overall")
    small = edited(population, here, baseline=0.9705, compressed=0.9703, shift=-0.0002)
    (line,) = lines(find(small), "accuracy", "model")
    assert line.startswith("Accuracy 97.05 % → 97.03 %: −0.02 points [")


def test_the_least_loss_that_would_be_found_has_no_sign_anywhere(population: AuditResult) -> None:
    table = detail_tables(population)["power"]
    place = table.headings.index("min detectable shift")
    said = {row[place].shown for row in table.rows if row[place].value is not None}
    assert said
    assert not any(text.startswith(("+", "−")) for text in said)
    unseen = finding_tables(find(population)).get("unseen")
    assert unseen is not None
    assert {row[2].shown for row in unseen.rows} <= said | {"—"}


def test_a_comparison_is_shown_with_its_interval(population: AuditResult) -> None:
    """It has no shift, so its interval belongs to its value."""
    flips = population.results.iloc[[0]].assign(
        metric="flips", baseline=None, shift=None, compressed=0.03, ci_low=0.02, ci_high=0.05
    )
    rows = pd.concat([population.results, flips.astype(population.results.dtypes)])
    compared = replace(population, results=rows.reset_index(drop=True))
    table = detail_tables(compared)["comparisons"]
    place = table.headings.index("compressed")
    assert "3.00 % [2.00 %, 5.00 %]" in {row[place].shown for row in table.rows}


def test_too_few_members_for_a_noise_floor_are_counted(
    result: AuditResult, make_population: Callable[..., AuditResult]
) -> None:
    finding = find(make_population(result, members=3))
    assert lines(finding, "scale") == [
        "What retraining alone moves is not known: 3 members of the baseline; 5 are needed."
    ]
    assert NO_VETO not in lines(finding, "scope")


def test_whoever_loses_in_one_scope_stands_with_the_numbers_of_both(
    population: AuditResult,
) -> None:
    finding = find(population)
    assert finding.method is not None
    table = finding_tables(finding).get("loses")
    assert table is not None
    shown, beyond = finding.families  # a table has the limits of its families
    assert table.total == len(shown.loses)  # here every loss of the method is one of both
    model, method = (
        table.headings.index(f"shift in points, {side} [simultaneous limits]")
        for side in ("these models", "the method")
    )
    lost = {p.name for p in beyond.loses}
    assert lost
    for row in table.rows:
        assert row[model].strong
        assert row[method].strong == (row[0].shown.removeprefix("class ") in lost)
        assert row[method].shown != "—"
    assert "retraining alone, up to" in table.headings


def test_a_scope_without_limits_in_a_row_is_a_dash_with_a_reason(population: AuditResult) -> None:
    rows = population.results
    where = (rows["class"] == "3") & (rows["scope"] == "method")
    lost = edited(population, where, status="not_estimable: unstable", sim_high=float("nan"))
    table = finding_tables(find(lost)).get("loses")
    assert table is not None
    (row,) = [row for row in table.rows if row[0].shown == "class 3"]
    dashes = [cell for cell in row if cell.shown == "—"]
    assert [cell.why for cell in dashes] == ["cannot be estimated in this scope"] * 2


def test_tables_of_a_population_tell_scopes_and_members_apart(
    population: AuditResult, result: AuditResult
) -> None:
    tables = detail_tables(population)
    assert "scope" in tables["by-group"].headings
    assert {"retraining with compression", "p against retraining"} <= set(
        tables["by-group"].headings
    )
    assert tables["members"].total == len(population.per_seed)
    alone = detail_tables(result)
    assert "scope" not in alone["by-group"].headings
    assert "members" not in alone


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_terminal_holds_both_scopes(hostile_population: AuditResult, width: int) -> None:
    out = io.StringIO()
    Console(file=out, width=width).print(summary(view(hostile_population)))
    text = out.getvalue()
    assert max(len(line) for line in text.splitlines()) <= width
    heads = [line for line in text.splitlines() if "These models: " in line]
    assert len(heads) == 2  # two variants
    assert all(("The method" in line) == (width >= 76) for line in heads)
    assert text.count("Retraining") >= 2


def test_the_notebook_holds_both_scopes(hostile_population: AuditResult) -> None:
    text = fragment(hostile_population)
    assert text.count("These models: ") == 2
    assert text.count("The method: ") == 2
    assert "colspan='2'" in text
    assert "<script" not in text


def test_words_that_claim_too_much_are_never_used(population: AuditResult) -> None:
    for variant in population.variants:
        text = " ".join(s.text for s in sentences(find(population, variant))).lower()
        for word in ("fair ", "unbiased", "debiased", "worst", "because", " cause"):
            assert word not in text


def test_json_keeps_pairing_and_limits_of_the_gate(population: AuditResult) -> None:
    row = dict.fromkeys(BOUND_COLUMNS, 0.5) | {
        "variant": "int8", "task": None, "metric": "accuracy", "by": "group", "kind": "group",
        "group": "sex=Female", "class": None, "n": 1174, "quantity": "shift", "status": "ok",
    }  # fmt: skip
    bounds = pd.DataFrame([row], columns=list(BOUND_COLUMNS))
    again = from_json(to_json(replace(population, bounds=bounds)))
    assert again.pairing == {"int8": "parent", "pruned-90": "parent"}
    assert again.bounds["group"].tolist() == ["sex=Female"]
    assert again.bounds["n"].tolist() == [1174]
    assert again.bounds["low_1000"].tolist() == [0.5]
    assert again.bounds["class"].isna().all()


def test_the_limits_of_the_gate_are_a_table(population: AuditResult, tmp_path: Path) -> None:
    write_tables(population, tmp_path)
    assert list(pd.read_parquet(tmp_path / "bounds.parquet").columns) == list(BOUND_COLUMNS)
