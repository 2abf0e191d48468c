"""Inputs that once ended with an error of ours (exit 70): each is read now, or refused."""

from __future__ import annotations

import gzip
import os
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairweight as fw
from fairweight import cli
from fairweight.base import memory
from fairweight.errors import InputError
from fairweight.specs.policy import read_policy
from fairweight.tables import connection
from fairweight.tables.align import align
from fairweight.tables.sources import open_source
from fairweight.tables.spec import TableSpec, sources_of

from .mutations import CASES, fuzz, mutated, mutated_bytes

AUDIT = ("--n-boot", "20", "--quiet", "--out", "out")
Run = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; no page is drawn, which takes longer than to read an odd table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fairweight.report.html.render", lambda *_: "<!doctype html>")
    return tmp_path


@pytest.fixture
def refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command that must end with 2 and one sentence, which is returned."""

    def run(*words: str) -> str:
        assert cli.run(list(words)) == 2
        said = capsys.readouterr().err
        assert said.startswith("fairweight: ")
        assert said.count("\n") == 1
        return said

    return run


def wide(n: int = 40) -> pd.DataFrame:
    """Two models on n examples: dense errs on every tenth, int8 on every fifth."""
    number = np.arange(n)
    label = number % 2
    return pd.DataFrame(
        {
            "example_id": number,
            "label": label,
            "sex": np.where(number % 4 < 2, "f", "m"),
            "dense_pred": np.where(number % 10 == 0, 1 - label, label),
            "int8_pred": np.where(number % 5 == 0, 1 - label, label),
        }
    )


def long() -> pd.DataFrame:
    frame = wide()
    sides = [
        frame[["example_id", "label", "sex"]].assign(
            variant=v, seed=0, w=1.0, prediction=frame[f"{v}_pred"]
        )
        for v in ("dense", "int8")
    ]
    return pd.concat(sides, ignore_index=True)


# --- text files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end", ["\r", *(pytest.param(end, marks=pytest.mark.slow) for end in ("\r\n", "\n"))]
)
def test_lines_may_end_in_any_way(folder: Path, end: str) -> None:
    text = wide().to_csv(index=False, lineterminator=end)
    (folder / "a.csv").write_bytes(text.encode())
    assert cli.run(["audit", "a.csv", *AUDIT]) == 0
    (row,) = fw.load("out").overall.query("metric == 'accuracy'").to_dict("records")
    assert row["n"] == 40
    assert row["shift"] == pytest.approx(-4 / 40)  # 8 errors against 4


def test_names_that_differ_in_case_are_seen_behind_any_line_end(folder: Path, refused: Run) -> None:
    (folder / "a.csv").write_bytes(b"sex,Sex\r1,2\r")
    assert "'sex' and 'Sex'" in refused("audit", "a.csv", *AUDIT)


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)  # the same in every process that collects these tests


@pytest.mark.parametrize(
    ("name", "content", "parts"),
    [
        (
            "a.csv",
            packed(b"a,b\n1,2\n"),
            ["compressed (.gz)", "rename it to 'a.csv.gz'"],
        ),
        ("a.parquet", packed(b"x" * 99), ["compressed (.gz)"]),
        ("a.csv.gz", b"a,b\n1,2\n", ["not compressed", "rename it to 'a.csv'"]),
        ("a.csv", b"PK\x03\x04" + b"x" * 99, ["zip archive", "unpack it"]),
        ("a.csv", b"\xfd7zXZ\0" + b"x" * 99, ["xz", "unpack it"]),
        ("a.csv", b"label," + b"x" * 140_000 + b"\n1,2\n", ["131,072", "shorten it"]),
        ("a.csv", b'label,"' + b"x\n" * 140_000, ["131,072", "quotation mark"]),
    ],
)
def test_packing_and_long_names(
    folder: Path, refused: Run, name: str, content: bytes, parts: list[str]
) -> None:
    (folder / name).write_bytes(content)
    said = refused("audit", name, *AUDIT)
    assert all(part in said for part in parts), said


def test_a_csv_may_begin_like_a_packed_file(folder: Path) -> None:
    wide().rename(columns={"example_id": "BZh"}).to_csv("a.csv", index=False)
    assert cli.run(["audit", "a.csv", "--id", "BZh", *AUDIT]) == 0


# --- many columns ------------------------------------------------------------------------------


def many_columns(number: int) -> None:
    frame = wide(8)
    further = pd.DataFrame({f"c{i}": np.arange(8) * i % 7 for i in range(number)})
    further[[f"t{i}" for i in range(number // 4)]] = "x"
    pd.concat([frame, further], axis=1).to_csv("a.csv", index=False)


def test_time_grows_with_columns_and_not_with_their_square(folder: Path) -> None:
    """CPU time of four times the columns; a quadratic check would take sixteen times as long."""
    taken = []
    for number in (300, 1200):
        many_columns(number)
        before = time.process_time()
        with align(TableSpec(sources_of("a.csv"), groups="sex")):
            taken.append(time.process_time() - before)
    assert taken[1] < 9 * taken[0] + 0.5


def test_too_many_columns_that_could_be_groups(folder: Path, refused: Run) -> None:
    many_columns(1200)
    said = refused("audit", "a.csv", *AUDIT)
    assert "1,501 columns could be groups" in said
    assert "--groups" in said
    assert cli.run(["audit", "a.csv", "--groups", "sex,c3", *AUDIT]) == 0


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_more_columns_than_are_read(folder: Path, refused: Run, suffix: str) -> None:
    """100,000 columns took minutes before they were refused for want of memory."""
    names = ["example_id", "label", "dense_pred", "int8_pred", *(f"c{i}" for i in range(100_000))]
    if suffix == "csv":
        Path("a.csv").write_text(",".join(names) + "\n1\n")
    else:
        pq.write_table(pa.table([pa.array([1])] * len(names), names=names), "a.parquet")
    before = time.process_time()
    said = refused("audit", f"a.{suffix}", *AUDIT)
    # Under 3 on a quiet machine, 4.5 on a busy one; DuckDB takes 40 to find so many.
    assert time.process_time() - before < 12
    assert "100,004 columns, and at most 30,000 are read" in said
    assert "save those that the audit needs" in said


@pytest.mark.parametrize("number", [3, 200])
def test_types_of_many_columns_are_those_of_few(folder: Path, number: int) -> None:
    """Both ways of asking find the same columns of numbers."""
    values = {"whole": "7", "zero": "007", "fraction": "1.5", "text": "a", "gap": "", "nan": "nan"}
    names = [f"{kind}{i}" for kind in values for i in range(number)]
    cells = [values[kind] for kind in values for _ in range(number)]
    Path("a.csv").write_text(",".join(names) + "\n" + ",".join(cells) + "\n")
    workspace = connection.Workspace()
    source = open_source(workspace, "a.csv")
    workspace.close()
    kinds = {name: (source.columns[name], source.kind(name)) for name in names}
    for i in range(number):
        assert kinds[f"whole{i}"] == ("BIGINT", "BIGINT")
        assert kinds[f"zero{i}"] == ("VARCHAR", "VARCHAR")
        assert kinds[f"fraction{i}"] == ("VARCHAR", "DOUBLE")
        assert kinds[f"text{i}"] == ("VARCHAR", "VARCHAR")


def many_variants(number: int) -> pd.DataFrame:
    frame, rng = wide(60).drop(columns="int8_pred"), np.random.default_rng(0)
    wrong = rng.random((number, len(frame))) < 0.2
    further = {
        f"v{i}_pred": np.where(wrong[i], 1 - frame["label"], frame["label"]) for i in range(number)
    }
    return pd.concat([frame, pd.DataFrame(further)], axis=1)


@pytest.mark.slow
def test_time_grows_with_variants_and_not_with_their_square(folder: Path) -> None:
    """CPU time of the audit and its report; three times the variants, nine if it were quadratic."""
    taken = []
    for number in (20, 60):
        before = time.process_time()
        fw.audit_table(many_variants(number), groups="sex", n_boot=20).save(f"out{number}")
        taken.append(time.process_time() - before)
    assert taken[1] < 4.5 * taken[0]


@pytest.mark.slow
def test_the_wheel_alone_runs_the_quick_demo(folder: Path) -> None:
    """Outside of the repository, with nothing but what the wheel asks for."""
    root = Path(__file__).parents[2]
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def done(*words: str | Path) -> None:
        ended = subprocess.run(
            [str(w) for w in words], cwd=folder, env=clean, capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stderr[-2000:]

    pip = ("-m", "pip", "--disable-pip-version-check")
    done(sys.executable, "-m", "venv", "clean")
    python = folder / "clean" / "bin" / "python"
    done(python, *pip, "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", root)
    (wheel,) = (folder / "dist").glob("fairweight-*.whl")
    done(python, *pip, "install", "--quiet", wheel)
    for absent in ("sklearn", "torch", "statsmodels"):
        done(python, "-c", f"import importlib.util as u; assert u.find_spec('{absent}') is None")
    done(folder / "clean" / "bin" / "fairweight", "demo", "--quick", "--out", "demo")
    assert fw.load(folder / "demo").result.n_examples == 899


# --- types -------------------------------------------------------------------------------------

MOMENT = pa.timestamp("us", tz="UTC")
NESTED = {
    "list": lambda values: pa.array([[v] for v in values]),
    "struct": lambda values: pa.array([{"a": v} for v in values]),
    "map": lambda values: pa.array(
        [[("k", v)] for v in values], pa.map_(pa.string(), pa.array(values).type)
    ),
}


def with_column(name: str, array: pa.Array) -> None:
    table = pa.Table.from_pandas(long(), preserve_index=False)
    place = table.column_names.index(name)
    pq.write_table(table.set_column(place, name, array), "a.parquet")


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("column", ["label", "prediction", "example_id", "variant", "seed", "sex"])
def test_nested_values(refused: Run, kind: str, column: str) -> None:
    with_column(column, NESTED[kind](long()[column].tolist()))
    said = refused("audit", "a.parquet", "--groups", "sex", *AUDIT)
    assert f"'{column}'" in said
    assert "one value" in said


@pytest.mark.parametrize("column", ["label", "variant", "seed"])
def test_moments_with_a_zone(refused: Run, column: str) -> None:
    with_column(column, pa.array([0] * 80, pa.int64()).cast(pa.timestamp("us")).cast(MOMENT))
    refused("audit", "a.parquet", "--groups", "sex", *AUDIT)


def test_labels_may_be_moments_with_a_zone(folder: Path) -> None:
    frame = long()
    for column in ("label", "prediction"):
        frame[column] = pd.Timestamp("2026-01-01", tz="UTC") + pd.to_timedelta(frame[column], "D")
    frame.to_parquet("a.parquet")
    assert cli.run(["audit", "a.parquet", "--groups", "sex", *AUDIT]) == 0


def test_a_group_column_without_any_value(folder: Path) -> None:
    with_column("sex", pa.nulls(80))
    assert cli.run(["audit", "a.parquet", "--groups", "sex", *AUDIT]) == 0


@pytest.mark.parametrize("weight", [1e-25, 1e25, pytest.param(1e19, marks=pytest.mark.slow)])
def test_large_and_small_weights_change_nothing(folder: Path, weight: float) -> None:
    frame = long()
    frame.assign(w=frame["w"] * weight).to_parquet("a.parquet")
    assert cli.run(["audit", "a.parquet", "--weight", "w", "--groups", "sex", *AUDIT]) == 0
    (row,) = fw.load("out").overall.query("metric == 'accuracy'").to_dict("records")
    assert row["shift"] == pytest.approx(-4 / 40)


# --- damage ------------------------------------------------------------------------------------


def test_damaged_parquet(folder: Path) -> None:
    """Rows are read when they are counted, long after the file was opened."""
    wide(300).to_parquet("whole.parquet")
    content = (folder / "whole.parquet").read_bytes()

    def attempt(damaged: bytes) -> None:
        Path("a.parquet").write_bytes(damaged)
        assert cli.run(["count", "a.parquet", "--out", "cube.parquet", "--overwrite"]) in (0, 2)

    fuzz(attempt, lambda rng: mutated_bytes(content, rng), 60)


def test_damaged_pages_are_a_sentence(refused: Run, folder: Path) -> None:
    frame = pd.concat([wide(300)] * 3, ignore_index=True)
    frame["example_id"] = random.Random(0).sample(range(10**9), len(frame))
    pq.write_table(pa.Table.from_pandas(frame), "a.parquet", compression="snappy")
    content = bytearray((folder / "a.parquet").read_bytes())
    content[200:900] = os.urandom(700)
    (folder / "a.parquet").write_bytes(content)
    assert "'a.parquet' cannot be read" in refused("audit", "a.parquet", *AUDIT)


# --- options, tasks ----------------------------------------------------------------------------


def test_the_seed_of_exemplars(refused: Run) -> None:
    wide().to_csv("a.csv", index=False)
    said = refused("exemplars", "a.csv", "--random-state", "-1", "--out", "out")
    assert "-1" in said
    assert "at least 0" in said


def test_tasks_without_groups_are_explained(folder: Path) -> None:
    frame = wide().drop(columns="sex")
    pd.concat([frame.assign(task="a"), frame.assign(task="b")]).to_csv("a.csv", index=False)
    assert cli.run(["explain", "a.csv", "--task", "task", *AUDIT]) == 0


# --- streams and memory ------------------------------------------------------------------------


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = f'fairweight() {{ {sys.executable} -m fairweight "$@"; }}; set -o pipefail; {line}'
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize(
    "line",
    ["fairweight metrics | head -1", "fairweight metrics >&-", "fairweight metrics >&- 2>&-",
     "fairweight --version <&- >&-", "fairweight --help | head -1"],
)  # fmt: skip
def test_nobody_listens(folder: Path, line: str) -> None:
    done = shell(line, folder)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_stream_is_no_place_for_files(folder: Path) -> None:
    """A file that is opened while stdout is closed must not receive what is printed."""
    wide().to_csv(folder / "a.csv", index=False)
    done = shell("fairweight audit a.csv --n-boot 20 --out out >&-", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert fw.load(folder / "out").result.n_examples == 40


def test_a_full_disk_behind_stdout(folder: Path) -> None:
    done = shell("fairweight metrics > /dev/full", folder)
    assert done.returncode == 2
    assert "No space left" in done.stderr


def test_out_of_memory_is_a_sentence(
    refused: Run, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    wide().to_csv("a.csv", index=False)

    def nothing_left(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("fairweight.auditing.pipeline.count", nothing_left)
    said = refused("audit", "a.csv", *AUDIT)
    assert "not enough memory" in said
    assert "fewer group columns" in said
    assert "count the table in parts" in said


def test_duckdb_out_of_memory_is_a_sentence(
    refused: Run, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setattr(connection, "memory_limit_mb", lambda: 1)
    frame = wide(200_000)
    frame["example_id"] = frame["example_id"].map("example {:020d}".format)
    frame.to_csv("a.csv", index=False)
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    said = refused("audit", "a.csv", *AUDIT)
    assert "memory" in said
    assert "fewer group columns" in said


def test_the_limit_of_addresses_is_respected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Half of what is free, and under `ulimit -v` half of what may still be asked for."""
    info = tmp_path / "meminfo"
    info.write_text("MemTotal: 99 kB\nMemAvailable:    8388608 kB\n")
    monkeypatch.setattr(memory, "MEMORY_INFO", info)
    monkeypatch.setattr(memory, "GROUP_MOST", tmp_path / "none")
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    assert connection.memory_limit_mb() == 4096
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = held + 1000 * 2**20
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    found = connection.memory_limit_mb()
    assert found is not None
    assert found == pytest.approx(500, abs=60)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (held // 2, held // 2))
    assert connection.memory_limit_mb() == 64 * 10**6 // 2**20
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert connection.memory_limit_mb() == 4096


@pytest.mark.parametrize("kilobytes", [1_500_000, 3_000_000])
def test_under_a_limit_of_addresses_an_audit_ends_in_order(folder: Path, kilobytes: int) -> None:
    wide().to_csv(folder / "a.csv", index=False)
    done = shell(f"ulimit -v {kilobytes}; fairweight audit a.csv --n-boot 20 --out out", folder)
    assert done.returncode in (0, 2), done.stderr


# --- policies ----------------------------------------------------------------------------------

POLICIES = (
    {"schema": 1, "rule": [{"metric": "accuracy", "by": "group", "margin": 0.02}]},
    {
        "schema": 1,
        "min_group_size": 30,
        "require_groups": ["sex=F"],
        "rule": [
            {"metric": "recall", "by": "class", "recovery": 0.99, "classes": ["cat"]},
            {"metric": "accuracy", "by": "group", "min": 0.8, "groups": ["sex=F"]},
            {
                "metric": "balanced_accuracy_group_gap",
                "by": "grouping",
                "max": 0.1,
                "columns": ["sex"],
            },
            {"metric": "accuracy", "by": "overall", "margin": 0.1},
        ],
    },
)


@CASES
def test_mutated_policies(cases: int) -> None:
    from fairweight.auditing.gate.endpoints import demands
    from fairweight.auditing.gate.verdict import decide

    result = fw.load(Path(__file__).parents[1] / "fixtures" / "audits-0.1.0" / "pair").result

    def attempt(policy: object) -> None:
        if not isinstance(policy, dict):
            raise InputError("A TOML file is a table.")
        read = read_policy(policy)
        demands(read)
        decide(result, read, "all")

    tally = fuzz(attempt, lambda rng: mutated(rng.choice(POLICIES), rng), cases)
    assert tally["refused"] > cases / 4
    assert tally["accepted"] > cases / 200


POLICY_TEXT = b"""schema = 1
min_group_size = 30
[[rule]]
metric = "accuracy"
by = "group"
margin = 0.02
"""


@CASES
def test_damaged_policy_files(tmp_path: Path, cases: int) -> None:
    path = tmp_path / "policy.toml"

    def attempt(content: bytes) -> None:
        path.write_bytes(content)
        read_policy(path)

    tally = fuzz(attempt, lambda rng: mutated_bytes(POLICY_TEXT, rng), cases)
    assert tally["refused"]
    assert tally["accepted"]
