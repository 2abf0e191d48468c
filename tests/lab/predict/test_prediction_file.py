"""Interrupted predictions go on where they stopped, and never mix two runs."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import fairweight
from fairweight.errors import InputError, OutputError
from fairweight.lab import prediction_file
from fairweight.lab.prediction import predict

Floats = NDArray[np.float32]
SOURCE = Path(fairweight.__file__).resolve().parents[1]


class Counting(nn.Module):
    """Counts the batches it was asked about, and may stop at one of them."""

    def __init__(self, stop_at: int | None = None, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))
        self.asked = 0
        self.stop_at = stop_at

    def forward(self, x: Tensor) -> Tensor:
        if self.asked == self.stop_at:
            raise KeyboardInterrupt
        self.asked += 1
        return x.flatten(1)[:, :3] * self.factor


def batches(n: int = 6, *, first: int = 0) -> Iterator[tuple[Floats, Any]]:
    for number in range(first, n):
        images = np.random.default_rng(number).normal(size=(4, 1, 2, 2)).astype(np.float32)
        yield images, np.array([0, 1, 2, 0])


@pytest.fixture(params=[0.0, 3600.0], ids=["part per batch", "one part"])
def parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(prediction_file, "PART_SECONDS", request.param)
    return float(request.param)


def interrupt(out: Path, at: int = 4) -> None:
    with pytest.raises(KeyboardInterrupt):
        predict({"m": Counting(stop_at=at)}, batches(), out=out)
    assert not out.exists()


@pytest.mark.usefixtures("parts")
def test_going_on(tmp_path: Path) -> None:
    out = tmp_path / "p.parquet"
    whole = predict({"m": Counting()}, batches())
    interrupt(out, at=4)
    model = Counting()
    predict({"m": model}, batches(), out=out)
    assert model.asked == 2  # of six batches, four were there
    assert pq.read_table(out).equals(whole)
    assert [f.name for f in tmp_path.iterdir()] == ["p.parquet"]


def test_interrupted_twice(tmp_path: Path) -> None:
    out = tmp_path / "p.parquet"
    interrupt(out, at=2)
    with pytest.raises(KeyboardInterrupt):
        predict({"m": Counting(stop_at=1)}, batches(), out=out)
    model = Counting()
    predict({"m": model}, batches(), out=out)
    assert model.asked == 3
    assert pq.read_table(out).equals(predict({"m": Counting()}, batches()))


def test_other_weights_start_anew(tmp_path: Path) -> None:
    out = tmp_path / "p.parquet"
    interrupt(out)
    model = Counting(factor=-1.0)
    predict({"m": model}, batches(), out=out)
    assert model.asked == 6
    assert pq.read_table(out).equals(predict({"m": Counting(factor=-1.0)}, batches()))


def test_other_options_start_anew(tmp_path: Path) -> None:
    out = tmp_path / "p.parquet"
    interrupt(out)
    model = Counting()
    predict({"m": model}, batches(), out=out, scores=True)
    assert model.asked == 6
    assert "scores" in pq.read_schema(out).names


def test_functions_start_anew(tmp_path: Path) -> None:
    """Nobody can know that a function is still the same."""
    out = tmp_path / "p.parquet"
    asked: list[int] = []

    def run(x: Floats) -> Floats:
        asked.append(len(x))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return x.reshape(len(x), -1)[:, :3]

    with pytest.raises(KeyboardInterrupt):
        predict({"m": run}, batches(), out=out)
    predict({"m": run}, batches(), out=out)
    assert len(asked) == 3 + 6


def test_on_request_anew(tmp_path: Path) -> None:
    out = tmp_path / "p.parquet"
    interrupt(out)
    model = Counting()
    predict({"m": model}, batches(), out=out, resume=False)
    assert model.asked == 6


def test_other_examples_are_an_error(tmp_path: Path) -> None:
    out = tmp_path / "p.parquet"
    interrupt(out)
    with pytest.raises(InputError, match=r"other examples, or in another order \(batch 0\)"):
        predict({"m": Counting()}, batches(first=1), out=out)
    with pytest.raises(InputError, match=r"with more examples \(4 batches, now 2\)"):
        predict({"m": Counting()}, batches(2), out=out)
    predict({"m": Counting()}, batches(2), out=out, resume=False)
    assert pq.read_table(out).num_rows == 8


def test_an_earlier_table_stays_until_the_end(tmp_path: Path) -> None:
    out = tmp_path / "p.parquet"
    predict({"m": Counting()}, batches(1), out=out)
    before = out.read_bytes()
    with pytest.raises(KeyboardInterrupt):
        predict({"m": Counting(stop_at=4)}, batches(), out=out)
    assert out.read_bytes() == before


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction_file, "PART_SECONDS", 0.0)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OutputError, match="no space left on that disk"):
        predict({"m": Counting()}, batches(), out=tmp_path / "p.parquet")
    assert not (tmp_path / "p.parquet").exists()


KILLED = """
import os, signal, sys
import numpy as np
from torch import nn
from fairweight.lab import prediction_file
from fairweight.lab.prediction import predict

prediction_file.PART_SECONDS = 0.0

def batches():
    for i in range(3):
        images = np.random.default_rng(i).normal(size=(4, 1, 2, 2)).astype(np.float32)
        yield images, np.array([0, 1, 2, 0])
    os.kill(os.getpid(), signal.SIGKILL)

predict({"m": nn.Sequential(nn.Flatten())}, batches(), out=sys.argv[1])
"""


def test_killed(tmp_path: Path) -> None:
    """No goodbye at all: what was on disk is used, the rest is asked."""
    out = tmp_path / "p.parquet"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(out)],
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert not out.exists()
    model = nn.Sequential(nn.Flatten())
    asked: list[int] = []
    model.register_forward_hook(lambda *_: asked.append(1))
    predict({"m": model}, batches(5), out=out)
    assert len(asked) == 2  # batches 0 to 2 were there
    assert pq.read_table(out).equals(predict({"m": model}, batches(5)))
