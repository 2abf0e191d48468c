from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError
from fairweight.report.finding import RuledOut, find, findings, verdict
from fairweight.report.sentences import TOPICS, reading, sentences

from .conftest import edited, lead_of, of_version_0_1_0


def confirmatory(result: AuditResult, variant: str) -> pd.DataFrame:
    rows = result.results
    keep = ((rows["metric"] == "accuracy") & (rows["by"] == "group")) | (
        (rows["metric"] == "recall") & (rows["by"] == "class")
    )
    return rows[keep & (rows["variant"] == variant)]


def said_by(result: AuditResult, variant: str | None = None) -> dict[str, list[str]]:
    """What is said of one variant, by topic."""
    said: dict[str, list[str]] = {topic: [] for topic in TOPICS}
    for sentence in sentences(find(result, variant)):
        said[sentence.topic].append(sentence.text)
    return said


def everybody(result: AuditResult, **values: float) -> AuditResult:
    """The same with these values in every row by class or group."""
    return edited(result, result.results["by"].isin(["class", "group"]), **values)


def test_one_finding_per_variant_in_the_order_given(result: AuditResult) -> None:
    assert [f.variant for f in findings(result)] == list(result.variants)


def test_an_unknown_variant_is_named_with_the_nearest(result: AuditResult) -> None:
    with pytest.raises(InputError, match="Did you mean 'pruned-90'"):
        find(result, "pruned-9")


def test_loses_exactly_where_limits_of_the_lead_lie_below_zero(result: AuditResult) -> None:
    for finding in findings(result):
        rows = result.lead[result.lead["variant"] == finding.variant]
        lost = rows[(rows["high"] < 0) & (rows["quantity"] == "shift") & (rows["by"] != "overall")]
        expected = set(lost["group"].fillna(lost["class"]))
        assert {payer.name for payer in finding.model.loses} == expected
        assert all(p.low <= p.shift <= p.high < 0 for p in finding.model.loses)


def test_tables_keep_the_limits_of_their_families(result: AuditResult) -> None:
    for finding in findings(result):
        (model,) = finding.families
        rows = confirmatory(result, finding.variant)
        lost = rows[(rows["sim_high"] < 0) & (rows["status"] == "ok")]
        assert {p.name for p in model.loses} == set(lost["group"].fillna(lost["class"]))
        more = rows[(rows["excess_sim_high"] < 0) & (rows["status"] == "ok") & (rows["shift"] < 0)]
        assert {p.name for p in model.pays_more} == set(more["group"].fillna(more["class"]))
    # The lead is stricter: class 0 of int8 is in the table alone.
    first = find(result)
    assert {p.name for p in first.families[0].loses} - {p.name for p in first.model.loses} == {"0"}


def test_the_overall_change_has_the_limits_of_the_lead(result: AuditResult) -> None:
    (row,) = result.lead[(result.lead["by"] == "overall")].head(1).to_dict("records")
    change = find(result, row["variant"]).model.overall
    assert change is not None
    assert (change.low, change.high, change.p) == (row["low"], row["high"], row["p_lead"])
    own = result.results[result.results["by"] == "overall"].iloc[0]
    assert change.low < own["ci_low"]
    assert own["ci_high"] < change.high


def test_without_a_lead_the_limits_of_the_families_stand_in(result: AuditResult) -> None:
    old = of_version_0_1_0(result)
    finding = find(old)
    assert repr(finding.model) == repr(verdict(old, "int8", "model", 0.05))
    rows = confirmatory(old, "int8")
    lost = rows[(rows["sim_high"] < 0) & (rows["status"] == "ok")]
    assert {p.name for p in finding.model.loses} == set(lost["group"].fillna(lost["class"]))
    assert finding.ruled_out is None
    assert not any(s.topic == "ruled out" for s in sentences(finding))
    assert "not for all variants" in reading(finding)
    assert "of models that did not change" not in reading(finding)
    assert "at most 6.5 % get any line" in reading(find(result))


def test_the_chance_of_a_line_is_that_of_the_level(result: AuditResult) -> None:
    options = {**result.provenance.options, "alpha": 0.1}
    wider = replace(result, provenance=replace(result.provenance, options=options))
    assert "about 10 % get any line" in reading(find(wider))


def test_a_limit_of_exactly_zero_is_not_a_loss(result: AuditResult) -> None:
    where = result.results["group"] == "sex=Female"
    touching = edited(result, where, sim_high=0.0)
    assert "sex=Female" not in {p.name for p in find(touching).model.loses}
    assert "sex=Female" in {p.name for p in find(result).model.loses}


