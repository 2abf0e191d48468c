"""The finding in one sentence: what is shown, never more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairweight.auditing.result import AuditResult
from fairweight.report.finding import Finding, findings
from fairweight.report.lead_sentences import beyond_retraining, facts, headline
from fairweight.report.numbers import points_interval
from fairweight.report.ranking import ranked


def _without_losses(result: AuditResult) -> AuditResult:
    """The same with limits that include 0, and no excess."""
    rows = result.results.copy()
    rows["sim_high"] = rows["sim_high"].where(rows["sim_high"].isna(), 0.01)
    rows["excess_p_adjusted"] = np.nan
    return replace(result, results=rows)


def _row(result: AuditResult, finding: Finding, name: str) -> dict[str, float]:
    rows = result.results
    own = rows[(rows["variant"] == finding.variant) & (rows["metric"] == "recall")]
    return own[(own["by"] == "class") & (own["class"] == name)].iloc[0].to_dict()


def test_one_variant_names_who_loses_most_with_limits(result: AuditResult) -> None:
    found = findings(replace(result, variants=result.variants[:1]))
    row = _row(result, found[0], "3")
    said = headline(found)
    limits = points_interval(row["shift"], row["sim_low"], row["sim_high"])
    assert said.startswith(f"Class 3 loses most: {limits} in int8, against ")
    lose, of = len(found[0].model.loses), len(found[0].model.shifts)
    assert f"; {lose} of {of} classes and groups lose" in said
    assert said.endswith(".")


def test_several_variants_are_counted_and_the_worst_is_named(result: AuditResult) -> None:
    found = findings(result)
    first = ranked(found)[0]
    worst = min(p.shift for f in found for p in f.model.loses)
    assert first.verdict.loses[0].shift == worst
    said = headline(found)
    assert f" in {first.finding.variant}, " in said
    assert "some class or group loses in 2 of 2 variants" in said


def test_the_ranking_puts_shown_losses_first(result: AuditResult) -> None:
    calm = _without_losses(result)
    mixed = (findings(calm)[0], findings(result)[1])
    assert [s.place for s in ranked(mixed)] == [2, 1]
    assert "in 1 of 2 variants" in headline(mixed)


def test_where_nobody_loses_what_could_be_unseen_is_said(result: AuditResult) -> None:
    found = findings(_without_losses(result))
    said = headline(found)
    most = max(len(f.blind) for f in found)
    assert said.startswith("No class or group is shown to lose in any of 2 variants")
    assert f"could have gone unseen in up to {most} of {found[0].n_watched}" in said
    one = headline(found[:1])
    assert one.startswith("No class or group is shown to lose in int8; a loss of 2 points")
    assert "up to" not in one


def test_an_excess_without_a_loss_is_not_hidden(result: AuditResult) -> None:
    rows = result.results.copy()
    rows["sim_high"] = rows["sim_high"].where(rows["sim_high"].isna(), 0.01)
    said = headline(findings(replace(result, results=rows)))
    assert "is shown to lose" in said
    assert "pays more than the others in pruned-90" in said


def test_the_method_has_a_sentence_of_its_own(population: AuditResult) -> None:
    found = findings(population)
    said = beyond_retraining(found)
    assert said is not None
    assert said.startswith("Beyond retraining (the method): class 3 loses most")
    assert headline(found) != said
    assert beyond_retraining(findings(replace(population, variants=()))) is None


def test_one_pair_says_nothing_about_a_method(result: AuditResult) -> None:
    assert beyond_retraining(findings(result)) is None


def test_the_facts(result: AuditResult, population: AuditResult) -> None:
    assert facts(result, findings(result)) == (
        "4,000 examples; 10 classes; groups: sex, age, sex*age; 2 variants against dense."
    )
    assert "6 members of each, 6 of the baseline" in facts(population, findings(population))
