"""`fairweight report`: one audit in every form, refused in a sentence where it cannot be."""

from __future__ import annotations

import csv
import json
import shlex
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import fairweight as fw
from fairweight.auditing.archive import from_json
from fairweight.report.sections import (
    explain_command,
    figure_command,
    mitigate_commands,
    ship_commands,
)
from fairweight.tables.spec import TableSpec

from .conftest import Run, wide_frame
from .test_help import COMMANDS

POLICY = '[[rule]]\nmetric = "accuracy"\nby = "overall"\nmargin = 0.5\n'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An audit of one variant as a folder with audit.json alone."""
    folder = tmp_path_factory.mktemp("made")
    audit = fw.audit_table(wide_frame(), n_boot=40)
    (folder / "audit.json").write_text(audit.to_json(), encoding="utf-8")
    return folder


def test_markdown_is_printed_or_written(run: Run, made: Path) -> None:
    told = run("report", made, "--format", "md").done().out
    assert told.startswith("## int8 against dense: ")
    assert run("report", "write", made / "audit.json", "--format", "md").done().out == told
    assert run("report", made, "--format", "md", "--out", "deep/summary.md").done().out == ""
    assert Path("deep/summary.md").read_text(encoding="utf-8") == told


def test_json_is_the_audit_itself(run: Run, made: Path) -> None:
    told = json.loads(run("report", made, "--format", "json").done().out)
    assert told == json.loads((made / "audit.json").read_text(encoding="utf-8"))


def test_the_page_needs_a_place(run: Run, made: Path) -> None:
    assert "--out report.html" in run("report", made).refused()
    run("report", made, "--out", "report.html").done()
    assert "<!DOCTYPE html>" in Path("report.html").read_text(encoding="utf-8")


def test_tests_for_a_server_with_and_without_a_policy(run: Run, made: Path) -> None:
    plain = ElementTree.fromstring(run("report", made, "--format", "junit").done().out)
    assert plain.get("name") == "fairweight audit"
    Path("policy.toml").write_text(POLICY, encoding="utf-8")
    words = ("report", made, "--format", "junit", "--policy", "policy.toml")
    judged = ElementTree.fromstring(run(*words).done().out)
    assert judged.get("name") == "fairweight gate"


def test_a_card(run: Run, made: Path) -> None:
    told = run("report", made, "--format", "card", "--base-model", "me/dense").done().out
    assert told.startswith('---\nbase_model: "me/dense"\n')


def test_figures_are_listed_and_written(run: Run, made: Path) -> None:
    told = run("report", "figures", made).done().out
    assert "FW-1" in told
    assert "yes" in told
    run("report", "figure", "fw-1", made, "--out", "one.csv").done()
    with Path("one.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    audit = json.loads((made / "audit.json").read_text(encoding="utf-8"))
    known = {row["group"] or row["class"] for row in audit["results"]}
    assert {row["name"].removeprefix("class ") for row in rows if row["name"]} <= known
    run("report", "figure", "FW-1", made, "--out", "one.svg").done()
    assert Path("one.svg").read_bytes().startswith(b"<svg")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "pdf"), "--format cannot be 'pdf'"),
        (("--format", "md", "--variant", "int8"), "--variant is about model cards"),
        (("--format", "json", "--policy", "p.toml"), "--policy cannot go with --format json"),
        (("--format", "card", "--variant", "int9"), "int9"),
        (("--format", "card", "--relation", "pruned"), "the hub accepts"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, made: Path, words: tuple[str, ...], said: str) -> None:
    assert said in run("report", made, *words).refused()


def test_what_is_no_audit_is_refused(run: Run, folder: Path, made: Path) -> None:
    assert "holds no audit.json" in run("report", folder, "--format", "md").refused()
    assert "does not exist" in run("report", "nowhere.json", "--format", "md").refused()
    Path("other.json").write_text("{}", encoding="utf-8")
    assert "schema" in run("report", "other.json", "--format", "md").refused()
    words = ("report", "figure", "FW-99", made, "--out", "x.svg")
    assert "FW-99" in run(*words).refused()
    assert "must end in" in run("report", "figure", "FW-1", made, "--out", "x.gif").refused()
    assert not Path("x.svg").exists()


def test_the_commands_that_a_page_suggests_parse(made: Path) -> None:
    result = from_json((made / "audit.json").read_text(encoding="utf-8"))
    words = "--baseline dense --groups sex --cluster person --positive 1 --score-classes a,b"
    tables = TableSpec.from_words(["preds.csv", *words.split()])
    request = {"tables": tables.to_json(), "out": "my"}
    origin = replace(result.provenance, request=request)
    given = replace(result, provenance=origin, variants=("int8", "pruned"))
    suggested = (explain_command(given), *mitigate_commands(given), *ship_commands(given))
    suggested += (figure_command(given),)
    for command in suggested:
        name, *rest = shlex.split(command.partition(" > ")[0])[1:]
        parser = COMMANDS[name]
        if hasattr(parser, "commands"):
            parser, rest = parser.commands[rest[0]], rest[1:]
        parser.make_context(name, rest)
        assert f" {words} " in f"{command} " or name in ("gate", "report")
