"""`fairweight datasets`: the registry, and what a folder holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairweight.data import datasets

from .conftest import Run


@pytest.fixture(autouse=True)
def no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRWEIGHT_DATA", raising=False)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """MNIST's four files, and the half of KMNIST."""
    folder = tmp_path / "data"
    for name, parts in (("mnist", ("train", "t10k")), ("kmnist", ("t10k",))):
        (folder / name).mkdir(parents=True)
        for part in parts:
            (folder / name / f"{part}-images-idx3-ubyte.gz").touch()
            (folder / name / f"{part}-labels-idx1-ubyte").touch()
    return folder


def test_the_list_has_every_data_set(run: Run) -> None:
    told = run("datasets").done().out
    firsts = {line.split()[0] for line in told.splitlines() if line and not line[0].isspace()}
    assert {entry.name for entry in datasets()} <= firsts
    assert "found" not in told
    assert f"{len(datasets())} data sets; one in full: fairweight datasets NAME" in told


def test_one_data_set_in_full(run: Run) -> None:
    told = " ".join(run("datasets", "qmnist").done().out.split())
    assert "source Yadav and Bottou 2019" in told
    assert "files in qmnist/ or QMNIST/raw/ qmnist-train-images-idx3-ubyte" in told
    assert "groups writer, series" in told
    assert "options pixels='qmnist'" in told
    assert "found" not in told
    assert "none are needed" in run("datasets", "digits").done().out


def test_what_a_folder_holds(run: Run, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = run("datasets", "--data", data).done().out
    found = {line.split()[0]: line.split()[1:3] for line in told.splitlines() if line[:1].isalpha()}
    assert found["digits"][0] == "yes"
    assert found["mnist"][0] == "yes"
    assert found["kmnist"] == ["in", "part"]
    assert found["fashion-mnist"][0] == "no"
    assert found["folders"][0] == "unknown"
    monkeypatch.setenv("FAIRWEIGHT_DATA", str(data))
    assert run("datasets").done().out == told


def test_what_is_missing(run: Run, data: Path) -> None:
    told = " ".join(run("datasets", "kmnist", "--data", data).done().out.split())
    assert told.endswith("found in part missing train-images-idx3-ubyte train-labels-idx1-ubyte")
    assert run("datasets", "fashion-mnist", "--data", data).done().out.rstrip().endswith("no")


def test_as_json(run: Run, data: Path) -> None:
    rows = json.loads(run("datasets", "--json").done().out)
    assert [row["name"] for row in rows] == [entry.name for entry in datasets()]
    assert {row["found"] for row in rows} == {None}
    (one,) = json.loads(run("datasets", "mnist", "--json", "--data", data).done().out)
    assert one["found"] == "yes"
    assert one["options"] == {"splits": ["train", "test"]}
    assert one["missing"] == []


def test_an_unknown_name_and_a_folder_that_is_not_there(run: Run) -> None:
    sentence = run("datasets", "fashon-mnist").refused()
    assert "Data set 'fashon-mnist' does not exist" in sentence
    assert "Did you mean 'fashion-mnist'?" in sentence
    assert "data folder 'nowhere' (--data" in run("datasets", "--data", "nowhere").refused()


def test_torch_is_not_needed(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "sys.modules['torch'] = None  # as if it were not installed\n"
        "from fairweight.cli import run\n"
        "sys.exit(run(['datasets', 'digits']))"
    )
    made = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert "Alpaydin and Kaynak" in made.stdout
