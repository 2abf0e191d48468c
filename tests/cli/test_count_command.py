"""`fairweight count`, and audits of cubes: the same numbers without the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from .conftest import FEW, Run, document, numbers, process, same, value, wide_frame

pytestmark = pytest.mark.usefixtures("few_metrics", "no_page")

GROUPS = ("--groups", "sex,age,sex*age")


def table(name: str = "preds.parquet") -> str:
    wide_frame().drop(columns=["score_dense", "score_int8"]).to_parquet(name)
    return name


def by_cubes(run: Run, *flags: Any) -> None:
    """Count three parts of the table, and audit their cubes."""
    whole = pd.read_parquet(table())
    for third, part in whole.groupby(whole["person"] % 3):
        part.to_parquet(f"part-{third}.parquet")
        words = ("count", f"part-{third}.parquet", *GROUPS, *flags)
        run(*words, "--out", f"cube-{third}.parquet", "--quiet").done()
    run("audit", "cube-*.parquet", *FEW, "--out", "by-cube").done()


@pytest.mark.parametrize(
    "flags",
    [
        ("--cluster", "person"),
        pytest.param((), marks=pytest.mark.slow),
        pytest.param(("--weight", "w"), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_cubes_give_the_numbers_of_the_table(run: Run, no_page: None, flags: Any) -> None:
    by_cubes(run, *flags)
    run("audit", "preds.parquet", *GROUPS, *flags, *FEW, "--out", "direct").done()
    same(numbers("by-cube"), numbers("direct"))
    assert document("direct")["n_examples"] == document("by-cube")["n_examples"] == 240


def test_a_list_of_cubes_is_the_glob_of_them(run: Run, no_page: None) -> None:
    by_cubes(run)
    files = [f"cube-{third}.parquet" for third in (2, 0, 1)]
    run("audit", *files, *FEW, "--out", "listed").done()
    assert numbers("listed") == numbers("by-cube")
    names = [given["name"] for given in document("listed")["provenance"]["inputs"]]
    assert names == files


def test_parts_that_are_refused_leave_nothing(run: Run) -> None:
    frame = pd.read_parquet(table())
    frame.assign(times=[None, *[1.0] * (len(frame) - 1)]).to_parquet("preds.parquet")
    words = ("--groups", "sex", "--parts", "2", "--workers", "1", "--out", "cube.parquet")
    told = run("count", "preds.parquet", "--count", "times", *words).refused()
    assert "1 values are missing" in told or "1 value is missing" in told
    assert [path.name for path in Path().iterdir()] == ["preds.parquet"]


def test_two_columns_of_one_name_in_parts(run: Run) -> None:
    held = pq.read_table(table())
    pq.write_table(held.append_column("label", held["label"]), "preds.parquet")
    words = ("--groups", "sex", "--parts", "2", "--workers", "1", "--out", "cube.parquet")
    assert "two columns named 'label'" in run("count", "preds.parquet", *words).refused()


def test_what_count_says_and_writes(run: Run) -> None:
    told = run("count", table(), "--groups", "sex", "--out", "new/cube.parquet").done().out
    cube = pq.read_table("new/cube.parquet")
    assert told == f"240 examples in {cube.num_rows} cells: new/cube.parquet\n"
    assert cube.column_names == ["group:sex", "label", "prediction:0", "prediction:1", "count"]
    assert sum(cube.column("count").to_pylist()) == 240
    assert cube.num_rows < 20


def test_a_cube_holds_no_example(run: Run) -> None:
    wide = wide_frame()
    wide["example_id"] = [f"secret-{i}" for i in range(len(wide))]
    wide.to_parquet("preds.parquet")
    run("count", "preds.parquet", "--groups", "sex", "--out", "cube.parquet", "-q").done()
    assert b"secret-" not in Path("cube.parquet").read_bytes()


def test_a_cube_names_no_person_and_no_example(run: Run) -> None:
    """Resampling needs to tell clusters (and with tasks, examples) apart, not to name them."""
    wide = wide_frame().assign(person=lambda f: "Ann " + f["person"].astype(str))
    wide["example_id"] = [f"secret-{i}" for i in range(len(wide))]
    wide.to_parquet("preds.parquet")
    words = ("--groups", "sex", "--out", "cube.parquet", "-q")
    run("count", "preds.parquet", "--cluster", "person", *words).done()
    assert b"Ann " not in Path("cube.parquet").read_bytes()
    pd.concat([wide.assign(task="a"), wide.assign(task="b")]).to_parquet("tasks.parquet")
    run("count", "tasks.parquet", *words, "--overwrite").done()
    assert b"secret-" not in Path("cube.parquet").read_bytes()


def test_small_cells_are_left_out_on_request(run: Run, no_page: None) -> None:
    told = run("count", table(), *GROUPS, "--out", "c.parquet", "--suppress-small").done().out
    cube = pq.read_table("c.parquet")
    assert min(cube.column("count").to_pylist()) >= 10
    assert "small cells left out" in told
    run("audit", "c.parquet", *FEW).done()
    assert document()["n_examples"] == sum(cube.column("count").to_pylist())
    assert any("fewer than 10 examples were left out" in note for note in document()["notes"])


def test_the_baseline_and_the_groups_of_a_cube(run: Run, no_page: None) -> None:
    run("count", table(), *GROUPS, "--baseline", "int8", "--out", "c.parquet", "-q").done()
    run("audit", "c.parquet", *FEW).done()
    assert document()["baseline"] == "int8"
    assert document()["groupings"] == ["sex", "age", "sex*age"]
    shift = value("fairweight-audit", "shift", metric="accuracy")
    assert shift == pytest.approx(0.15)
    run("audit", "c.parquet", *FEW, "--baseline", "dense", "--groups", "sex").done()
    assert document()["groupings"] == ["sex"]
    assert value("fairweight-audit", "shift", metric="accuracy") == pytest.approx(-0.15)


def test_counting_in_a_process_of_its_own(folder: Path) -> None:
    table()
    outcome = process("count", "preds.parquet", *GROUPS, "--out", "cube.parquet", cwd=folder)
    assert (outcome.code, outcome.err) == (0, "")
    assert "240 examples" in outcome.out
