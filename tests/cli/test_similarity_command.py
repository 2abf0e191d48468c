"""`fairweight similarity` as a user types it: tables, files, and a sentence for bad input."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from .conftest import Run

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

OPTIONS = {"classes": 10, "channels": 1, "size": 8}


def model(place: str, seed: int, *, architecture: str = "lenet", **card: Any) -> None:
    """A network that was never trained, saved as `train` would."""
    from fairweight.lab.artifacts import Card, save
    from fairweight.lab.batches import Scaling
    from fairweight.lab.models import build

    torch.manual_seed(seed)
    options = OPTIONS | ({} if architecture == "lenet" else {"width": 0.125})
    fields = {"data": {"name": "digits"}, "preprocessing": Scaling((0.3,), (0.4,))} | card
    save(
        build(architecture, **options),
        place,
        Card(architecture=architecture, options=options, seed=seed, **fields),
    )


@pytest.fixture
def models(folder: Path) -> Path:
    model("a", 0)
    model("b", 1)
    return folder


QUICK = ("--maps", "pooled", "--examples", "200")


def test_a_table_of_blocks(run: Run, models: Path) -> None:
    told = run("similarity", "a", "b", *QUICK).done().out.splitlines()
    assert told[0] == "SVCCA (simon-says) distance, a and b"
    assert told[1].split() == ["block", "distance", "samples", "directions"]
    assert [line.split()[0] for line in told[2:]] == ["block1", "block2", "logits"]
    assert all(line.split()[2] == "200" for line in told[2:])
    same = run("similarity", "a", "a", *QUICK).done().out.splitlines()
    assert [line.split()[1] for line in same[2:]] == ["0.0000"] * 3


def test_every_location_and_all_examples(run: Run, models: Path) -> None:
    run("similarity", "a", "b", "--size", "4", "--examples", "0", "--out", "s.json").done()
    held = json.loads(Path("s.json").read_text())
    assert [row["locations"] for row in held["blocks"]] == [16, 16, 1]
    assert [row["samples"] for row in held["blocks"]] == [539] * 3
    assert held["comparison"]["maps"] == "per-location"
    assert (held["a"], held["b"]) == ("a", "b")


def test_the_files_hold_what_is_computed(run: Run, models: Path) -> None:
    from fairweight.lab.partition import prepare
    from fairweight.lab.representations import similarity
    from fairweight.specs.data import Data
    from fairweight.specs.similarity import Similarity

    options = ("--variant", "raghu", "--directions", "4", "--features", "hidden2,logits")
    told = run("similarity", "a", "b", *QUICK, *options, "--out", "s.csv").done().out
    assert told.endswith("Written to s.csv\n")
    spec = Similarity(
        variant="raghu", directions=4, maps="pooled", examples=200, features=("hidden2", "logits")
    )
    expected = similarity("a", "b", prepare(Data(name="digits")).test, spec=spec)
    with Path("s.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["block"] for row in rows] == ["hidden2", "logits"]
    for row in rows:
        one = expected[row["block"]]
        assert float(row["distance"]) == pytest.approx(one.distance, abs=1e-9)
        assert (float(row["directions_a"]), row["status"]) == (4, "ok")


@pytest.mark.parametrize("more", [(), ("--minibatch", "--batch-size", "66")])
def test_cka_has_no_directions(run: Run, models: Path, more: tuple[str, ...]) -> None:
    words = ("similarity", "a", "b", *QUICK, "--measure", "cka", *more)
    told = run(*words, "--out", "s.json").done().out.splitlines()
    assert told[0] == "CKA distance, a and b"
    assert told[1].split() == ["block", "distance", "samples"]
    held = json.loads(Path("s.json").read_text())["blocks"]
    assert all(0 < row["distance"] < 1 and row["directions_a"] is None for row in held)
    assert all(row["samples"] == 200 for row in held)  # 3 × 66 and a rest of 2 that joined


def test_what_is_undefined_is_said(run: Run, models: Path) -> None:
    from fairweight.lab.artifacts import load, save

    dead, card = load("b")
    with torch.no_grad():
        dead.conv2.weight.zero_()
        dead.conv2.bias.zero_()
    save(dead, "dead", card)
    told = run("similarity", "a", "dead", *QUICK, "--out", "s.json").done().out
    assert "block2: all activations of the second side are 0." in told
    held = json.loads(Path("s.json").read_text())["blocks"]
    assert [row["distance"] is None for row in held] == [False, True, True]
    more = ("--features", "block1", "--directions", "6")
    with torch.no_grad():
        dead.conv1.weight[0] = 0
        dead.conv1.bias[0] = -1
    save(dead, "dead", card)
    told = run("similarity", "a", "dead", *QUICK, *more).done().out
    assert "block1: 1 directions were dropped, because they do not vary or" in " ".join(
        told.split()
    )


def test_models_of_different_data_and_blocks(run: Run, models: Path) -> None:
    model("other", 0, data={"name": "digits", "test": 0.5})
    sentence = run("similarity", "a", "other").refused()
    assert "trained on different data" in sentence
    assert "--dataset NAME" in sentence
    run("similarity", "a", "other", *QUICK, "--dataset", "digits").done()
    model("wide", 0, architecture="resnet8x4")
    sentence = run("similarity", "a", "wide").refused()
    assert (
        "different blocks (block1, block2, logits and block1, block2, block3, logits)" in sentence
    )
    run("similarity", "a", "wide", *QUICK, "--features", "logits").done()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("a", "none"), ("'none' is not a saved model",)),
        (("a", "b", "--features", "blok1"), ("Feature 'blok1' does not exist", "'block1'")),
        (("a", "b", "--features", ","), ("--features", "names nothing")),
        (
            ("a", "b", *QUICK, "--examples", "9"),
            ("Feature 'block2': 16 features need", "ridge = 0.01"),
        ),
        (("a", "b", "--measure", "cca"), ("measure = 'cca'", "'svcca' or 'cka'")),
        (("a", "b", "--variant", "google"), ("variant = 'google'", "'raghu'")),
        (("a", "b", "--maps", "mean"), ("maps = 'mean'", "'pooled'")),
        (("a", "b", "--minibatch"), ("minibatch is an estimate of CKA",)),
        (("a", "b", "--out", "table.txt"), (".json or .csv",)),
        (("a", "b", "--batch-size", "0"), ("--batch-size 0",)),
        (("a", "b", "--part", "tset"), ("'tset'", "'test'")),
        (("a", "b", "--dataset-option", "x=1"), ("--dataset NAME",)),
        (("a", "b", "--dataset", "digit"), ("'digits'",)),
        (("a", "b", "--examples", "1"), ("examples = 1",)),
    ],
)
def test_bad_input_gets_a_sentence(
    run: Run, models: Path, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    sentence = run("similarity", *words).refused()
    for part in parts:
        assert part in sentence, sentence
    assert sorted(path.name for path in models.iterdir()) == ["a", "b"]