def test_pointwise_intervals_do_not_make_a_loser(result: AuditResult) -> None:
    where = result.results["group"] == "sex=Female"
    only_pointwise = edited(result, where, ci_high=-0.01, sim_high=0.01)
    assert "sex=Female" not in {p.name for p in find(only_pointwise).model.loses}


def test_small_groups_are_never_losers(result: AuditResult) -> None:
    where = result.results["group"] == "sex=Female"
    small = edited(result, where, status="small_group: n < 10")
    finding = find(small)
    assert "sex=Female" not in {p.name for p in (*finding.model.loses, *finding.model.pays_more)}
    assert "sex=Female" in {s.name for s in finding.small}


def test_gains_are_told_apart_from_losses(result: AuditResult) -> None:
    where = result.results["group"] == "sex=Male"
    better = edited(result, where, shift=0.03, sim_low=0.01, sim_high=0.05)
    finding = find(better)
    assert [p.name for p in finding.model.gains] == ["sex=Male"]
    assert "sex=Male" not in {p.name for p in finding.model.loses}


def test_who_pays_more_has_the_p_and_limits_of_the_lead(result: AuditResult) -> None:
    for finding in findings(result):
        rows = result.lead[result.lead["variant"] == finding.variant]
        rows = rows[(rows["quantity"] == "excess") & (rows["p_lead"] <= 0.05)]
        rows = rows[rows["estimate"] < 0]
        names = rows["group"].fillna(rows["class"])
        limits = zip(rows["p_lead"], rows["low"], rows["high"], strict=True)
        expected = dict(zip(names, limits, strict=True))
        found = {p.name: (p.p, p.low, p.high) for p in finding.model.pays_more}
        assert found == expected
        assert "sex=Female" in found  # the fixture's truth, so the test is not empty


def test_whoever_pays_less_is_not_listed_as_paying_more(result: AuditResult) -> None:
    where = result.results["group"] == "sex=Male"
    spared = edited(result, where, excess_shift=0.05, excess_sim_low=0.04, excess_sim_high=0.06)
    assert "sex=Male" not in {p.name for p in find(spared).model.pays_more}


def test_whoever_gained_less_than_the_others_does_not_pay_more(result: AuditResult) -> None:
    """+1 point where the others gained 6: an excess of −5 points, and nobody loses."""
    rows = result.results
    here = (rows["group"] == "sex=Female") & (rows["metric"] == "accuracy")
    behind = {"excess_shift": -0.05, "excess_sim_low": -0.07, "excess_sim_high": -0.03}
    calm = everybody(result, shift=0.06, sim_low=0.05, sim_high=0.07, excess_shift=0.0,
                     excess_sim_low=-0.02, excess_sim_high=0.02)  # fmt: skip
    gained = edited(calm, here, shift=0.01, sim_low=-0.01, sim_high=0.03, **behind)
    finding = find(gained)
    assert [p.name for p in finding.model.excesses if p.p <= 0.05] == ["sex=Female"]
    assert finding.model.pays_more == ()
    said = said_by(gained)
    assert said["most"] == []
    assert said["pays more"] == ["No class or group is shown to lose more than the rest."]
    assert said["gained less"] == ["Less than the rest: sex=Female by 5.0 points."]
    # The column differs all the same; its line says how, so that it contradicts nothing.
    assert said["columns"][0].startswith("By sex: the change differs (p ")
    assert "): sex=Female gained less than the rest, by 5.0 points." in said["columns"][0]
    # With a fall of its own it pays.
    paying = find(edited(calm, here, shift=-0.01, sim_low=-0.03, sim_high=0.01, **behind))
    assert [p.name for p in paying.model.pays_more] == ["sex=Female"]
    assert paying.model.gained_less == ()
    (line,) = [s.text for s in sentences(paying) if s.topic == "pays more"]
    assert line.startswith("sex=Female: by 5.0 points [")
    assert line.endswith("; its own loss is not clear.")


