"""`compress` on files of any architecture, as a user types it, through to predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .conftest import Run

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from torch import nn  # noqa: E402

from fairweight.lab.onnx_models import program_to_onnx, write_onnx  # noqa: E402

DIGITS = ("--dataset", "digits", "--mean", "0.3", "--std", "0.4")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network of 8 × 8 digits as torch exports it, without a card."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(288, 10)).eval()
    size = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(net, (torch.zeros(4, 1, 8, 8),), dynamic_shapes=size)
    folder = tmp_path_factory.mktemp("exported")
    write_onnx(program_to_onnx(program, "the network"), folder / "net.onnx")
    torch.export.save(program, folder / "net.pt2")
    return folder


@pytest.fixture
def net(exported: Path, folder: Path) -> str:
    (folder / "net.onnx").write_bytes((exported / "net.onnx").read_bytes())
    (folder / "net.pt2").write_bytes((exported / "net.pt2").read_bytes())
    return "net.onnx"


def test_a_file_is_calibrated_on_a_data_set_and_predicts(run: Run, net: str) -> None:
    told = run("compress", net, "--method", "int8-static", *DIGITS).done().out
    assert "smaller than the float model" in told
    assert "of the 100 examples given" in told
    assert "Written to net-int8-static.onnx" in told
    both = "dense=net.onnx int8-static=net-int8-static.onnx"
    assert f"Next: fairweight predict {both} {' '.join(DIGITS)}\n" in told
    run("predict", f"dense={net}", "int8-static=net-int8-static.onnx", *DIGITS).done()


def test_a_file_is_calibrated_on_an_array(run: Run, net: str, folder: Path) -> None:
    inputs = np.random.default_rng(0).normal(size=(20, 1, 8, 8)).astype(np.float32)
    np.save(folder / "inputs.npy", inputs)
    words = ("--method", "int8-static", "--calibration", "inputs.npy")
    assert "of the 20 examples given" in run("compress", net, *words).done().out
    # Neither the result nor the source is ever replaced unasked.
    assert "exists" in run("compress", net, *words).refused()
    assert "is an input" in run("compress", net, *words, "--out", net, "--overwrite").refused()
    np.save(folder / "bytes.npy", np.zeros((5, 8, 8, 1), np.uint8))
    assert (
        "--mean and --std"
        in run(
            "compress",
            net,
            "--method",
            "int8-static",
            "--calibration",
            "bytes.npy",
            "--out",
            "b.onnx",
        ).refused()
    )
    assert not (folder / "b.onnx").exists()


def test_an_exported_program_needs_to_be_trusted(run: Run, net: str, folder: Path) -> None:
    words = ("compress", "net.pt2", "--method", "int8-dynamic")
    assert "--trust-file net.pt2" in run(*words).refused()
    told = run(*words, "--trust-file", "net.pt2").done().out
    assert "Written to net-int8-dynamic.onnx" in told
    assert "--trust-file net.pt2" in told


def test_options_that_do_not_fit_are_refused(run: Run, net: str, folder: Path) -> None:
    torch.save({"weight": torch.zeros(2)}, folder / "net.pt")
    (folder / "text.npy").write_text("no array")
    np.savez(folder / "two.npz", a=np.zeros(2), b=np.zeros(2))
    np.save(folder / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    static = ("--method", "int8-static")
    for words, said in (
        ((net, *static), "--dataset NAME --data DIR"),
        (("net.pt", *static), 'fairweight.lab.compress(net, "int8-static", data)'),
        ((net, *static, "--epochs", "3", "--distill", "kd"), "--epochs, --distill cannot be used"),
        (("models/dense-0", *static, "--calibration", "a.npy"), "--calibration cannot be used"),
        ((net, *static, *DIGITS, "--calibration", "a.npy"), "give one of them"),
        ((net, *static, "--all-examples"), "need --dataset"),
        ((net, *static, "--calibration", "gone.npy"), "there is no file 'gone.npy'"),
        ((net, *static, "--calibration", "text.npy"), "write it with numpy.save"),
        ((net, *static, "--calibration", "two.npz"), "holds several arrays"),
        ((net, *static, "--calibration", "objects.npy"), "cannot be read as an array of numbers"),
        ((net, *static, "--mean", "0.5"), "give both --mean and --std"),
        ((net, "--method", "l1-structured", "--sparsity", "0.5"), "is an exported file; use"),
    ):
        assert said in run("compress", *words).refused(), words
    assert not list(folder.glob("net-*"))
