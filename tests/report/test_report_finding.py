from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError
from fairweight.report.finding import find, findings
from fairweight.report.sentences import TOPICS, sentences


def confirmatory(result: AuditResult, variant: str) -> pd.DataFrame:
    rows = result.results
    keep = ((rows["metric"] == "accuracy") & (rows["by"] == "group")) | (
        (rows["metric"] == "recall") & (rows["by"] == "class")
    )
    return rows[keep & (rows["variant"] == variant)]


def edited(result: AuditResult, where: pd.Series, **values: object) -> AuditResult:
    rows = result.results.copy()
    for column, value in values.items():
        rows.loc[where, column] = value
    return replace(result, results=rows)


def test_one_finding_per_variant_in_the_order_given(result: AuditResult) -> None:
    assert [f.variant for f in findings(result)] == list(result.variants)


def test_an_unknown_variant_is_named_with_the_nearest(result: AuditResult) -> None:
    with pytest.raises(InputError, match="Did you mean 'pruned-90'"):
        find(result, "pruned-9")


def test_loses_exactly_where_simultaneous_limits_lie_below_zero(result: AuditResult) -> None:
    for finding in findings(result):
        rows = confirmatory(result, finding.variant)
        lost = rows[(rows["sim_high"] < 0) & (rows["status"] == "ok")]
        expected = set(lost["group"].fillna(lost["class"]))
        assert {payer.name for payer in finding.model.loses} == expected
        assert all(p.low <= p.shift <= p.high < 0 for p in finding.model.loses)


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


def test_excess_is_corrected_by_holm_within_each_family(result: AuditResult) -> None:
    for finding in findings(result):
        rows = confirmatory(result, finding.variant)
        rows = rows[(rows["status"] == "ok") & rows["excess_p"].notna()]
        expected = {}
        for _, family in rows.groupby("family"):
            corrected = multipletests(family["excess_p"], method="holm")[1]
            names = family["group"].fillna(family["class"])
            for name, p, e in zip(names, corrected, family["excess_shift"], strict=True):
                if p <= 0.05 and e < 0:
                    expected[name] = p
        found = {payer.name: payer.p for payer in finding.model.pays_more}
        assert found.keys() == expected.keys()
        for name, p in found.items():
            np.testing.assert_allclose(p, expected[name], rtol=1e-12)
        assert "sex=Female" in found  # the fixture's truth, so the test is not empty


def test_whoever_pays_less_is_not_listed_as_paying_more(result: AuditResult) -> None:
    where = result.results["group"] == "sex=Male"
    spared = edited(result, where, excess_shift=0.05, excess_p=1e-9)
    assert "sex=Male" not in {p.name for p in find(spared).model.pays_more}


def test_columns_that_pay_differently(result: AuditResult) -> None:
    columns = [c for c in find(result).model.columns if c.kind == "group"]
    found = {c.name: (c.differs, c.reason) for c in columns}
    assert found == {"sex": (True, None), "age": (False, None), "sex*age": (None, "one level")}


def test_blind_rows_are_unpowered_and_undecided(result: AuditResult) -> None:
    finding = find(result)
    lost = {p.name for p in finding.model.loses}
    power = result.power[result.power["variant"] == finding.variant]
    names = power["group"].fillna(power["class"])
    weak = power["min_detectable_shift"].isna() | (power["min_detectable_shift"] > 0.02)
    rows = confirmatory(result, finding.variant)
    excluded = rows[rows["sim_low"] >= -0.02]  # the limits rule out a loss of two points
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
    assert "No evidence that any one class or group pays more" in text


def test_sentences_say_what_the_summary_must(result: AuditResult) -> None:
    said: dict[str, list[str]] = {topic: [] for topic in TOPICS}
    for sentence in sentences(find(result)):
        said[sentence.topic].append(sentence.text)
    assert said["pair"] == ["int8 against dense on 4,000 examples, 10 classes."]
    assert said["accuracy"][0].startswith("Accuracy 92.5 % → 90.1 %: −2.4 points [−")
    assert said["groups"][0] == "Groups of sex pay differently (p = 0.0015)."
    assert said["groups"][1] == "No evidence that groups of age pay differently (p = 0.40)."
    assert "cannot be told (one level)" in said["groups"][2]
    assert any("sex=Female" in line and "n = 1,1" in line for line in said["loses"])
    assert "A loss of 2 points could have gone unseen" in said["cannot tell"][0]
    assert "needed" in said["cannot tell"][0]
    assert "n = 3 < 10" in said["cannot tell"][1]
    assert "one pair is no evidence about a method" in said["scope"][0]
    assert said["scope"][1].startswith("Examples assumed independent")


def test_long_lists_say_how_much_they_leave_out(result: AuditResult) -> None:
    finding = find(result, "pruned-90")
    lines = [s.text for s in sentences(finding, limit=2) if s.topic == "loses"]
    assert len(lines) == 3
    assert lines[-1] == f"… and {len(finding.model.loses) - 2} more."


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
    finding = find(replace(result, results=rows, power=power, tasks=("smiling",)))
    text = "\n".join(s.text for s in sentences(finding))
    assert "sex=Female (smiling): −" in text
    assert "Groups of sex (smiling) pay differently" in text
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
