"""The benchmarks run and return numbers; how fast anything is, no test asserts."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def benchmarks() -> Any:
    """The package `benchmarks`, which stands beside the sources and is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        yield importlib.import_module("benchmarks.__main__")


def lines_of(benchmarks: Any, name: str) -> list[Any]:
    settings = benchmarks.Settings(rows=2_000, rounds=1, n_boot=20)
    lines: list[Any] = benchmarks.BENCHMARKS[name].run(settings)
    return lines


@pytest.mark.parametrize("name", ["bootstrap", "large", "many", "startup"])
def test_every_benchmark_returns_finite_ratios(
    name: str, benchmarks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = benchmarks.BENCHMARKS[name]
    if hasattr(module, "in_fresh_process"):
        # Starting processes takes most of the time of a tiny run, and one of them is tested below.
        timed = sys.modules["benchmarks.timed_audit"]
        monkeypatch.setattr(module, "in_fresh_process", timed.audited)
    lines = lines_of(benchmarks, name)
    assert len(lines) >= 4
    assert all(math.isfinite(line.ratio) and line.ratio > 0 for line in lines), lines
    assert benchmarks.plain(lines, judged=True).count("\n") == len(lines)


def test_there_is_no_benchmark_without_a_test(benchmarks: Any) -> None:
    assert set(benchmarks.BENCHMARKS) == {"bootstrap", "large", "many", "startup"}


def test_an_audit_in_a_fresh_process_says_where_its_time_went(
    benchmarks: Any, tmp_path: Path
) -> None:
    timed = sys.modules["benchmarks.timed_audit"]
    tables = sys.modules["benchmarks.tables"]
    table = tables.parquet(tmp_path, tables.Shape(2_000, 5, 2))
    found = timed.in_fresh_process(str(table), str(tmp_path / "audit"), 20)
    stages = ("load", "align", "count", "compare", "tables", "report")
    assert sum(found[stage] for stage in stages) == pytest.approx(found["total"])
    assert all(found[stage] > 0 for stage in stages)
    assert (tmp_path / "audit" / "report.html").exists()


def test_tables_are_the_same_every_time(benchmarks: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    tables = sys.modules["benchmarks.tables"]
    shape = tables.Shape(3_000, 7, 3, text_ids=True)
    (tmp_path / "again").mkdir()
    first, again = (pq.read_table(tables.parquet(f, shape)) for f in (tmp_path, tmp_path / "again"))
    assert first.equals(again)
    assert len(set(first["example_id"].to_pylist())) == 3_000
    assert set(first["label"].to_pylist()) == {0, 1, 2}
    label, answer = (first[column].to_pylist() for column in ("label", "pred_dense"))
    wrong = sum(a != b for a, b in zip(label, answer, strict=True))
    assert 90 <= wrong <= 210  # 5 % of 3,000 are 150, standard deviation 12


def test_long_and_wide_tables_hold_the_same_answers(benchmarks: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    tables = sys.modules["benchmarks.tables"]
    wide, long = (
        pq.read_table(tables.parquet(tmp_path, tables.Shape(1_000, 4, 3, long=long))).to_pandas()
        for long in (False, True)
    )
    for name in ("dense", "int8"):
        rows = long[long["variant"] == name].set_index("example_id")["prediction"].sort_index()
        assert rows.tolist() == wide.set_index("example_id")[f"pred_{name}"].sort_index().tolist()


def test_the_timed_replicates_are_those_of_the_metrics(benchmarks: Any, tmp_path: Path) -> None:
    import pandas as pd

    tables = sys.modules["benchmarks.tables"]
    bootstrap = benchmarks.bootstrap
    table = pd.read_parquet(tables.parquet(tmp_path, tables.Shape(4_000, 2, 2)))
    drawn = bootstrap.replicates(bootstrap._cube(table), 500)
    assert drawn.shape == (5, 500, 2, 3)  # metrics, replicates, models, everyone and two groups
    right = table["label"] == table["pred_int8"]
    wanted = [right.mean(), *right.groupby(table["grp"]).mean().sort_index()]
    # A mean of 500 replicates has a standard error of about .006 / sqrt(500) = .0003.
    assert drawn[0, :, 1].mean(axis=0) == pytest.approx(wanted, abs=0.0015)


def test_the_page_names_versions_targets_and_verdicts(benchmarks: Any) -> None:
    line = benchmarks.Line("replicates", 2.0, "peer", 300.0, target=100.0, faster=True)
    late = benchmarks.Line("start", 0.4, "limit", 0.3, target=1.0)
    page = benchmarks.page({"bootstrap": [line, late]}, benchmarks.Settings(), 1.5)
    assert "| replicates | 2.00 s | peer: 300 s | 150× | ≥ 100× | pass |" in page
    assert "| start | 0.400 s | limit: 0.300 s | 1.33× | ≤ 1.00× | fail |" in page
    assert "load 1.5" in page
    assert "duckdb" in page
    small = benchmarks.page({"bootstrap": [line]}, benchmarks.Settings(rows=2_000), 1.5)
    assert "| ≥ 100× |  |" in small
    assert "reduced" in small
