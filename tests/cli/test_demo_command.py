"""`fairweight demo`, quick and as a population, from end to end."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairweight.studies.digit_tables import DemoTables

from .conftest import PROGRAM, Outcome, Run, document, numbers, process


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """The demo as a newcomer runs it."""
    folder = tmp_path_factory.mktemp("demo")
    return folder, process("demo", "--quick", cwd=folder, COLUMNS="100")


def test_the_demo_makes_a_report(made: tuple[Path, Outcome]) -> None:
    folder, outcome = made
    assert (outcome.code, outcome.err) == (0, "")
    assert (folder / "fairweight-demo/audit/report.html").stat().st_size > 100_000
    audit = document(folder / "fairweight-demo/audit")
    assert audit["baseline"] == "dense"
    assert len(audit["variants"]) >= 2
    assert {"slant", "ink"} <= set(audit["groupings"])
    assert len(audit["classes"]) == 10
    for variant in audit["variants"]:
        assert f"{variant} against dense" in outcome.out
    assert "Report: fairweight-demo/audit/report.html" in outcome.out


def test_the_command_it_prints_gives_the_same_numbers(
    made: tuple[Path, Outcome], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, outcome = made
    monkeypatch.chdir(folder)
    command = outcome.out.split("The same again, from the tables: ")[1].strip()
    program, *words = shlex.split(command)
    assert program == "fairweight"
    before = numbers("fairweight-demo/audit")
    assert words[-2:] == ["--out", "fairweight-demo/audit"]
    run(*words[:-1], "again", "--quiet").done()
    assert numbers("again") == before


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(
    made: tuple[Path, Outcome], run: Run, no_page: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Estimates without resampling, so that few replicates are enough."""
    from fairweight import api

    monkeypatch.setitem(api.audit_table.__kwdefaults__, "n_boot", 40)

    def shifts(out: str | Path) -> list[float]:
        return [r["shift"] for r in numbers(out) if r["metric"] in ("accuracy", "recall")]

    first = shifts(made[0] / "fairweight-demo/audit")
    run("demo", "--quick", "--out", "again").done()
    assert shifts("again/audit") == first
    told = run("demo", "--quick", "--seed", "1", "--out", "an other").done().out
    assert shifts("an other/audit") != first
    command = shlex.split(told.split("The same again, from the tables: ")[1].strip())
    assert command[2] == "an other/predictions.parquet"


# --- populations --------------------------------------------------------------------------------


def test_a_population_is_audited_with_its_parents(
    run: Run, no_page: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command with smaller models: what it trains, writes, audits and prints."""
    from fairweight import api
    from fairweight.studies import population_demo

    real, asked = population_demo.populations, []

    def smaller(recipe: population_demo.Recipe, **options: Any) -> DemoTables:
        asked.append(recipe)
        return real(replace(recipe, hidden=16, epochs=3), members=5, **options)

    monkeypatch.setattr(population_demo, "populations", smaller)
    monkeypatch.setitem(api.audit_table.__kwdefaults__, "n_boot", 40)
    told = run("demo", "--seed", "3", "--out", "made").done().out
    assert asked == [population_demo.Recipe(seed=3)]
    audit = document("made/audit")
    assert (audit["baseline"], audit["variants"]) == ("dense", ["pruned-80", "int8"])
    rows = [r for r in audit["results"] if r["metric"] == "accuracy" and r["by"] == "overall"]
    assert {(r["n_seeds_baseline"], r["n_seeds_compressed"]) for r in rows} == {(5, 5)}
    command = shlex.split(told.split("The same again, from the tables: ")[1].strip())
    assert command[command.index("--variants") + 1] == "made/variants.parquet"
    run(*command[1:-1], "again", "--n-boot", "40", "--quiet").done()
    assert numbers("again") == numbers("made/audit")


@pytest.mark.slow
def test_the_demo_as_a_population(tmp_path: Path) -> None:
    outcome = process("demo", cwd=tmp_path, COLUMNS="100")
    assert (outcome.code, outcome.err) == (0, "")
    audit = document(tmp_path / "fairweight-demo/audit")
    rows = [r for r in audit["results"] if r["metric"] == "accuracy" and r["by"] == "overall"]
    assert {r["n_seeds_compressed"] for r in rows} == {10}
    assert {r["scope"] for r in rows} == {"model", "method"}
    assert all(r["noise_floor"] > 0 for r in rows)
    assert (tmp_path / "fairweight-demo/audit/report.html").stat().st_size > 100_000


@pytest.mark.slow
def test_an_interrupt_ends_all_of_its_processes_with_one_sentence(tmp_path: Path) -> None:
    started = subprocess.Popen(
        [PROGRAM, "demo"], cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    time.sleep(6)  # in the midst of training, which takes longer
    os.killpg(started.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    _, said = started.communicate(timeout=30)
    assert started.returncode == 130
    assert said.splitlines() == ["fairweight: interrupted; nothing was left half-written."]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(started.pid, 0)  # nobody of the group is left


def test_help_tells_the_two_apart(run: Run) -> None:
    told = " ".join(run("demo", "--help").done().out.split())
    assert "10 dense models, each with a pruned and an 8-bit copy" in told


def test_without_scikit_learn_it_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    sentence = run("demo").refused()
    assert "scikit-learn" in sentence
    assert "pip install 'fairweight[demo]'" in sentence
    assert not Path("fairweight-demo").exists()
