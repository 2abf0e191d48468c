"""`fairweight demo`, quick and as a population, from end to end."""

from __future__ import annotations

import errno
import importlib.util
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight import api
from fairweight.studies.demo import DemoTables, load
from fairweight.studies.population_demo import FamilyRecipe

from .conftest import PROGRAM, Outcome, Run, document, numbers, process


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Outcome]:
    """The demo as a newcomer runs it, on a machine without the lab."""
    folder, no_lab = tmp_path_factory.mktemp("demo"), tmp_path_factory.mktemp("no_lab")
    for module in ("torch", "onnx", "onnxruntime"):
        (no_lab / f"{module}.py").write_text("raise ImportError('not installed')")
    return folder, process("demo", "--quick", cwd=folder, COLUMNS="100", PYTHONPATH=str(no_lab))


def test_the_demo_makes_a_report(made: tuple[Path, Outcome]) -> None:
    folder, outcome = made
    assert outcome.code == 0, outcome.err
    # On a busy machine it says how far it is, and nothing else.
    assert all(line.startswith("… ") for line in outcome.err.splitlines()), outcome.err
    assert (folder / "fairweight-demo/audit/report.html").stat().st_size > 100_000
    audit = document(folder / "fairweight-demo/audit")
    assert audit["baseline"] == "dense"
    assert len(audit["variants"]) >= 2
    assert {"slant", "ink"} <= set(audit["groupings"])
    assert len(audit["classes"]) == 10
    assert "pruned-80, pruned-90 and int8 against dense: 899 examples" in outcome.out
    for variant in audit["variants"]:
        assert f"\n{variant.ljust(9)}  " in outcome.out  # its line
    assert "Report: fairweight-demo/audit/report.html" in outcome.out


