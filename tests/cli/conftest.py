"""The command line as a function, and a small prediction table in every layout."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from fairweight import cli

PROGRAM = str(Path(sys.executable).with_name("fairweight"))  # installed beside Python
FEW = ("--n-boot", "40", "--quiet")  # replicates enough to run everything, and no summary


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    def done(self) -> Outcome:
        assert self.code == cli.DONE, self.err
        assert self.err == ""
        return self

    def refused(self) -> str:
        """The one line on standard error after bad input."""
        assert self.code == cli.BAD_INPUT, self.out + self.err
        assert self.out == ""
        assert "Traceback" not in self.err
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("fairweight: ")
        return lines[0].removeprefix("fairweight: ")


Run = Callable[..., Outcome]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is also the current one, so that commands read as users type them."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def page() -> Callable[[], str]:
    """Read the page of the last audit, which is drawn even where `no_page` holds for a module."""
    return lambda: Path("fairweight-audit/report.html").read_text(encoding="utf-8")


@pytest.fixture
def no_page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the drawing of the page out, which takes longest, where only numbers are compared."""
    if "page" not in request.fixturenames:
        monkeypatch.setattr("fairweight.report.html.render", lambda *_: "<!doctype html>")


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process: `run("audit", "preds.csv")`."""

    def called(*arguments: Any) -> Outcome:
        words = [str(argument) for argument in arguments]
        monkeypatch.setattr(sys, "argv", ["fairweight", *words])
        capsys.readouterr()
        code = cli.run(words)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return called


def process(*arguments: Any, cwd: Path, **environment: str) -> Outcome:
    """The same in a process of its own, as from a shell."""
    made = subprocess.run(
        [PROGRAM, *map(str, arguments)],
        cwd=cwd,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    told = [line for line in made.stderr.splitlines(True) if not line.startswith("… ")]
    return Outcome(made.returncode, made.stdout, "".join(told))  # without lines of progress


def wide_frame(n: int = 240) -> pd.DataFrame:
    """`n` examples of two classes, two models, two groups, six examples per person.

    The dense model errs on every 10th example, int8 on every 6th, and more among the old.
    """
    i = np.arange(n)
    label = i % 2
    dense = np.where(i % 10 == 0, 1 - label, label)
    old = (i // 2) % 3 == 0
    wrong = (i % 6 == 0) | (old & (i % 4 == 1))
    return pd.DataFrame(
        {
            "example_id": i + 1000,
            "label": label,
            "pred_dense": dense,
            "pred_int8": np.where(wrong, 1 - label, label),
            "score_dense": np.where(dense == 1, 0.9, 0.2) - (i % 7) / 100,
            "score_int8": np.where(wrong, 1 - label, label) * 0.5 + 0.2 + (i % 5) / 100,
            "sex": np.where(i % 5 < 3, "F", "M"),
            "age": np.where(old, "old", "young"),
            "person": i // 6,
            "w": 1.0 + (i % 3),
        }
    )


NAMES = ("dense", "int8")


def long_frame(wide: pd.DataFrame | None = None, *, scores: bool = True) -> pd.DataFrame:
    """The same, one row per example and model."""
    wide = wide_frame() if wide is None else wide
    rest = [c for c in wide.columns if not c.startswith(("pred_", "score_"))]
    parts = []
    for name in NAMES:
        part = wide[rest].assign(variant=name, prediction=wide[f"pred_{name}"])
        parts.append(part.assign(score=wide[f"score_{name}"]) if scores else part)
    return pd.concat(parts, ignore_index=True)


def model_frames(wide: pd.DataFrame | None = None) -> dict[str, pd.DataFrame]:
    """The same, one table per model."""
    long = long_frame(wide)
    return {
        name: long[long["variant"] == name].drop(columns="variant").reset_index(drop=True)
        for name in NAMES
    }


def document(out: str | Path = "fairweight-audit") -> dict[str, Any]:
    """What audit.json says, with every row of tables/; NaN and Infinity are not JSON.

    Files are read as they are, which takes a fifth of the time of `load`; that it gives the same
    audit is tested in auditing/test_archive.py.
    """

    def strict(constant: str) -> None:
        raise AssertionError(f"{constant} in audit.json")

    text = Path(out, "audit.json").read_text(encoding="utf-8")
    read: dict[str, Any] = json.loads(text, parse_constant=strict)
    for name, held in read["tables"].items():
        rows = pq.ParquetFile(Path(out, "tables", f"{name}.parquet")).read().to_pylist()
        assert len(rows) == held["rows"], name
        read["variants_table" if name == "variants" else name] = [
            {column: _plain(cell) for column, cell in row.items()} for row in rows
        ]
    return read


def _plain(cell: Any) -> Any:
    """Undefined and infinite numbers as JSON has them."""
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def numbers(out: str | Path = "fairweight-audit") -> list[dict[str, Any]]:
    """The rows of results; what must be equal when an audit is made again."""
    rows: list[dict[str, Any]] = document(out)["results"]
    return rows


def value(out: str | Path, column: str, **where: Any) -> Any:
    """A cell of the one row of results that the conditions name; others must be null."""
    wanted = {"group": None, "class": None, "task": None, "by": "overall"} | where
    rows = [r for r in numbers(out) if all(r[k] == v for k, v in wanted.items())]
    assert len(rows) == 1, f"{len(rows)} rows for {wanted}"
    return rows[0][column]


def same(left: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    """Equal rows: text, counts and nulls exactly, fractions to the last digits."""
    assert len(left) == len(right)
    for one, other in zip(left, right, strict=True):
        assert one.keys() == other.keys()
        for column, held in one.items():
            expected = other[column]
            if isinstance(held, float) and isinstance(expected, float):
                expected = pytest.approx(expected, rel=1e-9, abs=1e-12)
            assert held == expected, (column, one)