def test_nobody_loses_most_under_a_uniform_drop(result: AuditResult) -> None:
    """Every class and group loses; the largest fall is nobody's fault."""
    drop = everybody(result, shift=-0.04, sim_low=-0.06, sim_high=-0.02, excess_shift=-0.005,
                     excess_sim_low=-0.02, excess_sim_high=0.02)  # fmt: skip
    finding = find(drop)
    assert len(finding.model.loses) == len(finding.model.shifts) == 19
    assert finding.model.most is None
    said = said_by(drop)
    assert said["most"] == []
    assert said["pays more"] == ["No class or group is shown to lose more than the rest."]
    assert said["loses"] == ["All 19 classes and groups, by 4.0 to 4.0 points."]
    # The fall of one is larger, and still without an excess.
    here = drop.results["class"] == "7"
    larger = edited(drop, here, shift=-0.09, sim_low=-0.15, sim_high=-0.03)
    assert find(larger).model.most is None
    # With an excess it leads.
    known = {"excess_shift": -0.05, "excess_sim_low": -0.09, "excess_sim_high": -0.01}
    led = said_by(edited(larger, here, **known))
    assert led["most"][0].startswith("class 7: −9.0 points [")
    assert led["pays more"][0].startswith("class 7: by 5.0 points [")


def test_who_loses_most_is_the_largest_loss_of_those_who_pay_more(result: AuditResult) -> None:
    model = find(result).model
    paying = {p.key for p in model.pays_more}
    most = model.most
    assert most is not None
    assert most.shift == min(p.shift for p in model.loses if p.key in paying)
    assert most.low <= most.shift <= most.high < 0


@pytest.mark.parametrize("name", ["result", "population", "hostile"])
def test_a_column_differs_exactly_where_one_of_its_groups_does(
    name: str, request: pytest.FixtureRequest
) -> None:
    audit: AuditResult = request.getfixturevalue(name)
    for finding in findings(audit):
        for side in finding.verdicts:
            for column in side.columns:
                if column.differs is None:
                    continue
                assert column.differs == bool(side.apart(column))
                if column.differs:
                    assert column.p == side.apart(column)[0].p


def test_columns_that_pay_differently(result: AuditResult) -> None:
    columns = [c for c in find(result).model.columns if c.kind == "group"]
    found = {c.name: (c.differs, c.reason) for c in columns}
    assert found == {"sex": (True, None), "age": (False, None), "sex*age": (None, "one level")}


def test_whether_classes_explain_a_difference_has_words_of_its_own(result: AuditResult) -> None:
    def with_p(p: float) -> str:
        own = result.results[result.results["metric"] == "heterogeneity"].assign(
            metric="heterogeneity_within_classes", p_adjusted=p
        )
        rows = pd.concat([result.results, own], ignore_index=True)
        return said_by(replace(result, results=rows))["columns"][0]

    assert with_p(0.004).endswith(", also among examples of one class (p = 0.004).")
    assert with_p(0.3).endswith(
        "; among examples of one class no difference is shown (p = 0.30), so the mix of classes "
        "may explain it."
    )


def test_a_column_says_who_did_better_where_nobody_lost_more(result: AuditResult) -> None:
    calm = everybody(result, excess_shift=0.0, excess_sim_low=-0.02, excess_sim_high=0.02)
    here = (calm.results["group"] == "age=old") & (calm.results["metric"] == "accuracy")
    better = {"excess_shift": 0.04, "excess_sim_low": 0.02, "excess_sim_high": 0.06}
    said = said_by(edited(calm, here, **better))
    assert said["pays more"] == ["No class or group is shown to lose more than the rest."]
    assert "By sex: no difference shown (p = 1)." in said["columns"]
    (age,) = [line for line in said["columns"] if line.startswith("By age: ")]
    assert age.endswith("): age=old did better than the rest, by 4.0 points.")


def test_limits_of_an_excess_that_reach_the_other_side_keep_their_sign(
    population: AuditResult,
) -> None:
    """About the method p is Holm's and limits are simultaneous: they need not agree."""
    rows = population.results
    here = (rows["scope"] == "method") & (rows["group"] == "sex=Female")
    wide = edited(population, here, excess_sim_low=-0.12, excess_sim_high=0.01)
    lead = wide.lead.copy()
    own = (lead["scope"] == "method") & (lead["group"] == "sex=Female")
    lead.loc[own & (lead["quantity"] == "excess"), ["low", "high", "p_lead"]] = -0.12, 0.01, 0.04
    (line, *_) = [
        s.text
        for s in sentences(find(replace(wide, lead=lead)))
        if s.topic == "pays more" and s.scope == "method" and "sex=Female:" in s.text
    ]
    assert "points [−1.0, 12.0], p = 0.04." in line


