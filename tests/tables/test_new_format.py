"""A table format is added by registering it: ORC, which the product itself does not read.

Chosen before formats became a registry. Adding it to the product would touch one source file,
`tables/sources.py` (CONTRIBUTING.md says how).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import fairweight as fw
from fairweight import cli
from fairweight.errors import InputError
from fairweight.tables.sources import FORMATS, TableFormat

orc = pytest.importorskip("pyarrow.orc")

COLUMNS = {
    "example_id": [f"{i:03d}" for i in range(40)],
    "label": ["a", "b"] * 20,
    "pred_dense": ["a", "b"] * 20,
    "pred_int8": ["a", "b"] * 19 + ["b", "b"],
    "site": ["x"] * 20 + ["y"] * 20,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    orc.write_table(pa.table(COLUMNS), tmp_path / "predictions.orc")
    return tmp_path / "predictions.orc"


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    found = TableFormat("ORC", (".orc",), rb"ORC", read=orc.read_table)
    monkeypatch.setitem(FORMATS, found.name, found)


def test_without_it_the_file_is_refused(path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown kind; fairweight reads Parquet \(.parq"):
        fw.audit_table(path, n_boot=20)


def test_python_reads_it(path: Path, registered: None) -> None:
    audit = fw.audit_table(path, n_boot=20)
    rows = audit.by_group.query("metric == 'accuracy'")
    assert rows[["group", "shift"]].values.tolist() == [["site=x", 0.0], ["site=y", -0.05]]
    assert audit.results.equals(fw.audit_table(COLUMNS, n_boot=20).results)


def test_it_is_known_by_its_beginning_too(path: Path, registered: None) -> None:
    other = path.rename(path.with_suffix(".data"))
    assert fw.audit_table(other, n_boot=20).result.n_examples == 40


def test_the_command_line_reads_it(path: Path, registered: None) -> None:
    out = path.parent / "out"
    assert cli.run(["audit", str(path), "--n-boot", "20", "-q", "--out", str(out)]) == cli.DONE
    assert fw.load(out).result.provenance.inputs[0]["rows"] == 40


def test_a_broken_file_is_bad_input(
    path: Path, registered: None, capsys: pytest.CaptureFixture[str]
) -> None:
    path.write_bytes(path.read_bytes()[:100])
    assert cli.run(["audit", str(path), "-q"]) == cli.BAD_INPUT
    assert "is not a complete ORC file" in capsys.readouterr().err
