"""The benchmark of similarity compares what agrees, and says so where it does not."""

from __future__ import annotations

import math
from typing import Any

import pytest

pytest.importorskip("torch")


def lines_of(benchmarks: Any) -> list[Any]:
    settings = benchmarks.Settings(rows=300, rounds=1, n_boot=20)
    lines: list[Any] = benchmarks.BENCHMARKS["similarity"].run(settings)
    return lines


def test_it_returns_finite_ratios(benchmarks: Any) -> None:
    lines = lines_of(benchmarks)
    assert [line.target for line in lines] == [10.0, None, 5.0, None]
    assert all(math.isfinite(line.ratio) and line.ratio > 0 for line in lines), lines


def test_results_that_differ_are_no_benchmark(
    benchmarks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks.BENCHMARKS["similarity"], "transcription", lambda x, y: 0.5)
    with pytest.raises(RuntimeError, match="differ"):
        lines_of(benchmarks)
