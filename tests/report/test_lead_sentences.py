"""The finding in one sentence: what is shown, never more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fairweight.auditing.result import AuditResult
from fairweight.report.finding import Finding, findings, ranked
from fairweight.report.numbers import points_interval
from fairweight.report.sentences import beyond_retraining, headline

from .conftest import edited, of_version_0_1_0

NO_LOSS = {"sim_high": 0.3}
NO_EXCESS = {"excess_shift": -0.001, "excess_sim_low": -0.02, "excess_sim_high": 0.02}


def _with(result: AuditResult, **values: float) -> AuditResult:
    """The same with these values wherever there is a shift."""
    return edited(result, result.results["shift"].notna(), **values)


def _without_losses(result: AuditResult) -> AuditResult:
    """The same with limits that include 0, and no excess."""
    return _with(result, **NO_LOSS, **NO_EXCESS)


def _row(result: AuditResult, finding: Finding, name: str) -> dict[Any, Any]:
    rows = result.lead
    own = rows[(rows["variant"] == finding.variant) & (rows["quantity"] == "shift")]
    return own[own["class"] == name].iloc[0].to_dict()


def test_one_variant_names_who_loses_most_with_limits(result: AuditResult) -> None:
    found = findings(replace(result, variants=result.variants[:1]))
    row = _row(result, found[0], "3")
    said = headline(found)
    limits = points_interval(row["estimate"], row["low"], row["high"])
    assert said.startswith(f"Class 3 loses most: {limits} in int8, against −2.4 overall; ")
    more = len(found[0].model.pays_more) - 1
    assert more == 2
    assert f"; {more} other classes and groups do worse than the rest; " in said
    assert said.endswith(
        "; a loss beyond 2 points is ruled out for 2 of 19 classes and groups, the others may "
        "lose up to 18.4 points."
    )


def test_several_variants_are_counted_and_the_worst_is_named(result: AuditResult) -> None:
    found = findings(result)
    first = ranked(found)[0]
    paying = [{p.key for p in f.model.pays_more} for f in found]
    worst = min(
        p.shift
        for f, more in zip(found, paying, strict=True)
        for p in f.model.loses
        if p.key in more
    )
    assert first.verdict.most is not None
    assert first.verdict.most.shift == worst
    said = headline(found)
    assert f" in {first.finding.variant}, " in said
    assert (
        "a loss is shown in 2 of 2 variants, and in 2 a class or group does worse than the rest"
        in said
    )


def test_the_ranking_puts_shown_losses_first(result: AuditResult) -> None:
    calm = _without_losses(result)
    mixed = (findings(calm)[0], findings(result)[1])
    assert [s.place for s in ranked(mixed)] == [2, 1]
    assert "a loss is shown in 1 of 2 variants" in headline(mixed)


def test_a_larger_loss_of_everybody_ranks_behind_somebody_who_loses_more(
    result: AuditResult,
) -> None:
    """Under a uniform drop a random group has the largest fall: it leads nothing."""
    drop = {"shift": -0.2, "sim_low": -0.25, "sim_high": -0.15}
    mixed = (findings(_with(result, **drop, **NO_EXCESS))[0], findings(result)[1])
    assert [s.place for s in ranked(mixed)] == [2, 1]
    assert headline(mixed).startswith("Class 3 loses most: ")
    assert "a loss is shown in 2 of 2 variants, and in 1 a class or group does worse" in headline(
        mixed
    )


def test_a_uniform_drop_names_nobody(result: AuditResult) -> None:
    found = findings(_with(result, **NO_EXCESS))
    assert all(finding.model.loses for finding in found)
    change = found[0].model.overall
    assert change is not None
    size = points_interval(change.shift, change.low, change.high)
    one = headline(found[:1])
    assert one.startswith(
        f"Overall {size} in int8; no class or group is shown to lose more than the rest; a loss "
        "beyond 2 points is ruled out for 2 of 19 classes and groups, "
    )
    several = headline(found)
    assert several.startswith("Overall −4.5 points [")  # of the variant that lost most
    assert "; a loss is shown in 2 of 2 variants" in several
    assert "loses most" not in one + several


def test_a_loss_of_one_without_an_excess_is_said_as_that(result: AuditResult) -> None:
    calm = _without_losses(result)
    rows = calm.results
    here = rows["group"] == "sex=Female"
    one = edited(calm, here, sim_high=-0.02)
    said = headline(findings(one)[:1])
    assert said.startswith("sex=Female loses in int8: −")
    assert (
        "; no class or group is shown to lose more than the rest; a loss beyond 2 points " in said
    )
    here |= (rows["class"] == "3") & (rows["metric"] == "recall")
    said = headline(findings(edited(calm, here, sim_high=-0.02))[:1])
    assert said.startswith(
        "2 classes and groups lose in int8; no class or group is shown to lose more than the rest; "
    )


def test_where_nobody_loses_what_is_ruled_out_is_said(result: AuditResult) -> None:
    found = findings(_without_losses(result))
    assert headline(found) == "No loss is shown in any of 2 variants."
    one = headline(found[:1])
    assert one.startswith("No loss is shown in int8: overall −2.4 points [")
    assert one.endswith(
        "; a loss beyond 2 points is ruled out for 2 of 19 classes and groups, the others may "
        "lose up to 18.4 points."
    )
    for certain, expected in (
        (True, "for all 19 classes and groups."),
        (False, "for none of 19 classes and groups, which may lose up to 18.4 points."),
    ):
        made = findings(_with(result, **NO_LOSS, **NO_EXCESS, loss_ruled_out=certain))
        assert headline(made[:1]).endswith(f"; a loss beyond 2 points is ruled out {expected}")
    both = findings(_with(result, **NO_LOSS, **NO_EXCESS, loss_ruled_out=True))
    assert headline(both) == (
        "No loss is shown in any of 2 variants; in 2 a loss beyond 2 points is ruled out for "
        "every class and group."
    )


def test_an_excess_without_a_loss_is_not_hidden(result: AuditResult) -> None:
    found = findings(_with(result, **NO_LOSS))
    assert all(f.model.most is None and f.model.pays_more for f in found)
    said = headline(found)
    assert "loses most" not in said
    assert "No loss is shown" not in said
    more = found[1].model.pays_more[0]
    assert (more.kind, more.name) == ("class", "3")
    assert said == (
        "Class 3 does worse than the rest, by 7.4 points [2.3, 12.6] in pruned-90; its own loss is "
        "not clear; a class or group does so in 2 of 2 variants."
    )
    one = headline(found[:1])
    assert "; its own loss is not clear; 2 other classes and groups do worse than" in one


def test_an_audit_without_a_lead_has_a_headline(result: AuditResult) -> None:
    found = findings(of_version_0_1_0(replace(result, variants=result.variants[:1])))
    said = headline(found)
    assert said.startswith("Class 3 loses most: −8.9 points [−12.9, −4.9] in int8, against −2.4")
    assert "ruled out" not in said


def test_the_method_has_a_sentence_of_its_own(population: AuditResult) -> None:
    found = findings(population)
    said = beyond_retraining(found)
    assert said is not None
    method = found[1].method
    assert method is not None
    assert method.most is not None
    assert said.startswith(f"Beyond retraining (the method): {method.most.name} loses most: ")
    assert "ruled out" not in said  # that is about these models
    assert headline(found) != said
    assert beyond_retraining(findings(replace(population, variants=()))) is None


def test_one_pair_says_nothing_about_a_method(result: AuditResult) -> None:
    assert beyond_retraining(findings(result)) is None
