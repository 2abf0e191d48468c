"""The first screen: its rows are the audit's, and its marks stand where the numbers are."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import fairweight as fw
from fairweight.auditing.result import AuditResult
from fairweight.report.finding import Change
from fairweight.report.html import FIRST, render
from fairweight.report.sections import answers, explain_command, mitigate_commands, ship_commands
from fairweight.report.view_model import (
    BAR,
    EDGE,
    MOST_PAYERS,
    WIDTH,
    Scale,
    View,
    mark,
    scale_of,
    view,
)
from fairweight.report.view_tables import finding_tables
from fairweight.tables.spec import TableSpec, sources_of

from .conftest import edited


@pytest.fixture(scope="module")
def lead(population: AuditResult) -> View:
    return view(population)


def test_every_row_has_the_numbers_of_the_audit(lead: View, population: AuditResult) -> None:
    rows = population.results
    for row in lead.summary:
        own = rows[(rows["variant"] == row.variant.shown) & (rows["scope"] == "model")]
        overall = own[(own["metric"] == "accuracy") & (own["by"] == "overall")].iloc[0]
        assert row.accuracy.shown.startswith(f"{100 * overall['baseline']:.1f} → ")
        first = population.lead
        first = first[(first["variant"] == row.variant.shown) & (first["scope"] == "model")]
        shifts = first[(first["quantity"] == "shift") & (first["by"] != "overall")]
        assert row.loses.shown == f"{(shifts['high'] < 0).sum()}"
        assert row.of.shown == f"{len(shifts)}"
        more = first[(first["quantity"] == "excess") & (first["p_lead"] <= 0.05)]
        assert row.pays_more.shown == str((more["estimate"] < 0).sum())
        judged = own[(own["metric"] == "accuracy") & (own["by"] == "group")]
        judged = pd.concat([judged, own[(own["metric"] == "recall") & (own["by"] == "class")]])
        judged = judged[judged["status"] == "ok"]
        assert row.ruled_out.shown == f"{judged['loss_ruled_out'].sum()}"
        assert row.of.shown == f"{len(judged)}"  # one denominator for the whole row


def test_the_ranking_leads_with_the_clearest_loss(lead: View) -> None:
    assert [row.variant.shown for row in lead.summary] == ["pruned-90", "int8"]
    assert [row.place for row in lead.summary] == [2, 1]
    assert [section.variant for section in lead.ranking] == ["pruned-90", "int8"]
    assert [section.variant for section in lead.sections] == ["int8", "pruned-90"]


def test_groups_and_classes_that_pay(lead: View) -> None:
    assert [group.title for group in lead.payers] == ["Groups", "Classes"]
    assert all(len(group.rows) <= MOST_PAYERS for group in lead.payers)
    groups, classes = lead.payers
    assert groups.rows[0].who.startswith("sex=Female")
    assert classes.rows[0].who == "class 3"
    assert classes.rows[0].floor == "1.5"  # the floor of every row of this audit
    assert classes.rows[0].method.startswith("yes: [")
    assert (groups.note, classes.note) == (None, None)
    assert all(row.excess.startswith("yes, by ") for group in lead.payers for row in group.rows)


def test_limits_of_the_method_that_show_nothing_are_not_printed(population: AuditResult) -> None:
    method = population.results["scope"] == "method"
    for reach, said in ((0.1, "not shown: ["), (0.9, "cannot tell: members differ too much")):
        wide = edited(population, method, sim_low=-reach, sim_high=reach)
        assert view(wide).payers[0].rows[0].method.startswith(said)


def test_the_summary_names_who_loses_most_only_with_an_excess(result: AuditResult) -> None:
    first = view(result).summary[0]
    assert (first.most.shown, first.size.partition(" ")[0]) == ("class 3", "−11.2")
    assert first.mark is not None
    rows = result.results["shift"].notna()
    uniform = edited(result, rows, excess_shift=0.0, excess_sim_low=-0.02, excess_sim_high=0.02)
    lead = view(uniform)
    assert {row.most.shown for row in lead.summary} == {"none shown"}
    assert {row.pays_more.shown for row in lead.summary} == {"0"}
    # The mark is that of all examples together.
    assert all(row.mark is not None and row.mark.dot == row.mark.beside for row in lead.summary)
    groups, classes = lead.payers
    assert groups.note == "No group is shown to lose more than the rest. Shown to lose:"
    assert classes.note == "No class is shown to lose more than the rest. Shown to lose:"
    assert all(row.excess == "not shown (p = 1)" for row in (*groups.rows, *classes.rows))


def test_where_nobody_loses_the_largest_fall_is_hollow(result: AuditResult) -> None:
    rows = result.results["shift"].notna()
    calm = edited(
        result, rows, sim_high=0.01, excess_shift=0.0, excess_sim_low=-0.02, excess_sim_high=0.02
    )
    groups, classes = view(calm).payers
    for group, word in ((groups, "group"), (classes, "class")):
        assert len(group.rows) == 1
        assert group.note == f"No {word} is shown to lose. The largest fall:"
        assert group.rows[0].mark is not None
        assert not group.rows[0].mark.excludes_zero


def test_marks_stand_where_the_numbers_are() -> None:
    scale = Scale(-0.2, 0.0)
    change = Change(
        "group", "sex=f", None, "accuracy", 90, 0.9, 0.8, -0.1, -0.15, -0.05, 0.01, 0.1, 0.02, 0.2
    )
    made = mark(scale, change, beside=-0.2)
    assert made is not None
    inner = WIDTH - 2 * EDGE
    assert made.dot == EDGE + inner / 2
    assert made.low == EDGE + inner / 4
    assert made.high == EDGE + 3 * inner / 4
    assert made.zero == WIDTH - EDGE
    assert made.beside == EDGE
    assert made.floor == (round(EDGE + 0.9 * inner, 1), round(0.1 * inner, 1))  # cut at the end
    assert made.excludes_zero
    assert mark(scale, replace(change, shift=math.nan)) is None
    open_end = mark(scale, replace(change, low=math.nan, high=math.nan))
    assert open_end is not None
    assert open_end.low is None
    assert not open_end.excludes_zero


def test_a_scale_of_nothing_still_has_room() -> None:
    assert scale_of([]).ticks == [
        (6.0, "−1.0"), (53.0, "−0.5"), (100.0, "0"), (147.0, "+0.5"), (194.0, "+1.0"),
    ]  # fmt: skip


def test_what_cannot_be_told_has_the_examples_that_it_takes(result: AuditResult) -> None:
    made = view(result)
    unseen = made.unseen
    assert unseen is not None
    assert unseen.reference == "2 points"
    first = unseen.rows[0]
    power = result.power[result.power["group"] == first.who.removeprefix("class ")]
    power = power if len(power) else result.power[result.power["class"] == first.who[6:]]
    worst = (power["n"].astype(float) / power["n_needed"]).min()
    assert first.bar == round(BAR * worst, 1)
    named = {(b.kind, b.name) for f in made.findings for b in f.blind}
    assert len(unseen.rows) + unseen.left == len(named)


def test_many_variants_keep_the_first_screen_short(result: AuditResult) -> None:
    text = render(replace(result, variants=("int8", "pruned-90") * 6))
    head = text[: text.index('<details class="rest"')]
    assert head.count('<th scope="row"><a href="#variant-') == FIRST
    assert "4 more variants" in text
    assert "those of 4 more would make this page too large" in text


def asking(result: AuditResult, tables: TableSpec | None, **more: Any) -> AuditResult:
    """The result of an audit that was asked for in these words."""
    request = {} if tables is None else {"tables": tables.to_json(), "out": "my"}
    return replace(result, provenance=replace(result.provenance, request=request), **more)


def test_commands_keep_what_says_how_tables_are_read(result: AuditResult) -> None:
    given = asking(result, TableSpec(sources_of(["a b.csv", "int8.csv"]), groups=["sex", "age"]))
    assert explain_command(given) == "fairweight explain 'a b.csv' int8.csv --groups sex,age"
    assert mitigate_commands(given)[0] == (
        "fairweight mitigate thresholds 'a b.csv' int8.csv --groups sex,age --validation VALIDATION"
    )
    assert ship_commands(given)[1] == "fairweight gate my --policy policy.toml"
    bare = asking(result, None, groupings=("sex", "age, years*sex", '"a*b"'))
    assert shlex.split(explain_command(bare)) == [
        "fairweight", "explain", "PREDICTIONS", "--groups", 'sex,"age, years"*sex,"a*b"',
    ]  # fmt: skip
    nothing = replace(bare, groupings=())
    assert explain_command(nothing) == "fairweight explain PREDICTIONS"


def test_weights_are_kept_in_every_command(result: AuditResult) -> None:
    tables = TableSpec(sources_of(["a.csv", "b.csv"]), weight="w", cluster="a person")
    given = asking(result, tables, variants=("x", "y"), groupings=())
    words = "a.csv b.csv --cluster 'a person' --weight w"
    assert explain_command(given) == f"fairweight explain {words}"
    assert mitigate_commands(given)[1] == (
        f"fairweight mitigate cascade {words} --validation VALIDATION"
    )
    assert ship_commands(given)[-1] == f"fairweight choose {words} --objective accuracy"


def test_members_that_are_repeated_stay_so_and_counts_have_no_single_examples(
    result: AuditResult,
) -> None:
    given = asking(result, TableSpec(sources_of("t.csv"), count="n"), variants=("x", "y"))
    origin = given.provenance
    options = {**origin.options, "members": "repeated"}
    given = replace(given, provenance=replace(origin, options=options))
    assert explain_command(given) == "fairweight explain t.csv --count n --members repeated"
    assert mitigate_commands(given)[0].startswith("fairweight mitigate thresholds PREDICTIONS --v")
    assert "--members" not in ship_commands(given)[-1]


def test_audits_of_python_and_of_explain_say_what_comes_next(tmp_path: Path) -> None:
    """Both had no commands while these were read off the text of a command."""
    n = 40
    frame = pd.DataFrame({
        "key": range(n), "label": [0, 1] * (n // 2), "p0": [0, 1] * (n // 2), "p1": [0] * n,
        "sex": ["F", "M"] * (n // 2), "w": [1.0, 2.0] * (n // 2),
    })  # fmt: skip
    path = str(tmp_path / "t.parquet")
    frame.to_parquet(path)
    columns = {"predictions": {"dense": "p0", "int8": "p1"}, "id": "key", "weight": "w"}
    words = f"{path} --id key --prediction dense=p0 --prediction int8=p1 --groups sex --weight w"
    python = fw.audit_table(path, groups=["sex"], n_boot=20, **columns)
    tables = TableSpec(sources_of(path), groups=["sex"], **columns)
    explained = fw.explain(tables, fw.AuditOptions(n_boot=20), parts=["exemplars"])
    for audit in (python, explained, fw.load(explained.save(tmp_path / "kept"))):
        assert explain_command(audit.result) == f"fairweight explain {words}"
    memory = fw.audit_table(frame, groups=["sex"], n_boot=20, **columns).result
    assert explain_command(memory) == f"fairweight explain {words.replace(path, 'PREDICTIONS')}"
    arrays = fw.audit(frame.label, {"dense": frame.p0, "int8": frame.p1}, n_boot=20,
                      sensitive_features=frame[["sex"]]).result  # fmt: skip
    assert explain_command(arrays) == (
        "fairweight explain PREDICTIONS --baseline dense --groups sex"
    )


def test_examples_are_counted_where_they_were_looked_for(
    explained: AuditResult, result: AuditResult
) -> None:
    told = view(explained).examples
    assert told[0].startswith("pruned-90: ")
    assert "the typical compressed model disagrees with the typical dense one" in told[0]
    assert view(result).examples == ()


def test_a_choice_leads_with_who_may_be_the_best(explained: AuditResult) -> None:
    *_, ship = answers(explained, view(explained), None)
    first = explained.variants[0]
    assert ship.lines == (
        f"The best is among, with 95 %: {first} (95 % within the margin of the best).",
        f"Chosen: {first}.",
    )


def test_many_columns_are_one_table_and_classes_have_their_names() -> None:
    """Six columns: two lines, and a row each with the clearest difference first."""
    n = 1200
    i = pd.Series(range(n))
    label = (i % 3).astype(str)
    lost = (i % 4 == 0) & (i % 8 == 0)
    wrong = ((i + 1) % 3).astype(str)
    groups = {f"g{k}": (i // 2**k % 2).astype(str) for k in range(6)}
    audit = fw.audit(
        label,
        {"dense": label, "int8": label.where(~lost, wrong)},
        sensitive_features=pd.DataFrame(groups),
        n_boot=20,
    ).named({"0": "cat", "1": "dog", "2": "owl"})
    lead = view(audit.result)
    said = [line for side in lead.sections[0].sides for s in side.said for line in s.lines]
    said += [line for s in lead.sections[0].said for line in s.lines]
    differs = next(line for line in said if " columns the change differs (" in line)
    assert differs == "By 3 of 7 columns the change differs (least p < 0.001): g0, g1 and g2."
    assert any(line.startswith("By 4 of 7 columns no difference is shown (") for line in said)
    table = finding_tables(lead.findings[0])["columns"]
    assert table.headings[:2] == ("by", "p")
    assert len(table.rows) == 7
    assert [row[1].strong for row in table.rows] == [True] * 3 + [False] * 4
    assert table.rows[0][2].shown == "g0=0 did worse by 25.0 points"
    # Every eighth example is lost, so all classes lose alike and each is named.
    losing = finding_tables(lead.findings[0])["loses"]
    assert "class cat" in {row[0].shown for row in losing.rows}
