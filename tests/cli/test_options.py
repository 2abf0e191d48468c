"""Options come from the fields of requests: each field, its default, its text, its choices."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import typer.main

import fairweight as fw
from fairweight import cli
from fairweight.base.fields import options_of
from fairweight.cli.app import app
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec

ROOT = typer.main.get_command(app)
AUDIT = ("audit", "gate", "count", "explain", "exemplars", "preflight", "choose")
ABSENT = {  # fields that a command has no option for
    "count": {"variants", "positive", "score_classes"},
    "exemplars": {"count"},
    "preflight": {"variants", "count", "positive"},
}


def command(name: str) -> Any:
    return cast(Any, ROOT).commands[name]


@pytest.mark.parametrize("name", AUDIT)
def test_every_field_of_the_tables_is_an_option(name: str) -> None:
    flags = {flag for parameter in command(name).params for flag in parameter.opts}
    fields = {field for field, (_, about) in options_of(TableSpec).items() if about.flag in flags}
    assert fields == set(options_of(TableSpec)) - ABSENT.get(name, set())


def test_audit_has_every_option_with_its_default_and_text() -> None:
    by_flag = {parameter.opts[0]: parameter for parameter in command("audit").params}
    for request in (TableSpec, AuditOptions):
        for field, about in options_of(request).values():
            parameter = by_flag[about.flag]
            assert parameter.help == about.help
            given = parameter.default
            if about.read is None and not isinstance(field.default, bool):
                assert given == field.default
            else:
                assert not given


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--correction", "all"], "--correction (correction=) cannot be 'all'; use holm, bh or"),
        (["--missing", "ignore"], "--missing (missing=) cannot be 'ignore'; use error or drop"),
        (["--alpha", "2"], "--alpha (alpha=) cannot be 2.0; give a level between 0 and 1"),
        (["--n-boot", "3"], "--n-boot (n_boot=) cannot be 3; give a whole number of at least 20"),
        (["--prediction", "p"], "--prediction 'p' is not of the form NAME=COLUMN"),
        (["--groups", ","], "--groups ',' names nothing"),
    ],
)
def test_a_wrong_value_names_the_option(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["audit", "a.csv", *words]) == cli.BAD_INPUT
    assert said in capsys.readouterr().err


def test_the_shell_completes_choices() -> None:
    program = str(Path(sys.executable).with_name("fairweight"))
    asked = {"_FAIRWEIGHT_COMPLETE": "complete_bash", "COMP_CWORD": "3"}
    asked["COMP_WORDS"] = "fairweight audit --correction "
    told = subprocess.run(
        [program], capture_output=True, text=True, env={**os.environ, **asked}, check=False
    )
    assert told.stdout.split() == ["holm", "bh", "none"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--weight", "sparsity=1"], "What an objective is worth is --worth sparsity=1"),
        (["--weight-column", "w"], "--weight-column is --weight now, as in every command"),
    ],
)
def test_the_old_weights_of_choose_are_refused_with_the_new_ones(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["choose", "a.csv", "--objective", "accuracy", *words]) == cli.BAD_INPUT
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", [*AUDIT, "load", "audit_table"])
def test_every_command_is_a_function_with_a_signature(name: str) -> None:
    found = getattr(fw, name)
    assert inspect.isfunction(found)
    kinds = {parameter.kind for parameter in inspect.signature(found).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    assert inspect.getdoc(found)


def test_modules_are_modules_and_functions_are_functions() -> None:
    assert inspect.ismodule(fw.mitigate)
    assert inspect.ismodule(fw.metrics)
    for name in ("thresholds", "overrides", "cascade"):
        assert inspect.isfunction(getattr(fw.mitigate, name))
    held = {path.stem for path in Path(str(fw.__file__)).parent.iterdir()}
    functions = {name for name in fw.__all__ if inspect.isfunction(getattr(fw, name))}
    assert functions & held == set()
