"""`fairweight metrics`: the registry for people and for programs."""

from __future__ import annotations

import json

from fairweight.auditing.metrics import metrics

from .conftest import Run


def test_the_list_has_every_metric(run: Run) -> None:
    told = run("metrics").done().out
    words = set(told.split())
    assert {entry.name for entry in metrics()} <= words
    assert f"{len(metrics())} metrics; one in full: fairweight metrics NAME" in told


def test_one_metric_in_full(run: Run) -> None:
    told = " ".join(run("metrics", "recall").done().out.split())
    assert "formula TP / (TP + FN)" in told
    for heading in ("summary", "better", "range", "source", "undefined"):
        assert heading in told


def test_as_json(run: Run) -> None:
    rows = json.loads(run("metrics", "--json").done().out)
    assert [row["name"] for row in rows] == [entry.name for entry in metrics()]
    for row in rows:
        assert row["summary"]
        assert row["undefined"]
        assert len(row["range"]) == 2
    (one,) = json.loads(run("metrics", "cev", "--json").done().out)
    assert one["name"] == "cev"
    assert one["range"] == [0, None]  # no upper end


def test_an_unknown_metric(run: Run) -> None:
    sentence = run("metrics", "recal").refused()
    assert "'recal' does not exist" in sentence
    assert "Did you mean 'recall'?" in sentence
    assert "Did you mean" not in run("metrics", "zzzzzz").refused()
