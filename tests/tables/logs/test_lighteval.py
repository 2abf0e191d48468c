"""Logs of lighteval: folders that lighteval 0.13.0 wrote over a task of our own.

tests/fixtures/logs/lighteval has two runs of its dummy model on 40 questions of a local file
(`Pipeline` with `save_details`); nothing in them was changed.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.compute as pc
import pytest

from fairweight.errors import InputError
from fairweight.tables.align import align
from fairweight.tables.logs import LogRequest, audit_of, read_log
from fairweight.tables.spec import TableSpec

RUNS = Path(__file__).parents[2] / "fixtures" / "logs" / "lighteval"


def test_what_lighteval_reported_is_what_is_read() -> None:
    """`acc` of the two runs as its results say, by example, with the position of the answer."""
    logs = {name: read_log(RUNS / name) for name in ("dense", "int8")}
    made = audit_of(logs)
    assert (made.outcome, made.better, made.groups) == ("acc", "higher", ("gold", "subject"))
    for name, log in logs.items():
        (task,) = log.tasks.values()
        assert task.name == "quiz|0"
        assert task.positions
        assert set(task.reported) == {"acc"}
        mean = pc.mean(made.tables[name]["acc"]).as_py()
        assert mean == pytest.approx(task.reported["acc"], abs=1e-12)
        assert len(log.files) == 2


def test_a_pair_is_audited_without_an_option() -> None:
    sources = {name: str(RUNS / name) for name in ("dense", "int8")}
    with align(TableSpec(sources)) as aligned:
        assert (aligned.n_examples, aligned.group_columns) == (40, ("gold", "subject"))


def test_cut_files_and_several_models_are_refused(tmp_path: Path) -> None:
    held = tmp_path / "run"
    shutil.copytree(RUNS / "dense", held)
    (file,) = held.glob("details/**/*.parquet")
    for request, said in (
        (LogRequest(filter="strict"), "no filters"),
        (LogRequest(tasks=("speech",)), "has no task 'speech'; it has: quiz"),
    ):
        with pytest.raises(InputError, match=said):
            read_log(held, request)
    other = held / "details" / "other" / file.parent.name
    other.mkdir(parents=True)
    shutil.copy(file, other)
    with pytest.raises(InputError, match="several models"):
        read_log(held)
    shutil.rmtree(other.parent)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match="no whole Parquet file"):
        read_log(held)