def test_the_command_it_prints_gives_the_same_numbers(
    made: tuple[Path, Outcome], run: Run, no_page: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, outcome = made
    monkeypatch.chdir(folder)
    command = outcome.out.split("The same again, from the tables: ")[1].splitlines()[0]
    program, *words = shlex.split(command)
    assert program == "fairweight"
    before = numbers("fairweight-demo/audit")
    assert words[-2:] == ["--out", "fairweight-demo/audit"]
    run(*words[:-1], "again", "--quiet").done()
    assert numbers("again") == before


def test_another_seed_gives_other_numbers(
    made: tuple[Path, Outcome], run: Run, no_page: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Estimates without resampling, so that few replicates are enough."""
    monkeypatch.setitem(api.audit_table.__kwdefaults__, "n_boot", 40)

    def shifts(out: str | Path) -> list[float]:
        return [r["shift"] for r in numbers(out) if r["metric"] in ("accuracy", "recall")]

    told = run("demo", "--quick", "--seed", "1", "--out", "an other").done().out
    assert shifts("an other/audit") != shifts(made[0] / "fairweight-demo/audit")
    command = shlex.split(told.split("The same again, from the tables: ")[1].splitlines()[0])
    assert command[2] == "an other/predictions.parquet"


# --- populations --------------------------------------------------------------------------------


def invented(recipe: FamilyRecipe, models: Path, **_: Any) -> DemoTables:
    """Three members of two variants by chance, as quick as can be; and a model of each."""
    rng, halves = np.random.default_rng(recipe.seed), load(recipe.seed)
    frames = []
    for variant, share in (("dense", 0.05), ("int8", 0.2)):
        for seed in range(3):
            labels = halves.test.labels
            wrong = rng.random(len(labels)) < share
            frames.append(
                pd.DataFrame(
                    {
                        "example_id": halves.test.example_id,
                        "variant": variant,
                        "seed": seed,
                        "label": labels,
                        "prediction": np.where(wrong, (labels + 1) % 10, labels),
                    }
                )
            )
            (models / variant).mkdir(parents=True, exist_ok=True)
            (models / variant / f"{seed}.onnx").write_bytes(b"")
    rows = [("dense", i, None) for i in range(3)] + [("int8", i, f"dense:{i}") for i in range(3)]
    variants = pd.DataFrame(rows, columns=["variant", "seed", "parent"])
    return halves.tables(pd.concat(frames), variants)


def test_a_population_is_audited_with_its_parents(
    run: Run, no_page: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the command writes, audits and prints; models are made in tests/studies."""
    monkeypatch.setattr("fairweight.studies.population_demo.populations", invented)
    with monkeypatch.context() as few:
        few.setitem(api.audit_table.__kwdefaults__, "n_boot", 40)
        told = run("demo", "--seed", "3", "--out", "made").done().out
    assert Path("made/models/int8/2.onnx").is_file()
    audit = document("made/audit")
    assert (audit["baseline"], audit["variants"]) == ("dense", ["int8"])
    rows = [r for r in audit["results"] if r["metric"] == "accuracy" and r["by"] == "overall"]
    assert {(r["scope"], r["n_seeds_baseline"], r["n_seeds_compressed"]) for r in rows} == {
        ("model", 3, 3), ("method", 3, 3)
    }  # fmt: skip
    command = shlex.split(told.split("The same again, from the tables: ")[1].splitlines()[0])
    assert command[command.index("--variants") + 1] == "made/variants.parquet"
    run(*command[1:-1], "again", "--n-boot", "40", "--quiet").done()
    assert numbers("again") == numbers("made/audit")


def test_a_failure_leaves_an_earlier_demo_as_it_was(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(recipe: FamilyRecipe, models: Path, **options: Any) -> DemoTables:
        invented(recipe, models)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fairweight.studies.population_demo.populations", full_disk)
    Path("fairweight-demo").mkdir()
    Path("fairweight-demo/predictions.parquet").write_text("earlier")
    assert "--overwrite" in run("demo").refused()
    assert "no space left on that disk" in run("demo", "--overwrite").refused()
    assert [file.name for file in Path("fairweight-demo").iterdir()] == ["predictions.parquet"]
    assert "no space left on that disk" in run("demo", "--out", "new").refused()
    assert not Path("new").exists()


@pytest.mark.slow
def test_the_demo_as_a_population(tmp_path: Path) -> None:
    outcome = process("demo", cwd=tmp_path, COLUMNS="100")
    assert (outcome.code, outcome.err) == (0, "")
    audit = document(tmp_path / "fairweight-demo/audit")
    rows = [r for r in audit["results"] if r["metric"] == "accuracy" and r["by"] == "overall"]
    assert {r["n_seeds_compressed"] for r in rows} == {8}
    assert {r["scope"] for r in rows} == {"model", "method"}
    assert all(r["noise_floor"] > 0 for r in rows)
    assert (tmp_path / "fairweight-demo/audit/report.html").stat().st_size > 100_000
    assert len(list((tmp_path / "fairweight-demo/models/int8").glob("*.onnx"))) == 8


def alive(group: int) -> bool:
    """Whether anybody of a group of processes is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


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
    waited_until = time.monotonic() + 5  # the system may take a moment to forget the last one
    while alive(started.pid) and time.monotonic() < waited_until:
        time.sleep(0.1)
    assert not alive(started.pid)


def test_help_tells_the_two_apart(run: Run) -> None:
    told = " ".join(run("demo", "--help").done().out.split())
    assert (
        f"{FamilyRecipe().members} dense CNNs, each with two pruned copies and an int8 one" in told
    )
    assert "in seconds and without torch" in told


@pytest.mark.parametrize(
    ("missing", "words", "told"),
    [
        ("torch", [], ["needs torch", "pip install 'fairweight[lab]'", "demo --quick"]),
        ("onnxruntime", [], ["needs onnxruntime", "pip install 'fairweight[lab]'"]),
    ],
)
def test_it_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch, missing: str, words: list[str], told: list[str]
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == missing else there(name)
    )
    sentence = run("demo", *words).refused()
    assert all(part in sentence for part in told)
    assert not Path("fairweight-demo").exists()
