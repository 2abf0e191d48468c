"""`fairweight demo --quick` from end to end."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from .conftest import Outcome, Run, document, numbers, process


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


def test_without_scikit_learn_it_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    sentence = run("demo").refused()
    assert "scikit-learn" in sentence
    assert "pip install 'fairweight[demo]'" in sentence
    assert not Path("fairweight-demo").exists()
