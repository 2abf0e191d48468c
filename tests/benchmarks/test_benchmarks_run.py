"""The benchmarks run and return numbers; how fast anything is, no test asserts."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest


def lines_of(benchmarks: Any, name: str) -> list[Any]:
    settings = benchmarks.Settings(rows=2_000, rounds=1, n_boot=20)
    lines: list[Any] = benchmarks.BENCHMARKS[name].run(settings)
    return lines


def smaller(shape: Callable[..., Any]) -> Callable[..., Any]:
    """The same kind of table with few members, variants and classes."""

    def made(*given: Any, **options: Any) -> Any:
        full = shape(*given, **options)
        sides = tuple(replace(side, members=min(side.members, 3)) for side in full.sides[:3])
        return replace(full, sides=sides, classes=min(full.classes, 5))

    return made


QUICK = ("bootstrap", "exemplars")
SLOW = (
    "choose", "imagenet-x", "large", "many", "overrides", "populations", "report", "slices",
    "startup", "tasks", "view-readers", "votes",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_every_benchmark_returns_finite_ratios(
    name: str, benchmarks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = benchmarks.BENCHMARKS[name]
    if hasattr(module, "in_fresh_process"):
        # Starting processes takes most of the time of a tiny run, and one of them is tested below.
        timed = sys.modules["benchmarks.timed_audit"]
        monkeypatch.setattr(module, "in_fresh_process", timed.audited)
    if name == "populations":
        # Its shapes are tested below; here three members stand for thirty, two methods for ten.
        for shape in ("thirty_and_thirty", "one_teacher_ten_methods"):
            monkeypatch.setattr(module, shape, smaller(getattr(module, shape)))
    if name in ("votes", "view-readers"):
        monkeypatch.setattr(sys.modules["benchmarks.votes"], "MEMBERS", 3)
    lines = lines_of(benchmarks, name)
    if isinstance(lines, str):
        pytest.skip(lines)
    assert len(lines) >= 4
    assert all(math.isfinite(line.ratio) and line.ratio > 0 for line in lines), lines
    assert benchmarks.plain(lines, judged=True).count("\n") == len(lines)


def test_there_is_no_benchmark_without_a_test(benchmarks: Any) -> None:
    tested = {*QUICK, *SLOW, "runs", "similarity"}
    assert {name for name in benchmarks.BENCHMARKS if not name.startswith("lab-")} == tested


@pytest.mark.slow
def test_the_share_of_the_runner_is_measured(
    benchmarks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Starting a cluster takes longer than all the rest.
    monkeypatch.setattr(benchmarks.BENCHMARKS["runs"], "find_spec", lambda name: None)
    lines = lines_of(benchmarks, "runs")
    assert [line.target for line in lines] == [1.02, 1.02, 1.8, None]
    assert all(math.isfinite(line.ratio) and line.ratio > 0 for line in lines), lines


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


def test_populations_agree_mostly_and_descend_from_the_dense_members(
    benchmarks: Any, tmp_path: Path
) -> None:
    import pandas as pd

    made = sys.modules["benchmarks.population_tables"]
    shape = made.thirty_and_thirty(20_000, scores=True)
    table, models = (pd.read_parquet(path) for path in made.parquet(tmp_path, shape))
    assert len([c for c in table if str(c).startswith("prediction:")]) == 60
    assert len([c for c in table if str(c).startswith("score:")]) == 60
    wrong = {c: table[f"prediction:{c}"] != table["label"] for c in ("dense:0", "pruned-90:0")}
    assert 0.06 < wrong["dense:0"].mean() < 0.10  # 8 % asked for
    assert wrong["pruned-90:0"].mean() > wrong["dense:0"].mean()

    def apart(one: str, other: str) -> float:
        return float((table[f"prediction:{one}"] != table[f"prediction:{other}"]).mean())

    # Two members err apart on fewer examples than if their errors were independent: 2 × 8 % × 92 %.
    assert apart("dense:0", "dense:1") < 0.12
    # A child answers more as its parent does than as the parents of others do.
    assert apart("pruned-90:0", "dense:0") < apart("pruned-90:0", "dense:1")
    children = models[models["variant"] == "pruned-90"]
    assert children["parent"].tolist() == [f"dense:{i}" for i in range(30)]
    assert models[models["variant"] == "dense"]["parent"].isna().all()


def test_a_published_shape_has_one_teacher(benchmarks: Any, tmp_path: Path) -> None:
    import pandas as pd

    made = sys.modules["benchmarks.population_tables"]
    table, models = (
        pd.read_parquet(path)
        for path in made.parquet(tmp_path, made.one_teacher_ten_methods(2_000))
    )
    assert models["variant"].value_counts().tolist() == [4] * 10 + [1]
    assert (table["label"].value_counts() == 20).all()
    assert table["label"].nunique() == 100


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
