"""Nothing that a file names is imported or run: cards, studies, model files.

Every test has a canary: a module that can be imported and leaves a file behind if it is.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairweight import cli
from fairweight.base.trust import trusting
from fairweight.errors import InputError

from .mutations import CANARY

torch = pytest.importorskip("torch")

from fairweight.lab.artifacts import Card, card_json, load, save  # noqa: E402  # noqa: E402
from fairweight.lab.models.registry import build  # noqa: E402
from fairweight.lab.prediction import predict  # noqa: E402

Refused = Callable[..., str]
DIGITS = {"name": "digits"}
NETS = """
import os
from subprocess import Popen
from torch import nn
def small(classes, channels, size):
    return nn.Sequential(nn.Flatten(), nn.Linear(channels * size * size, classes))
"""


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Run a command that must be refused; its sentence."""

    def run(*words: object) -> str:
        capsys.readouterr()
        assert cli.run([str(word) for word in words]) == cli.BAD_INPUT
        return capsys.readouterr().err

    return run


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's own, which imports others."""
    (tmp_path / "own_nets.py").write_text(NETS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "own_nets", raising=False)
    return "own_nets"


def evil_model(folder: Path, architecture: str, **options: Any) -> Path:
    """A folder as `train` writes it, whose card names code."""
    given = {"classes": 10, "channels": 1, "size": 8}
    card = Card(architecture="lenet", options=given, classes=tuple("0123456789"), data=DIGITS)
    save(build("lenet", **given), folder, card)
    held = json.loads((folder / "model.json").read_text())
    held |= {"architecture": architecture, "options": given | options}
    (folder / "model.json").write_text(json.dumps(held))
    return folder


def evil_study(path: Path, architecture: str, more: str = "") -> Path:
    path.write_text(
        'name = "evil"\n[[experiment]]\nname = "a"\ndata = {name = "digits"}\n'
        f'model = {{architecture = "{architecture}"}}\ntraining = {{epochs = 1}}\n{more}'
    )
    return path


@pytest.mark.parametrize("name", [f"{CANARY}:run", "subprocess:Popen"])
def test_a_card_runs_no_code(
    tmp_path: Path, canary: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """`"architecture": "subprocess:Popen"`, with what would be its arguments."""
    monkeypatch.chdir(tmp_path)
    started = tmp_path / "started"
    evil = evil_model(tmp_path / "evil", name, args=["touch", str(started)])
    for words in (
        ("predict", evil, "--out", "p.parquet"),
        ("predict", f"x={evil}", "--dataset", "digits", "--out", "p.parquet"),
        ("predict", evil / "weights.safetensors", "--out", "p.parquet"),
        ("predict", evil, "--remeasure", "--variants", "v.parquet", "--out", "p.parquet"),
        ("compress", evil, "--method", "global-magnitude", "--sparsity", "0.5"),
        ("compress", evil, "--method", "int8-dynamic"),
        ("similarity", evil, evil),
        ("train", "--epochs", "1", "--distill", "kd", "--teacher", evil, "--out", "student"),
    ):
        told = refused(*words)
        assert "names code" in told, told
        assert f"--trust-module {name.partition(':')[0]}" in told
    with pytest.raises(InputError, match="names code"):
        load(evil)
    with pytest.raises(InputError, match="names code"):
        predict({"x": evil}, [])
    assert not started.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"importable", "evil"}


def test_a_card_that_was_read_runs_no_code_when_it_is_saved_again(
    tmp_path: Path, canary: Path
) -> None:
    evil = evil_model(tmp_path / "evil", f"{CANARY}:run")
    model, card = load(evil, build("lenet", classes=10, channels=1, size=8))
    with pytest.raises(InputError, match="names code"):
        save(model, tmp_path / "again", card)


