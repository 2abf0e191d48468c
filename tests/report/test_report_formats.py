"""An audit as Markdown, as a model card and as tests: short, escaped, and with the same numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest

import fairweight as fw
from fairweight.auditing.result import AuditResult
from fairweight.errors import InputError
from fairweight.report.card import to_card, to_eval_results
from fairweight.report.finding import find, findings
from fairweight.report.html import render
from fairweight.report.junit import to_junit
from fairweight.report.markdown import LINES, to_markdown
from fairweight.report.sentences import headline

UNESCAPED = re.compile(r"(?<!\\)<(?!/?sub>)|(?<!\\)@")


# --- Markdown -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["result", "population", "hostile_population", "bare"])
def test_a_summary_is_short_and_its_tables_are_whole(
    kind: str, request: pytest.FixtureRequest
) -> None:
    text = to_markdown(request.getfixturevalue(kind))
    lines = text.splitlines()
    assert len(lines) <= LINES
    assert lines[-1].startswith("<sub>")
    for head, rule in pairwise(lines):
        if rule.startswith("|---"):
            width = rule.count("|")
            assert len(re.findall(r"(?<!\\)\|", head)) == width
    bars = [len(re.findall(r"(?<!\\)\|", line)) for line in lines if line.startswith("|")]
    assert len(set(bars)) <= 2  # as wide as one of the two headings


def test_hostile_names_stay_text_in_markdown(hostile_population: AuditResult) -> None:
    text = to_markdown(hostile_population)
    assert not UNESCAPED.search(text)
    assert "\x1b" not in text
    assert "\\<script\\>" in text


def test_many_variants_are_counted(result: AuditResult) -> None:
    text = to_markdown(replace(result, variants=("int8", "pruned-90") * 15))
    assert "… and 20 more variants." in text
    assert len(text.splitlines()) <= LINES


def test_a_verdict_leads_in_markdown_and_on_the_page() -> None:
    label = ["a", "b"] * 60
    made = fw.audit(
        label,
        {"dense": label, "int8": ["b"] * 20 + label[20:]},
        sensitive_features={"site": ["x"] * 60 + ["y"] * 60},
        n_boot=20,
    )
    verdict = made.gate({"rule": [{"metric": "accuracy", "by": "group", "margin": 0.02}]})
    text = made.to_markdown(verdict=verdict)
    assert text.startswith(f"## Gate: {verdict.outcome.upper()} ")
    assert text.index("## Gate") < text.index("loses most")
    page = render(made.result, verdict)
    ship = page[page.index('<section id="ship"') : page.index('<section id="variants"')]
    assert f"Gate: {verdict.outcome.upper()} (1 variant tried)." in ship
    assert "No policy was given" not in ship
    assert "No policy was given" in render(made.result)


# --- model cards ----------------------------------------------------------------------------------


def test_a_card_needs_to_know_of_which_variant(result: AuditResult) -> None:
    with pytest.raises(InputError, match=r"2 \('int8', 'pruned-90'\); say which"):
        to_card(result)
    assert to_card(replace(result, variants=("int8",))).startswith("---\n")
    with pytest.raises(InputError, match="the hub accepts: quantized, finetune"):
        to_card(result, "int8", relation="pruned")
    with pytest.raises(InputError, match="base_model must be"):
        to_card(result, "int8", base_model="a\nb: c")


def test_the_hub_reads_the_card(population: AuditResult) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    card = hub.ModelCard(to_card(population, "int8", base_model="me/dense", relation="quantized"))
    assert card.data.base_model == "me/dense"
    assert card.data.base_model_relation == "quantized"
    assert "license" not in card.data.to_dict()
    rows = population.results
    rows = rows[(rows["variant"] == "int8") & (rows["scope"] == "model")]
    told = {
        (r.metric_type, r.metric_args.get("group"), r.metric_args.get("class")): r
        for r in card.data.eval_results
    }
    for metric, by in (("accuracy", "group"), ("recall", "class")):
        own = rows[(rows["metric"] == metric) & (rows["by"] == by) & (rows["status"] == "ok")]
        assert len(own) > 3
        for row in own.to_dict("records"):
            group = row["group"] if by == "group" else None
            found = told[metric, group, row["class"] if by == "class" else None]
            assert found.metric_value == pytest.approx(row["compressed"], abs=1e-6)
            assert found.metric_args["sim_high"] == pytest.approx(row["sim_high"], abs=1e-6)
            assert found.metric_args["noise_floor"] == 0.015


def test_the_hub_reads_the_entry_of_a_benchmark(population: AuditResult) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    import yaml

    text = to_eval_results(population, "me/faces", "test", "int8", source_url="https://a.b/c")
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(text))
    assert (entry.dataset_id, entry.task_id) == ("me/faces", "test")
    rows = population.results
    rows = rows[(rows["variant"] == "int8") & (rows["scope"] == "model")]
    (row,) = rows[(rows["metric"] == "accuracy") & (rows["by"] == "overall")].to_dict("records")
    assert entry.value == pytest.approx(100 * row["compressed"], abs=1e-4)
    assert f"change {100 * row['shift']:+.2f} points" in entry.notes
    assert "lowest change of a group: " in entry.notes
    assert entry.source_url == "https://a.b/c"
    with pytest.raises(InputError, match="dataset_id"):
        to_eval_results(population, "faces", variant="int8")


def test_an_entry_for_a_benchmark_of_outcomes() -> None:
    """A share of right answers has an entry; a loss, or predictions without labels, have none."""
    right = {"dense": [1, 1, 1, 0] * 30, "int8": [1, 1, 0, 0] * 30}
    made = fw.audit(outcomes=right, better="higher", n_boot=20)
    assert "value: 50.0" in to_eval_results(made.result, "me/set")
    losses = {name: [v + i / 7 for i, v in enumerate(held)] for name, held in right.items()}
    made = fw.audit(outcomes=losses, better="lower", n_boot=20)
    with pytest.raises(InputError, match="holds the share of right predictions"):
        to_eval_results(made.result, "me/set")


def test_hostile_names_break_neither_metadata_nor_text(hostile_population: AuditResult) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
    name = hostile_population.variants[0]
    text = to_card(hostile_population, name, base_model="me/dense")
    card = hub.ModelCard(text)
    assert card.data.model_name == name
    groups = {r.metric_args.get("group") for r in card.data.eval_results}
    assert any("<script>alert('x')</script>" in str(group) for group in groups)
    assert not UNESCAPED.search(card.text)
    assert "\x1b" not in text


def test_the_card_says_the_finding_and_invents_nothing(result: AuditResult) -> None:
    text = to_card(result, "int8")
    said = headline([find(result, "int8")])
    assert said.replace("[", "\\[").replace("]", "\\]") in text
    assert "## Bias, Risks, and Limitations" in text
    assert "not about the method that made them" in text
    for word in ("license", "base_model:", "base_model_relation"):
        assert word not in text


# --- JUnit ----------------------------------------------------------------------------------------


def test_losses_fail_and_what_cannot_be_told_is_skipped(result: AuditResult) -> None:
    root = ElementTree.fromstring(to_junit(result))
    for suite, finding in zip(root, findings(result), strict=True):
        assert suite.get("name") == finding.variant
        failed = {c.get("name") for c in suite if c.find("failure") is not None}
        named = {p.name for p in finding.model.loses}
        assert {str(name).rpartition(" of ")[2].removeprefix("class ") for name in failed} == named
        assert suite.get("failures") == str(len(named))
        skipped = [c for c in suite if c.find("skipped") is not None]
        unseen = {b.name for b in finding.blind} | {s.name for s in finding.small}
        assert {
            str(c.get("name")).rpartition(" of ")[2].removeprefix("class ") for c in skipped
        } == unseen
        assert suite.get("tests") == str(len(list(suite)))


def test_hostile_names_are_text_in_xml(hostile: AuditResult) -> None:
    text = to_junit(hostile)
    root = ElementTree.fromstring(text)
    names = " ".join(str(case.get("name")) for case in root.iter("testcase"))
    assert "<script>alert('x')</script>" in names
    assert "<script>" not in text


def test_the_number_of_tests_is_that_of_classes_and_groups(
    make_result: Callable[..., AuditResult],
) -> None:
    small = make_result(n=600, n_classes=4)
    root = ElementTree.fromstring(to_junit(small))
    finding = findings(small)[0]
    assert len(list(root[0])) == len(finding.model.shifts) + len(finding.small)
