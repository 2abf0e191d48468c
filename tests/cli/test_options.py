"""Options come from the fields of requests: each field, its default, its text, its choices."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

import fairweight as fw
from fairweight import cli
from fairweight.base.fields import options_of
from fairweight.cli.app import parser
from fairweight.specs.audit import AuditOptions
from fairweight.specs.data import Data
from fairweight.specs.similarity import Similarity
from fairweight.specs.training import Model, Training
from fairweight.tables.spec import TableSpec

AUDIT = ("audit", "gate", "count", "explain", "exemplars", "preflight", "choose")
ABSENT = {  # fields that a command has no option for
    "count": {"variants", "positive", "score_classes"},
    "exemplars": {"count"},
    "preflight": {"variants", "count", "positive"},
}


@pytest.mark.parametrize("name", AUDIT)
def test_every_field_of_the_tables_is_an_option(name: str) -> None:
    flags = {flag for parameter in parser(name).params for flag in parameter.opts}
    fields = {field for field, (_, about) in options_of(TableSpec).items() if about.flag in flags}
    assert fields == set(options_of(TableSpec)) - ABSENT.get(name, set())


def test_audit_has_every_option_with_its_default_and_text() -> None:
    by_flag = {parameter.opts[0]: parameter for parameter in parser("audit").params}
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
        (["--prediction", "p="], "--prediction 'p=' is not of the form NAME=COLUMN"),
        (["--groups", ","], "--groups ',' names nothing"),
    ],
)
def test_a_wrong_value_names_the_option(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["audit", "a.csv", *words]) == cli.BAD_INPUT
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("audit --correction", ["holm", "bh", "none"]),
        ("train --optimizer", ["sgd", "adam"]),
        ("predict --part", ["test", "validation", "train"]),
    ],
)
def test_the_shell_completes_choices(words: str, completed: list[str]) -> None:
    program = str(Path(sys.executable).with_name("fairweight"))
    asked = {"_FAIRWEIGHT_COMPLETE": "complete_bash", "COMP_CWORD": "3"}
    asked["COMP_WORDS"] = f"fairweight {words} "
    told = subprocess.run(
        [program], capture_output=True, text=True, env={**os.environ, **asked}, check=False
    )
    assert told.stdout.split() == completed


@pytest.mark.parametrize(
    ("name", "spec", "flags"),
    [
        ("train", Data, {"--test": "test", "--validation": "validation", "--size": "size",
                         "--split-by": "split_by", "--split-seed": "split_seed",
                         "--backdoor": "backdoor"}),
        ("train", Model, {"--width": "width"}),
        ("train", Training, {"--seed": "seed"}),
        ("similarity", Similarity, {"--measure": "measure", "--variant": "variant",
                                    "--maps": "maps", "--size": "size", "--examples": "examples",
                                    "--threshold": "threshold", "--directions": "directions",
                                    "--ridge": "ridge", "--minibatch": "minibatch",
                                    "--features": "features"}),
    ],
)  # fmt: skip
def test_options_of_the_lab_have_the_defaults_and_choices_of_the_specs(
    name: str, spec: type[Any], flags: dict[str, str]
) -> None:
    by_flag = {parameter.opts[0]: parameter for parameter in parser(name).params}
    held = {field.name: field for field in fields(spec)}
    kinds = get_type_hints(spec)
    for flag, field in flags.items():
        assert by_flag[flag].default == held[field].default
        if get_origin(kinds[field]) is Literal:
            assert by_flag[flag].metavar == "|".join(get_args(kinds[field]))


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
