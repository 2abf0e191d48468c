"""What is read first: true of the numbers, short, and the same in every output."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import fairweight as fw
from fairweight.auditing.result import AuditResult
from fairweight.report.brief import CAVEATS, EXPLAINED, NAMED, Brief, brief, finding_document
from fairweight.report.finding import findings
from fairweight.report.html import render
from fairweight.report.markdown import escaped, to_markdown
from fairweight.report.notebook import fragment
from fairweight.report.numbers import points_interval
from fairweight.report.terminal import five_lines

from .conftest import edited, lead_of, without_method

HEADINGS = ["Overall", "Loses most", "More than the rest", "Ruled out", "Too small"]
NO_EXCESS = {"excess_shift": -0.001, "excess_sim_low": -0.02, "excess_sim_high": 0.02}
NOBODY = "no class or group is shown to lose more than the rest."


def made(result: AuditResult) -> Brief:
    return brief(result, findings(result))


def said(result: AuditResult, heading: str) -> str:
    return next(line.text for line in made(result).lines if line.heading == heading)


def of_variant(result: AuditResult, name: str = "int8") -> str:
    return next(line.text for line in made(result).variants if line.heading == name)


@pytest.fixture(scope="module")
def one(result: AuditResult) -> AuditResult:
    return replace(result, variants=("int8",))


def everywhere(result: AuditResult, **values: float) -> AuditResult:
    return edited(result, result.results["shift"].notna(), **values)


def test_five_lines_then_the_baseline_then_variants_as_given(result: AuditResult) -> None:
    first = made(result)
    assert [line.heading for line in first.lines] == HEADINGS
    assert first.compared == (
        "int8 and pruned-90 against dense: 4,000 examples, 10 classes, groups by sex, age and "
        "sex*age"
    )
    assert [line.heading for line in first.variants] == ["dense", "int8", "pruned-90"]
    assert first.variants[0].text == "baseline, accuracy 92.5 %."


def test_who_loses_most_has_the_numbers_of_the_lead(one: AuditResult) -> None:
    row = one.lead
    row = row[(row["variant"] == "int8") & (row["class"] == "3")].set_index("quantity")
    shift, excess = row.loc["shift"], row.loc["excess"]
    size = points_interval(shift["estimate"], shift["low"], shift["high"])
    assert said(one, "Loses most") == f"class 3, {size}, {shift['n']} examples."
    by = points_interval(-excess["estimate"], -excess["high"], -excess["low"]).replace("+", "")
    assert said(one, "More than the rest").startswith(f"class 3, by {by}; ")
    assert of_variant(one).startswith("class 3 loses most, −8.9 points; 2 more lose more than the")
    rows = one.results
    own = rows[
        (rows["variant"] == "int8") & rows["loss_ruled_out"].notna() & rows["family"].notna()
    ]
    own = own[own["metric"].isin(["accuracy", "recall"]) & own["by"].isin(["group", "class"])]
    number = f"{int(own['loss_ruled_out'].sum())} of {len(own)} classes and groups"
    assert said(one, "Ruled out").startswith(f"a loss beyond 2 points for {number}")
    assert f"a loss beyond 2 points is ruled out for {number}; no policy set." in of_variant(one)


def test_a_uniform_drop_names_nobody(one: AuditResult) -> None:
    drop = everywhere(one, shift=-0.04, sim_low=-0.06, sim_high=-0.02, **NO_EXCESS)
    assert said(drop, "Loses most") == (
        "no class or group stands out; a loss is shown for all 19 classes and groups."
    )
    assert said(drop, "More than the rest") == NOBODY
    assert of_variant(drop).startswith(f"loses 4.0 points overall; {NOBODY[:-1]}; ")
    few = edited(
        everywhere(drop, sim_high=0.01), drop.results["group"] == "sex=Female", sim_high=-0.01
    )
    assert said(few, "Loses most") == (
        "no class or group stands out; a loss is shown for sex=Female (−4.0 points)."
    )


def test_nothing_found_says_what_is_ruled_out(one: AuditResult) -> None:
    calm = everywhere(one, sim_high=0.3, loss_ruled_out=True, **NO_EXCESS)
    assert said(calm, "Loses most") == "no class or group shows a clear loss."
    assert said(calm, "Ruled out") == "a loss beyond 2 points for all 19 classes and groups."
    assert of_variant(calm) == (
        "no loss found; a loss beyond 2 points is ruled out for all 19 classes and groups; no "
        "policy set."
    )
    # Where nothing is ruled out either, the line of the variant says how much may be lost.
    open_ = everywhere(one, sim_high=0.3, loss_ruled_out=False, **NO_EXCESS)
    assert "none of 19 classes and groups (up to 18.4 points is possible)" in of_variant(open_)


def test_whoever_gained_less_stands_apart(one: AuditResult) -> None:
    calm = everywhere(one, shift=0.06, sim_low=0.05, sim_high=0.07, **NO_EXCESS)
    behind = {"excess_shift": -0.05, "excess_sim_low": -0.07, "excess_sim_high": -0.03}
    here = (calm.results["group"] == "sex=Female") & (calm.results["metric"] == "accuracy")
    less = edited(calm, here, shift=0.01, sim_low=-0.01, sim_high=0.03, **behind)
    assert said(less, "Loses most") == "no class or group shows a clear loss."
    assert said(less, "More than the rest") == (
        "no class or group is shown to lose more than the rest. Gained less than the rest: "
        "sex=Female, by 5.0 points."
    )
    assert of_variant(less).startswith(
        "no loss found; gains 6.0 points overall; sex=Female gained less than the rest; "
    )
    # With a fall of its own it loses more, though its own loss is not clear.
    worse = edited(calm, here, shift=-0.01, sim_low=-0.03, sim_high=0.01, **behind)
    assert "sex=Female, by 5.0 points [" in said(worse, "More than the rest")
    assert said(worse, "More than the rest").endswith(" (its own loss is not clear).")
    assert "does worse than the rest, but its own loss is not clear" in of_variant(worse)


def test_who_has_too_few_examples_and_how_many_it_takes(one: AuditResult) -> None:
    """A group of six is not tested, and leads no list."""
    line = said(one, "Too small")
    finding = findings(one)[0]
    untested = {small.name for small in finding.small}
    assert untested
    assert not untested & {blind.name for blind in finding.blind}
    sizes = [blind.n for blind in finding.blind]
    assert f" have {min(sizes)} to {max(sizes):,} examples; about " in line
    assert "are needed to find a 2-point loss; not tested: " in line
    assert finding.n_watched == len(finding.model.shifts)


def test_few_that_are_too_small_have_their_own_numbers(one: AuditResult) -> None:
    power = one.power.copy()
    group = power["group"] == "sex=Female"
    power["min_detectable_shift"] = np.where(group, -0.05, -0.001)
    power.loc[group, "n_needed"] = 8123.0
    unsettled = edited(
        one, one.results["group"] == "sex=Female", sim_low=-0.1, sim_high=0.1, loss_ruled_out=False
    )
    line = said(replace(unsettled, power=power), "Too small")
    n = int(power.loc[group, "n"].iloc[0])
    assert line.startswith(
        f"too few examples to find a 2-point loss: sex=Female has {n:,} (needs about 8,100)"
    )


def test_what_cannot_be_tested_is_not_called_unharmed() -> None:
    """Three clusters give no limits: a fall of ten points is neither shown nor ruled out."""
    label = list("ab" * 60)
    worse = ["b" if i < 24 else y for i, y in enumerate(label)]
    table = {
        "example_id": range(120), "label": label, "pred_dense": label, "pred_int8": worse,
        "site": [f"s{i % 3}" for i in range(120)], "sex": ["F", "M"] * 60,
    }  # fmt: skip
    result = fw.audit_table(table, groups=["sex"], cluster="site", n_boot=20).result
    why = "(3 clusters)"
    assert said(result, "Loses most") == f"no class or group can be tested {why}."
    assert said(result, "Too small").endswith(f" examples {why}.")
    assert of_variant(result) == (
        f"accuracy 100.0 % → 90.0 %: −10.0 points; a loss cannot be tested {why}; no policy set."
    )
    headline = finding_document(findings(result), made(result))["headline"]
    assert headline == f"A loss cannot be tested in int8 {why}: overall −10.0 points."


def test_many_variants_stay_short(result: AuditResult) -> None:
    names = tuple(f"v{i}" for i in range(6))
    rows = result.results[result.results["variant"] == "int8"]
    power = result.power[result.power["variant"] == "int8"]
    many = replace(
        result,
        variants=names,
        results=pd.concat([rows.assign(variant=name) for name in names], ignore_index=True),
        power=pd.concat([power.assign(variant=name) for name in names], ignore_index=True),
    )
    many = replace(many, lead=lead_of(many.results, many.groupings))
    first = made(many)
    assert first.compared.startswith("6 variants against dense: ")
    assert all(len(line.parts) <= NAMED + 1 for line in first.lines)
    assert [line.heading for line in first.variants] == ["dense", *names]
    assert said(many, "Ruled out") == (
        "a loss beyond 2 points, for every class and group: in none of 6 variants."
    )


def test_beyond_retraining_is_said_of_each_variant(population: AuditResult) -> None:
    line = of_variant(population, "pruned-90")
    method = findings(population)[1].method
    assert method is not None
    assert method.most is not None
    assert f"; beyond retraining, {method.most.name} loses most, −" in line
    first = made(population)
    # Where these models show who loses more and so few members do not show it of the method.
    method_rows = population.results["scope"] == "method"
    unsure = edited(population, method_rows, excess_sim_low=-0.3, excess_sim_high=0.3)
    assert "a loss is shown overall, but 6 members a side do not show who loses more;" in (
        of_variant(unsure, "pruned-90")
    )
    assert first.compared.endswith(", 6 members each")
    scale = next(caveat for caveat in first.caveats if caveat.anchor == "retraining")
    assert scale.text.startswith("For scale: retraining the dense model moves accuracy")
    assert "beyond retraining" not in of_variant(without_method(population), "pruned-90")


def test_caveats_are_few_and_explained(
    result: AuditResult, population: AuditResult, bare: AuditResult
) -> None:
    for audit in (result, population, bare):
        first = made(audit)
        assert 0 < len(first.caveats) <= CAVEATS
        assert len({caveat.text for caveat in first.caveats}) == len(first.caveats)
        page = render(audit)
        for caveat in first.caveats:
            assert caveat.anchor in (*EXPLAINED, "notes")
            assert f'id="{caveat.anchor}"' in page
    clustered = edited(result, result.results["metric"] == "accuracy", n_clusters=50)
    assert not any("independent" in caveat.text for caveat in made(clustered).caveats)


def test_a_policy_is_named_with_its_verdict() -> None:
    label = ["a", "b"] * 60
    audit = fw.audit(
        label,
        {"dense": label, "int8": ["b"] * 20 + label[20:]},
        sensitive_features={"site": ["x"] * 60 + ["y"] * 60},
        n_boot=20,
    )
    verdict = audit.gate({"rule": [{"metric": "accuracy", "by": "group", "margin": 0.02}]})
    first = brief(audit.result, findings(audit.result), verdict)
    assert first.variants[1].text.endswith(f"; policy: {verdict.outcome}.")


def test_missing_predictions_are_said() -> None:
    label = list("ab" * 60)
    audit = fw.audit(label, {"dense": label, "int8": [None, *label[1:]]}, n_boot=20)
    texts = [caveat.text for caveat in made(audit.result).caveats]
    assert "Missing predictions count as wrong: 1 of int8." in texts


def outputs(result: AuditResult) -> Iterator[tuple[str, str]]:
    out = io.StringIO()
    Console(file=out, width=2000).print(five_lines(made(result)))
    yield "terminal", re.sub(r"\s+", " ", out.getvalue())
    yield "page", re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", render(result))))
    yield "notebook", re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", fragment(result))))
    yield "markdown", to_markdown(result)


def test_every_output_begins_with_the_same_lines(population: AuditResult) -> None:
    first = made(population)
    parts = [first.compared, *(p for line in (*first.lines, *first.variants) for p in line.parts)]
    for where, text in outputs(population):
        shown = [escaped(part) if where == "markdown" else part for part in parts]
        places = [text.find(part) for part in shown]
        assert -1 not in places, (where, parts[places.index(-1)])
        assert places == sorted(places), where
    document = finding_document(findings(population), first)
    json.dumps(document)
    assert document["brief"]["lines"]["Overall"] == first.lines[0].text


@pytest.mark.parametrize("seed", range(3))
def test_sentences_are_short(seed: int) -> None:
    """At most 25 words between full stops, colons and semicolons."""
    rng = np.random.default_rng(seed)
    n = 1500
    label, sex = rng.choice(list("abcd"), n), rng.choice(["F", "M"], n, p=[0.2, 0.8])
    right = rng.random(n) < 0.9
    answers = {"dense": np.where(right, label, "a")}
    for i in range(1, 3):
        kept = right & (rng.random(n) > 0.03 * i * (1 + 3 * (sex == "F") * (seed > 0)))
        answers[f"v{i}"] = np.where(kept, label, "b")
    result = fw.audit(label, answers, sensitive_features={"sex": sex}, n_boot=20).result
    first = made(result)
    texts = [line.text for line in (*first.lines, *first.variants)]
    for text in (first.compared, *texts, *(caveat.text for caveat in first.caveats)):
        for sentence in re.split(r"[.:;](?:\s|$)", text):
            assert len(sentence.split()) <= 25, sentence
