"""`fairweight study` as a user types it: run, look, stop, go on, clean up."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from fairweight import cli
from fairweight.cli.app import parser

from .conftest import Run

pytest.importorskip("torch")

COMMANDS = parser("study").commands

STUDY = """
name = "tiny"
[[experiment]]
name = "digits"
members = 2
data = {name = "digits"}
model = {architecture = "lenet", width = 0.5}
training = {epochs = 1, batch_size = 64, optimizer = "adam", lr = 0.003}
scores = false
  [[experiment.copies]]
  method = "global-magnitude"
  name = "rewound"
  fields = {sparsity = 0.5}
  rounds = 2
  rewind = true
  finetune = {epochs = 1, batch_size = 64, lr = 0.01}
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `tiny.toml` and a store in which it was run, made once."""
    room = tmp_path_factory.mktemp("study")
    (room / "tiny.toml").write_text(STUDY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(room)
        patch.setattr("fairweight.report.html.render", lambda *_: "<!doctype html>")
        assert cli.run(["study", "run", "tiny.toml", "--workers", "0"]) == cli.DONE
    return room


@pytest.fixture
def there(finished: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(finished)
    return run


def test_every_command_shows_an_example_and_helps(run: Run) -> None:
    for name, command in COMMANDS.items():
        told = run("study", name, "--help").done().out
        assert f"fairweight study {name}" in told.replace("Usage: fairweight", "")
        for parameter in command.params:
            assert parameter.help[0].isupper(), (name, parameter.name)
            assert parameter.help.rstrip().endswith((".", ")")), (name, parameter.name)
    assert set(COMMANDS) == {
        "list", "new", "run", "status", "retry", "report", "claims", "export", "gc",
    }  # fmt: skip


def test_tables_and_report_of_a_finished_study(finished: Path) -> None:
    folder = finished / "fairweight-runs" / "results" / "tiny" / "digits"
    table = pd.concat(pd.read_parquet(p) for p in sorted(folder.glob("predictions/*/*.parquet")))
    members = sorted(set(zip(table["variant"], table["seed"], strict=True)))
    assert members == [(v, s) for v in ("dense", "rewound-r1", "rewound-r2") for s in (0, 1)]
    variants = pd.read_parquet(folder / "variants.parquet").set_index(["variant", "seed"])
    assert variants["parent"]["rewound-r2", 1] == "rewound-r1:1"
    assert variants["sparsity"]["rewound-r2", 0] == pytest.approx(0.75, abs=1e-3)
    assert variants["nominal_sparsity"]["rewound-r2", 0] == 0.75
    assert len(pd.read_parquet(folder / "train.parquet")) > 1000
    results = pd.read_parquet(folder / "audit" / "tables" / "results.parquet")
    assert set(results["scope"]) == {"model", "method"}


def test_a_published_study_is_found_with_its_images(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairweight.web.images import Pictures
    from fairweight.web.items import find_items
    from fairweight.web.votes.builder import indexed
    from fairweight.web.votes.index import open_index

    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path))
    (item,) = find_items(finished / "fairweight-runs")
    assert (item.key, item.title) == ("results-tiny-digits", "digits (tiny)")
    assert item.dataset is not None
    assert item.dataset.name == "digits"
    votes = open_index(indexed(item)).task()
    assert votes.head.variants == ("rewound-r1", "rewound-r2")
    assert votes.head.partners == (None, None, 0, 1, 0, 1)
    picture = Pictures(item).encoded(votes.example_id(0))
    assert picture is not None
    assert picture[1] == "image/png"


def test_the_next_run_makes_nothing(there: Run) -> None:
    told = there("study", "run", "tiny.toml", "--workers", "0").done().out
    assert "13 of them done" in told
    assert "0 stages made, 13 were there." in told


def test_status_and_dry_run(there: Run) -> None:
    told = there("study", "status", "tiny.toml").done().out
    assert told.splitlines()[-1].split() == ["all", "13", "0", "0", "0"]
    told = there("study", "run", "tiny.toml", "--dry-run", "--store", "elsewhere").done().out
    told = " ".join(told.split())
    assert "6 models, 13 stages, 0 of them done; about" in told
    assert re.search(r", \d+ MB\. On GPUs about \S+ GPU hours \(assumed: 10 TFLOP/s", told)


def test_a_lost_store_costs_no_model(there: Run, no_page: None, tmp_path: Path) -> None:
    """What is there is packed by the next run; another store then makes the audit alone."""
    packed = str(tmp_path / "packed")
    again = ("study", "run", "tiny.toml", "--workers", "0", "--packed", packed)
    there(*again).done()
    assert len(list(Path(packed).glob("tiny-digits-*.parquet"))) == 2
    told = there(*again, "--store", str(tmp_path / "other")).done().out
    assert "Predictions of 6 models were read from" in told
    assert "1 stages made" in told
    first = Path("fairweight-runs") / "results" / "tiny" / "digits" / "audit" / "tables"
    other = tmp_path / "other" / "results" / "tiny" / "digits" / "audit" / "tables"
    columns = ["metric", "by", "class", "shift", "ci_low", "ci_high"]
    both = [pd.read_parquet(folder / "results.parquet") for folder in (first, other)]
    both = [table[table["metric"].isin(["accuracy", "recall", "cev"])][columns] for table in both]
    pd.testing.assert_frame_equal(*both)


def test_export(there: Run) -> None:
    there("study", "export", "runs.csv").done()
    runs = pd.read_csv("runs.csv")
    assert runs["kind"].value_counts().to_dict() == {
        "predict": 6, "compress": 4, "train": 2, "audit": 1,
    }  # fmt: skip
    assert "cannot" in there("study", "export", "runs.xlsx").refused()


def test_garbage_is_shown_before_it_is_removed(there: Run, finished: Path) -> None:
    assert "Every stage belongs to a study" in there("study", "gc").done().out
    Path("less.toml").write_text(STUDY.replace("rounds = 2", "rounds = 1"))
    other = ("--store", "copy")
    import shutil

    shutil.copytree("fairweight-runs", "copy")
    Path("copy/studies/tiny.json").unlink()
    there("study", "run", "less.toml", *other, "--dry-run").done()
    told = there("study", "gc", *other).done().out
    assert "5 stages that no study refers to" in told  # 2 rounds, 2 predictions, the audit
    assert "Nothing was removed" in told
    assert "Removed." in there("study", "gc", "--delete", *other).done().out
    assert "Every stage belongs to a study" in there("study", "gc", *other).done().out


def test_a_failing_stage_is_told_and_can_be_tried_again(run: Run, folder: Path) -> None:
    bad = STUDY.replace("lr = 0.003", "lr = 1e30").replace("members = 2", "members = 1")
    (folder / "bad.toml").write_text(bad)
    outcome = run("study", "run", "bad.toml", "--workers", "0")
    assert outcome.code == 1
    assert "1 failed, 6 left" in outcome.out
    assert "The loss became" in outcome.err
    told = run("study", "status", "bad.toml").done().out
    assert "digits: dense, seed 0: " in told
    assert "The loss became" in " ".join(told.split())
    assert "1 failed stages will be tried again" in run("study", "retry", "bad.toml").done().out
    assert "failed" in run("study", "status", "bad.toml").done().out


def test_a_budget_stops_and_the_next_run_goes_on(run: Run, folder: Path, no_page: None) -> None:
    (folder / "slow.toml").write_text(
        STUDY.replace("training = {epochs = 1,", "training = {epochs = 2000,").replace(
            "members = 2", "members = 1"
        )
    )
    outcome = run("study", "run", "slow.toml", "--workers", "0", "--budget", "2s")
    assert outcome.code == 1
    assert "the budget was used up" in outcome.out
    assert any((folder / "fairweight-runs" / "work").iterdir())


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("run", "none"), ("Study 'none' does not exist", "'mnist-lenet'", ".toml")),
        (("run", "none.toml"), ("'none.toml' does not exist",)),
        (("run", "mnist-lenet", "--preset", "big"), ("'big'", "'smoke'")),
        (("run", "mnist-lenet", "--budget", "1 week"), ("--budget '1 week'", "60m")),
        (("run", "mnist-lenet", "--data", "nowhere"), ("'nowhere' does not exist",)),
        (("run", "mnist-lenet"), ("mnist", "--data DIR")),
        (("new", "--from", "nothing"), ("Study 'nothing'",)),
    ],
)
def test_bad_input(
    run: Run, words: tuple[str, ...], parts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAIRWEIGHT_DATA", raising=False)
    sentence = run("study", *words).refused()
    for part in parts:
        assert part in sentence, sentence


def test_new_prints_a_study_that_can_be_read(run: Run, folder: Path) -> None:
    (folder / "mine.toml").write_text(run("study", "new").done().out)
    assert "mnist-lenet" in run("study", "list").done().out
    assert "left" in run("study", "status", "mine.toml").done().out


def test_optional_experiments_need_their_data(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAIRWEIGHT_DATA", raising=False)
    optional = STUDY.partition("[[experiment]]")[2].replace('"digits"', '"mnist"')
    (folder / "two.toml").write_text(f"{STUDY}\n[[experiment]]\noptional = true{optional}")
    told = run("study", "run", "two.toml", "--dry-run").done().out
    assert "'mnist' is left out" in told
    assert "6 models" in told
    assert "mnist" not in run("study", "status", "two.toml").done().out


def test_one_experiment_is_run_without_the_others(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It needs neither the models nor the data of the other one."""
    monkeypatch.delenv("FAIRWEIGHT_DATA", raising=False)
    other = STUDY.partition("[[experiment]]")[2].replace('"digits"', '"mnist"')
    (folder / "two.toml").write_text(f"{STUDY}\n[[experiment]]{other}")
    assert "'mnist'" in run("study", "run", "two.toml").refused()
    run("study", "run", "two.toml", "--experiment", "digits", "--workers", "0").done()
    found = {path.name for path in (folder / "fairweight-runs" / "results" / "tiny").iterdir()}
    assert found == {"digits"}
    assert (
        "Did you mean 'digits'"
        in run("study", "run", "two.toml", "--experiment", "digit").refused()
    )
