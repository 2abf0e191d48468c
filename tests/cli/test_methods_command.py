"""`fairweight methods`: what compresses a model, and the models, for people and for programs."""

from __future__ import annotations

import importlib.util
import json
import shlex
from typing import Any

import pytest

from fairweight.cli.app import parser
from fairweight.cli.lists import FROM_SCRATCH
from fairweight.lab.compression.registry import RECIPES, methods
from fairweight.lab.distillation.registry import losses
from fairweight.lab.models import architectures

from .conftest import Run


def everything() -> list[str]:
    return [
        *(entry.name for entry in methods() if entry.acts_on == "weights"),
        *RECIPES,
        *(entry.name for entry in methods() if entry.acts_on == "file"),
        *(entry.name for entry in losses()),
        *(entry.name for entry in architectures()),
    ]


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_list_has_everything(run: Run) -> None:
    told = run("methods").done().out
    firsts = [line.split()[0] for line in told.splitlines() if line and line[0].islower()]
    assert [first for first in firsts if first in everything()] == everything()
    assert "Models for fairweight train --model" in told
    assert f"{len(everything())} in all; one in full: fairweight methods NAME" in told


def test_one_method_in_full(run: Run) -> None:
    told = words(run("methods", "random-structured").done().out)
    assert "sparsity required number from 0 to 1 The share of weights" in told
    assert 'layers ["*", "!@last"]' in told
    assert "--method random-structured --sparsity 0.5 --remove-channels" in told
    for schedule in ("one-shot", "agp", "gmp", "zhu-gupta", "polynomial", "iterative"):
        assert f"schedule {schedule} " in told
    assert "removed: min(sparsity, 1 - (1 - share) ** t)" in told


def test_n_of_m_has_one_schedule(run: Run) -> None:
    (row,) = json.loads(run("methods", "n-of-m", "--json").done().out)
    assert [schedule["name"] for schedule in row["schedules"]] == ["one-shot"]
    assert {field["name"]: field["default"] for field in row["fields"]} == {
        "layers": ["*", "!@first"],
        "schedule": "one-shot",
        "n": 2,
        "m": 4,
        "indivisible": "refuse",
    }


def test_a_recipe_has_the_values_of_its_paper(run: Run) -> None:
    told = words(run("methods", "gmp-pretrained").done().out)
    assert "method global-magnitude, with the schedule 'gmp'" in told
    assert "end 60 whole number of at least 1" in told  # the schedule's own default is 81


def test_int8_and_a_model_in_full(run: Run) -> None:
    assert "examples 100 whole number" in words(run("methods", "int8-static").done().out)
    told = words(run("methods", "vgg11").done().out)
    assert "options head=None, batch_norm=True, dropout=0.5" in told
    assert "arXiv:1409.1556" in told


def test_as_json(run: Run) -> None:
    rows = json.loads(run("methods", "--json").done().out)
    assert [row["name"] for row in rows] == everything()
    for row in rows:
        assert row["summary"]
        assert row["source"]
        for field in (*row.get("fields", ()), *_schedule_fields(row)):
            assert field["type"]
            assert field["meaning"], (row["name"], field["name"])


def _schedule_fields(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [field for schedule in row.get("schedules", ()) for field in schedule["fields"]]


def test_every_example_is_understood(run: Run) -> None:
    """Parsed by the commands themselves; recipes from random weights say how long they train."""
    for row in json.loads(run("methods", "--json").done().out):
        name, *options = shlex.split(row["example"])[1:]
        context = parser(name).make_context(name, options)
        if row["kind"] == "model":
            assert context.params["model"] == row["name"]
        elif row["kind"] == "loss":
            assert context.params["distill"] == row["name"]
        else:
            assert context.params["method"] == row["name"]
        if row["kind"] == "recipe":
            assert context.params["epochs"] > 0
    assert set(FROM_SCRATCH) == set(RECIPES) - {"gmp-pretrained"}


def test_an_unknown_name(run: Run) -> None:
    sentence = run("methods", "globl-magnitude").refused()
    assert "Method or model 'globl-magnitude' does not exist" in sentence
    assert "Did you mean 'global-magnitude'?" in sentence


def test_without_the_lab_the_remedy_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "torch" else find(name)
    )
    assert "pip install 'fairweight[lab]'" in run("methods").refused()
