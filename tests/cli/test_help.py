"""Help that teaches: an example in every command, a sentence for every option."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import fairweight as fw
from fairweight.cli.app import LISTED, NAMES, parser

from .conftest import Run, process

COMMANDS: dict[str, Any] = {name: parser(name) for name in NAMES}


def test_the_commands_of_the_design() -> None:
    assert set(COMMANDS) == {
        "audit", "gate", "plan", "choose", "count", "exemplars", "explain", "preflight", "mitigate",
        "metrics",
        "train", "compress", "predict", "similarity", "sensitivity", "methods", "datasets", "study",
        "demo", "report", "view",
    }  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example_and_every_option(run: Run, name: str) -> None:
    told = run(name, "--help").done().out
    assert f"fairweight {name}" in told.replace("Usage: fairweight", "")
    for parameter in COMMANDS[name].params:
        for option in parameter.opts:
            if option.startswith("--"):
                assert (option in told) != getattr(parameter, "hidden", False)
    assert run(name, "-h").done().out == told


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name: str) -> None:
    silent = [p.name for p in COMMANDS[name].params if not (p.help or "").strip()]
    assert silent == []
    for parameter in COMMANDS[name].params:
        assert parameter.help[0].isupper()
        assert parameter.help.rstrip().endswith((".", ")"))


def test_the_list_says_what_the_help_of_each_command_begins_with() -> None:
    for _, _, name, summary in LISTED:
        first, _, _ = COMMANDS[name].help.partition("\n\n")
        assert " ".join(first.split()) == summary


def test_the_list_loads_no_command() -> None:
    program = (
        "import sys\n"
        "from fairweight.cli import run\n"
        "assert run(['--help']) == 0\n"
        "held = {name for name in sys.modules if name.startswith('fairweight.cli.')}\n"
        "assert held == {'fairweight.cli.app'}, held\n"
    )
    made = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert made.returncode == 0, made.stderr


def test_the_front_page(run: Run) -> None:
    told = run("--help").done().out
    for name in COMMANDS:
        assert name in told
    for panel in ("Audit", "Lab", "Look"):
        assert f"─ {panel} ─" in told
    assert "fairweight demo --quick" in " ".join(told.split())


def test_no_command_shows_the_front_page(run: Run) -> None:
    outcome = run()
    assert "Usage: fairweight" in outcome.out + outcome.err
    assert "Traceback" not in outcome.err


def test_version(run: Run, folder: Path) -> None:
    assert run("--version").done().out == f"fairweight {fw.__version__}\n"
    assert process("--version", cwd=folder).out == f"fairweight {fw.__version__}\n"


def test_help_does_not_wait(folder: Path) -> None:
    """A generous bound: it catches a heavy import, not a busy machine."""
    fastest = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        assert process("--help", cwd=folder).code == 0
        fastest = min(fastest, time.perf_counter() - start)
    assert fastest < 2
