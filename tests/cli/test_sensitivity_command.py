"""`fairweight sensitivity` as a user types it: the first line, files, codes, bad input."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairweight as fw

from .conftest import Run
from .test_similarity_command import model

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

pytestmark = pytest.mark.usefixtures("few_metrics", "exported_once")

FEW = ("--n-boot", "20")
BITS = ("--method", "weight-bits", "--method-option", "bits=2")


def test_a_report_with_units(run: Run, folder: Path) -> None:
    model("dense-0", 0, classes=tuple("0123456789"))
    told = run("sensitivity", "dense-0", *BITS, "--groups", "ink", *FEW, "--out", "out").done().out
    lines = told.splitlines()
    assert lines[0].startswith("5 layers, 12 models on 539 examples: about ")
    assert lines[1].startswith("weight-bits-2: ")
    table = fw.load("out").explanations["sensitivity"]
    assert list(dict.fromkeys(table["unit"])) != []
    assert set(table["group"].dropna()) == {"ink=light", "ink=medium", "ink=heavy"}
    assert len(list(Path("out-units").glob("*.npy"))) == 12
    again = run("sensitivity", "dense-0", *BITS, "--groups", "ink", *FEW, "--out", "out").done()
    assert "10 of them kept from before" in again.out
    blocks = ("--unit", "block", "--policy", "policy.toml", "--out", "blocks", "--quiet")
    Path("policy.toml").write_text('[[rule]]\nmetric = "accuracy"\nby = "group"\nmargin = 0.02\n')
    code = run("sensitivity", "dense-0", *BITS, "--groups", "ink", *FEW, *blocks).code
    assert code in (1, 2, 3)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--unit", "stage"), "--unit stage cannot be used; write layer or block."),
        (("--budget", "soon"), "--budget 'soon' is no time"),
        (("--all-examples",), "--dataset-option and --all-examples need --dataset NAME."),
        (("--part", "train", "--method", "int8-static"), "int8-static needs calibration examples"),
    ],
)
def test_bad_input_is_a_sentence(run: Run, folder: Path, words: tuple[str, ...], said: str) -> None:
    model("dense-0", 0, classes=tuple("0123456789"))
    first = () if "--method" in words else BITS
    assert said in run("sensitivity", "dense-0", *first, *words, "--quiet").refused()
    assert not Path("fairweight-sensitivity").exists()


def test_mixed_precision_on_too_few_rows_writes_nothing(run: Run, folder: Path) -> None:
    model("dense-0", 0, classes=tuple("0123456789"))
    text = 'schema = 1\n[[rule]]\nmetric = "accuracy"\nby = "group"\nmargin = 0.001\n'
    Path("policy.toml").write_text(text)
    words = ("compress", "dense-0", *BITS, "--policy", "policy.toml", "--groups", "ink")
    made = run(*words)
    assert made.code == 3, made.err
    assert "are too few: even an unchanged model does not pass" in made.out
    assert not list(Path().glob("*.onnx"))
    assert "cannot be used with --policy" in run(*words, "--epochs", "2").refused()
    assert "need --policy" in run("compress", "dense-0", *BITS, "--groups", "ink").refused()


@pytest.mark.parametrize(
    "words", [("--unit", "block"), ("--groups", "ink"), ("--max-size", "9000")]
)
def test_options_of_mixed_precision_need_a_policy(
    run: Run, folder: Path, words: tuple[str, ...]
) -> None:
    model("dense-0", 0, classes=tuple("0123456789"))
    said = run("compress", "dense-0", *BITS, *words).refused()
    assert "--groups, --unit and --max-size need --policy FILE" in said
