"""`fairweight study claims` as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import fairweight as fw

from .conftest import Run, wide_frame

STUDY = """
name = "mine"
[[experiment]]
name = "digits"
data = {name = "digits"}
model = {architecture = "lenet"}
training = {epochs = 1}
"""
CLAIMS = """
paper = "Mine"
written = 2026-11-17T12:00:00Z
[[claim]]
id = "kept"
statement = "It is kept."
place = "1"
quantity = "change of accuracy"
folder = "digits"
where = {metric = "accuracy", variant = "%s"}
direction = "not-down"
smallest = 0.9
why = "nearly all"
[[claim]]
id = "members"
statement = "Members differ."
place = "2"
quantity = "accuracy"
folder = "digits"
where = {metric = "accuracy", variant = "%s"}
against = {where = {variant = "%s"}}
direction = "down"
smallest = 0.1
why = "a tenth"
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[str, str]]:
    """A store with an audit that was really written, and the names of its two variants."""
    room = tmp_path_factory.mktemp("claims")
    audit = fw.audit_table(wide_frame(), n_boot=40)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairweight.report.html.render", lambda *_: "<!doctype html>")
        audit.save(room / "fairweight-runs" / "results" / "mine" / "digits" / "audit")
    return room, (audit.result.variants[0], audit.result.baseline)


@pytest.fixture
def mine(finished: tuple[Path, tuple[str, str]], run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Commands beside a study of one's own that was run, and its claims."""
    room, (variant, baseline) = finished
    monkeypatch.chdir(room)
    (room / "mine.toml").write_text(STUDY)
    (room / "mine.claims.toml").write_text(CLAIMS % (variant, variant, baseline))
    return run


def test_every_form_says_the_same(mine: Run) -> None:
    shown = mine("study", "claims", "mine.toml").done().out
    assert "kept" in shown
    counted = "2 claims. These data allow 2 of them, in 2 lines: 1 reproduces, 1 cannot be told."
    assert counted in " ".join(shown.split())
    for ending in ("md", "csv", "json"):
        told = mine("study", "claims", "mine.toml", "--out", f"claims.{ending}").done().out
        assert told == f"Written to claims.{ending}\n"
    table = pd.read_csv("claims.csv")
    document = json.loads(Path("claims.json").read_text())
    assert table["verdict"].tolist() == ["reproduces", "cannot tell"]
    assert [line["verdict"] for line in document["lines"]] == table["verdict"].tolist()
    assert document["lines"][0]["low"] == pytest.approx(table["low"][0])
    assert document["lines"][1]["value"] is None
    assert "1 pairs of members" in table["reason"][1]
    assert document["summary"] in Path("claims.md").read_text()


def test_a_pilot_says_how_wide_intervals_will_be(mine: Run) -> None:
    shown = " ".join(mine("study", "claims", "mine.toml", "--pilot").done().out.split())
    assert "half-width to expect" in shown
    assert "With 5 members on a side 1 of 2 claims have intervals" in shown
    told = mine("study", "claims", "mine.toml", "--pilot", "--out", "claims.md").refused()
    assert "--pilot prints a table; leave --out out." in told


def test_bad_input(mine: Run) -> None:
    told = mine("study", "claims", "mine.toml", "--out", "claims.pdf").refused()
    assert "--out 'claims.pdf' must end in .md, .csv, .json" in told
    assert (
        "no results in 'elsewhere'"
        in mine("study", "claims", "mine.toml", "--results", "elsewhere").refused()
    )
    assert "'mnist-lenet' has no claims" in mine("study", "claims", "mnist-lenet").refused()
    assert "'nobody'" in mine("study", "claims", "nobody").refused()
    Path("mine.claims.toml").write_text('paper = "x"\n')
    assert "mine.claims.toml" in mine("study", "claims", "mine.toml").refused()
    assert not Path("claims.pdf").exists()