@pytest.mark.parametrize(
    ("certain", "expected"),
    [
        (19, "A loss beyond 2 points is ruled out for all 19 classes and groups."),
        (0, "A loss beyond 2 points is ruled out for none of 19 classes and groups; open: "),
    ],
)
def test_what_is_ruled_out_for_all_and_for_none(
    result: AuditResult, certain: int, expected: str
) -> None:
    made = everybody(result, loss_ruled_out=certain > 0, shift=0.0, sim_low=-0.01, sim_high=0.01)
    (line,) = said_by(made)["ruled out"]
    assert line.startswith(expected)
    assert ("up to" in line) == (certain == 0)


def test_what_is_ruled_out_for_some(result: AuditResult) -> None:
    """Three states: ruled out, shown, and open with the largest possible loss first."""
    rows = result.results
    made = everybody(result, loss_ruled_out=True, shift=0.0, sim_low=-0.01, sim_high=0.01)
    lost = (rows["group"] == "sex=Female") & (rows["metric"] == "accuracy")
    made = edited(made, lost, loss_ruled_out=False, shift=-0.07, sim_low=-0.09, sim_high=-0.05)
    unsure = rows["class"].isin(["1", "2"])
    made = edited(made, unsure, loss_ruled_out=False)
    power = result.power.copy()
    power.loc[power["group"] == "sex=Female", "largest_loss"] = 0.085
    power.loc[power["class"] == "1", "largest_loss"] = 0.031
    power.loc[power["class"] == "2", "largest_loss"] = 0.044
    made = replace(made, power=power)
    found = find(made).ruled_out
    assert found is not None
    assert (found.number, found.of, found.shown, found.largest) == (16, 19, 1, 0.085)
    assert said_by(made)["ruled out"] == [
        "A loss beyond 2 points is ruled out for 16 of 19 classes and groups and shown for 1; "
        "open: class 2 (up to 4.4 points), class 1 (up to 3.1 points)."
    ]


def test_the_margin_is_the_one_that_was_given(result: AuditResult) -> None:
    options = {**result.provenance.options, "margin": 0.035}
    other = replace(result, provenance=replace(result.provenance, options=options))
    assert said_by(other)["ruled out"][0].startswith("A loss beyond 3.5 points is ruled out for ")


def test_long_lists_of_what_is_open_say_how_many_more(result: AuditResult) -> None:
    found = find(result).ruled_out
    assert isinstance(found, RuledOut)
    (line,) = said_by(result)["ruled out"]
    assert line.endswith(f" and {len(found.open) - 3} more.")
    reaches = [o.largest for o in found.open]
    assert reaches == sorted(reaches, reverse=True)


def test_a_loss_that_is_ruled_out_is_not_called_too_small(result: AuditResult) -> None:
    first = find(result).blind[0]
    where = result.results[first.kind] == first.name
    certain = edited(result, where, loss_ruled_out=True)
    assert first.name not in {b.name for b in find(certain).blind}


def test_blind_rows_are_unpowered_and_undecided(result: AuditResult) -> None:
    finding = find(result)
    lost = {p.name for p in finding.families[0].loses}
    power = result.power[result.power["variant"] == finding.variant]
    names = power["group"].fillna(power["class"])
    weak = power["min_detectable_shift"].isna() | (power["min_detectable_shift"] > 0.02)
    rows = confirmatory(result, finding.variant)
    excluded = rows[rows["loss_ruled_out"].fillna(False)]  # of two points
    told = lost | set(excluded["group"].fillna(excluded["class"]))
    assert {b.name for b in finding.blind} == set(names[weak]) - told
    assert finding.blind
    assert finding.n_watched == len(power)


def test_the_sign_of_the_detectable_shift_does_not_matter(result: AuditResult) -> None:
    power = result.power.copy()
    power["min_detectable_shift"] *= -1
    assert repr(find(replace(result, power=power)).blind) == repr(find(result).blind)


def test_intersections_come_after_what_they_are_made_of(result: AuditResult) -> None:
    for finding in findings(result):
        crossed = [" & " in payer.name for payer in finding.model.loses]
        assert crossed == sorted(crossed)
        assert True in crossed


def test_losses_of_one_column_stand_in_order_of_size(result: AuditResult) -> None:
    single = [p.shift for p in find(result).model.loses if " & " not in p.name]
    assert single == sorted(single)


def test_a_bare_audit_has_a_finding(bare: AuditResult) -> None:
    finding = find(bare)
    assert finding.model.overall is not None
    assert (finding.model.loses, finding.model.pays_more, finding.blind, finding.small) == (
        (),
        (),
        (),
        (),
    )
    text = " ".join(s.text for s in sentences(finding))
    assert "No group column was given." in text
    assert "No class or group is shown to lose more than the rest." in text
    assert "No class or group shows a clear loss." in text