def test_the_card_inside_an_onnx_file_runs_no_code(
    tmp_path: Path, canary: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is asked as ONNX, which needs no network of ours."""
    from fairweight.lab.onnx_models import put_card, read_onnx, to_onnx, write_onnx

    net = build("lenet", classes=10, channels=1, size=8).eval()
    file = to_onnx(net, torch.zeros(1, 1, 8, 8), tmp_path / "m.onnx")
    model = read_onnx(file)
    put_card(model, Card(architecture=f"{CANARY}:run", classes=tuple("0123456789"), data=DIGITS))
    write_onnx(model, file)
    out = tmp_path / "p.parquet"
    words = ["predict", f"m={file}", "--out", str(out), "--mean", "0", "--std", "1"]
    assert cli.run(words) == cli.DONE, capsys.readouterr().err
    assert out.exists()


@pytest.mark.parametrize(
    ("name", "more"),
    [
        (f"{CANARY}:run", ""),
        ("subprocess:Popen", ""),
        ("lenet", f'grid = {{"model.architecture" = ["lenet", "{CANARY}:run"]}}\n'),
    ],
)
def test_a_study_runs_no_code(
    tmp_path: Path,
    canary: Path,
    refused: Refused,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    more: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    study = evil_study(tmp_path / "evil.toml", name, more)
    for words in (["run"], ["run", "--dry-run"], ["status"], ["retry"], ["report"]):
        assert "names code" in refused("study", words[0], study, *words[1:])


def test_a_dry_run_makes_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hundred thousand times as wide, LeNet would have 6e14 weights: shapes are all there is."""
    monkeypatch.chdir(tmp_path)
    study = evil_study(tmp_path / "wide.toml", "lenet", "[experiment.model]\n")
    text = study.read_text().replace("[experiment.model]\n", "")
    study.write_text(text.replace('"lenet"}', '"lenet", width = 1e5}'))
    assert cli.run(["study", "run", str(study), "--dry-run"]) == cli.DONE
    assert "5 models" in capsys.readouterr().out


def test_a_dry_run_of_trusted_code_runs_none_of_it(
    tmp_path: Path, canary: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = evil_study(tmp_path / "own.toml", f"{CANARY}:run")
    told = refused("study", "run", study, "--dry-run", "--trust-module", CANARY)
    assert "not known before it is made" in told


def test_a_module_that_is_trusted_is_used(
    tmp_path: Path, nets: str, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    """Named on the command line, then by the card: the second needs trust, in other processes
    too.
    """
    monkeypatch.chdir(tmp_path)
    quick = ("--epochs", "1", "--batch-size", "256")
    assert cli.run(["train", "--model", f"{nets}:small", *quick, "--out", "m"]) == cli.DONE
    words = ("predict", "m", "--out", "p.parquet")
    assert f"--trust-module {nets}" in refused(*words)
    assert "names code" in refused(*words, "--trust-module", "other")
    assert cli.run([*words, "--trust-module", nets]) == cli.DONE
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    study = evil_study(tmp_path / "own.toml", f"{nets}:small", "members = 1\n")
    words = ("study", "run", str(study), "--store", "runs", "--workers", "1")
    assert cli.run([*words, "--trust-module", nets]) == cli.DONE
    with trusting(modules=[nets]):
        load(tmp_path / "m")


@pytest.mark.parametrize("attribute", ["os.system", "Popen", "nn.Linear", "os"])
def test_a_trusted_module_does_not_lend_what_it_imports(
    tmp_path: Path, nets: str, attribute: str
) -> None:
    evil = evil_model(tmp_path / "evil", f"{nets}:{attribute}", command="touch x")
    with trusting(modules=[nets]), pytest.raises(InputError, match=r"does not define|exist"):
        load(evil)


@pytest.mark.parametrize("name", ["os;x", "a b", "", "..", "a:b"])
def test_what_is_trusted_is_a_module(refused: Refused, name: str) -> None:
    assert "is no module" in refused("predict", "m", "--trust-module", name)


def test_an_exported_program_is_opened_by_name_only(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `.pt2` file may hold pickles; this one would leave a file behind."""
    monkeypatch.chdir(tmp_path)
    sung = tmp_path / "sung"

    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (sung,)

    with zipfile.ZipFile("evil.pt2", "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Evil()))
        archive.writestr("archive/version", "3")
    words = ("predict", "x=evil.pt2", "--dataset", "digits", "--out", "p.parquet")
    told = refused(*words)
    assert "can run any code" in told
    assert "--trust-file evil.pt2" in told
    assert "can run any code" in refused(*words, "--trust-file", "other.pt2")
    assert "cannot be read as an exported program" in refused(*words, "--trust-file", "evil.pt2")
    with pytest.raises(InputError, match="can run any code"):
        predict({"x": "evil.pt2"}, [])
    assert not sung.exists()


@pytest.mark.parametrize("option", ["cache", "progress"])
def test_a_card_names_no_folder_that_is_written(tmp_path: Path, option: str) -> None:
    """Decoded images are kept in a folder that Python may choose, and no file."""
    from fairweight.lab.prediction import data_of, model_files

    data = {"name": "folders", "options": {option: str(tmp_path / "x")}}
    evil = evil_model(tmp_path / "evil", "lenet")
    held = json.loads(card_json(Card(variant="v", data=data)))
    (evil / "model.json").write_text(json.dumps(held))
    with pytest.raises(InputError, match=f"'{option}' of a data set is for Python only"):
        data_of(model_files([str(evil)]))


def test_sizes_that_nothing_could_hold_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    study = evil_study(tmp_path / "large.toml", "lenet", "[experiment.model]\n")
    text = study.read_text().replace("[experiment.model]\n", "")
    for size in (1_000_000_000, 2**62):
        data = text.replace('name = "digits"', f'name = "digits", size = {size}')
        assert data != text
        study.write_text(data)
        assert cli.run(["study", "run", str(study), "--dry-run"]) == cli.BAD_INPUT
        assert "size" in capsys.readouterr().err


def test_a_pipe_in_place_of_weights_does_not_hang(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    given = {"classes": 10, "channels": 1, "size": 8}
    card = Card(architecture="lenet", options=given, classes=tuple("0123456789"), data=DIGITS)
    save(build("lenet", classes=10, channels=1, size=8), folder, card)
    weights = folder / "weights.safetensors"
    weights.unlink()
    os.mkfifo(weights)
    with pytest.raises(InputError, match="is not an ordinary file"):
        load(folder)


def test_a_backdoor_tells_nothing_about_the_file_that_is_named(tmp_path: Path) -> None:
    from fairweight.data.backdoor import Backdoor

    (tmp_path / "secret.json").write_text('{"password": 1}')
    told = set()
    for name in ("secret.json", "absent.json", "."):
        with pytest.raises(InputError) as raised:
            Backdoor.read(tmp_path / name)
        told.add(str(raised.value).replace(str(tmp_path / name), "FILE"))
    assert len(told) == 1