def test_sentences_say_what_the_summary_must(result: AuditResult) -> None:
    said = said_by(result)
    assert said["pair"] == ["int8 against dense on 4,000 examples, 10 classes."]
    assert said["accuracy"][0].startswith("Accuracy 92.5 % → 90.1 %: −2.4 points [−")
    assert said["most"][0].startswith("class 3: −8.9 points [−13.5, −4.3], 394 examples.")
    assert any(
        line.startswith("sex=Female: by 3.4 points [1.6, 5.2], p < 0.001")
        for line in said["pays more"]
    )
    assert said["columns"][0] == "By sex: the change differs (p < 0.001)."
    assert said["columns"][1].startswith("By age: no difference shown (p = ")
    assert said["columns"][2] == "By sex*age: cannot be tested (one level)."
    assert said["columns"][3] == "By class: the change differs (p < 0.001)."
    assert any("sex=Female" in line and ", 1,1" in line for line in said["loses"])
    assert not any(line.startswith("class 3:") for line in said["loses"])  # it stands above
    assert said["ruled out"][0].startswith("A loss beyond 2 points is ruled out for 2 of 19 ")
    assert said["cannot tell"][0].startswith(
        "Too few examples to find a loss of 2 points reliably: "
    )
    assert "needed" in said["cannot tell"][0]
    assert "n = 3 < 10" in said["cannot tell"][1]
    assert "not about the method that made them" in said["scope"][0]
    assert said["scope"][1].startswith("Examples are assumed independent")


def test_long_lists_say_how_much_they_leave_out(result: AuditResult) -> None:
    finding = find(result, "pruned-90")
    lines = [s.text for s in sentences(finding, limit=2) if s.topic == "loses"]
    assert len(lines) == 3
    # Whoever loses most has a line of its own.
    assert lines[-1] == f"… and {len(finding.model.loses) - 1 - 2} more."


def test_clusters_remove_the_sentence_about_independence(result: AuditResult) -> None:
    clustered = edited(result, result.results["metric"] == "accuracy", n_clusters=50)
    assert not any("independent" in s.text for s in sentences(find(clustered)))


def test_words_that_claim_too_much_are_never_used(
    make_result: Callable[..., AuditResult],
) -> None:
    for seed in range(3):
        for finding in findings(make_result(seed=seed, n=800)):
            text = " ".join(s.text for s in sentences(finding)).lower()
            for word in ("fair ", "unbiased", "debiased", "worst", "because", " cause"):
                assert word not in text


def test_tasks_are_named(result: AuditResult) -> None:
    rows = result.results.copy()
    overall = rows["by"] == "overall"
    rows.loc[~overall, "task"] = "smiling"
    power = result.power.assign(task="smiling")
    lead = lead_of(rows, result.groupings)
    finding = find(replace(result, results=rows, power=power, lead=lead, tasks=("smiling",)))
    text = "\n".join(s.text for s in sentences(finding))
    assert "sex=Female (smiling): −" in text
    assert "sex=Female (smiling): by " in text
    assert "class 3 (smiling): −" in text
    assert "By sex (smiling): the change differs" in text
    assert "By class (smiling): the change differs" in text
    assert "; open: " in text
    assert " (smiling) (up to " in text
    assert finding.blind
    assert not {b.name for b in finding.blind} & {p.name for p in finding.model.loses}


def test_wrong_group_labels_are_spoken_of_only_when_declared(result: AuditResult) -> None:
    assert not [s for s in sentences(find(result)) if s.topic == "labels"]
    declared = replace(
        result.provenance, options={**result.provenance.options, "group_error": 0.05}
    )
    table = pd.DataFrame(
        [
            (result.variants[0], None, "sex=F", 0.05, -0.02, -0.0246, -0.02),
            (result.variants[0], None, "sex=M", 0.05, 0.02, 0.02, 0.0246),
        ],
        columns=list(result.group_error.columns),
    )
    said = sentences(find(replace(result, group_error=table, provenance=declared)))
    (line,) = [s.text for s in said if s.topic == "labels"]
    assert line.startswith("If 5 % of the group labels are wrong")
    assert "sex=F −2.5 points to −2.0 points" in line
    assert "sex=M" not in line


def test_the_level_of_missing_values_is_no_headline(result: AuditResult) -> None:
    rows = result.results
    losers = find(result).model.loses
    assert losers
    name = losers[0].name
    where = (rows["group"] == name) | (rows["class"] == name)
    outside = edited(result, where, family=None)
    assert name not in [payer.name for payer in find(outside).model.loses]
