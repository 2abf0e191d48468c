"""Folders that version 0.1.0 wrote are read by every later version (tests/fixtures/audits-0.1.0).

The numbers follow from the script in the fixtures' README by counting.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from starlette.testclient import TestClient

import fairweight as fw
from fairweight import cli
from fairweight.errors import InputError
from fairweight.web.application import create_app
from fairweight.web.items import find_items
from fairweight.web.site import Settings

AUDITS = Path(__file__).with_name("fixtures") / "audits-0.1.0"
COMPRESSED = {"pair": "int8", "population": "pruned", "tasks-clusters": "small"}
# Of 80 examples the dense models answer 8 wrongly. int8: 20. pruned: 16. small: 14 of the hats and
# 13 of the glasses, (6 + 5) / 160 more than dense.
SHIFT = {"pair": -12 / 80, "population": -8 / 80, "tasks-clusters": -11 / 160}
every_audit = pytest.mark.parametrize("name", COMPRESSED)


def rule(margin: float) -> dict[str, Any]:
    """No group may lose more than the margin."""
    wanted = {"metric": "accuracy", "by": "group", "margin": margin}
    return {"schema": 1, "min_group_size": 20, "rule": [wanted]}


def accuracy(rows: pd.DataFrame, task: str | None = None) -> pd.DataFrame:
    """Accuracy of the models themselves, of one task or of the mean over tasks."""
    chosen = rows[(rows["metric"] == "accuracy") & (rows["scope"] == "model")]
    return chosen[chosen["task"].isna() if task is None else chosen["task"] == task]


# ---------------------------------------------------------------- in Python


@every_audit
@pytest.mark.parametrize("place", ["", "audit.json"])
def test_they_are_loaded_with_their_numbers(name: str, place: str) -> None:
    audit = fw.load(AUDITS / name / place)
    (overall,) = accuracy(audit.overall).to_dict("records")
    assert overall["variant"] == COMPRESSED[name]
    assert overall["n"] == 80
    assert overall["baseline"] == pytest.approx(72 / 80)
    assert overall["shift"] == pytest.approx(SHIFT[name])
    assert overall["ci_low"] < overall["shift"] < overall["ci_high"]


def test_groups_of_the_pair() -> None:
    audit = fw.load(AUDITS / "pair")
    shift = accuracy(audit.by_group).set_index("group")["shift"]
    # Of 32 women both models answer 8 wrongly; of 48 men int8 answers 12 wrongly, dense none.
    assert shift.to_dict() == pytest.approx({"sex=F": 0.0, "sex=M": -12 / 48})
    assert audit.worst_group_shift() == pytest.approx(-0.25)
    assert audit.by_class["class"].unique().tolist() == ["cat", "dog"]


def test_members_of_the_population() -> None:
    audit = fw.load(AUDITS / "population")
    shift = accuracy(audit.by_group).set_index("group")["shift"]
    # Member 0 loses 8 of 32 women, members 1 and 2 lose 8 of 48 men each.
    assert shift.to_dict() == pytest.approx({"sex=F": -8 / 96, "sex=M": -16 / 144})
    assert set(audit.overall["scope"].dropna()) == {"model", "method"}
    (row,) = accuracy(audit.overall).to_dict("records")
    assert (row["n_seeds_baseline"], row["n_seeds_compressed"]) == (3, 3)
    assert audit.variants is not None
    assert audit.variants["parent"].tolist() == ["dense:0", "dense:1", "dense:2"]


def test_tasks_and_clusters() -> None:
    audit = fw.load(AUDITS / "tasks-clusters")
    for task, shift in {"hat": -6 / 80, "glasses": -5 / 80}.items():
        (row,) = accuracy(audit.overall, task).to_dict("records")
        assert row["shift"] == pytest.approx(shift)
        assert row["n_clusters"] == 40


@every_audit
def test_they_are_held_against_a_policy(name: str) -> None:
    audit = fw.load(AUDITS / name)
    assert audit.gate(rule(0.9)).passed
    assert not audit.gate(rule(0.0)).passed


@every_audit
def test_their_tables_are_there(name: str) -> None:
    rows = pd.read_parquet(AUDITS / name / "tables" / "results.parquet")
    (row,) = accuracy(rows[rows["by"] == "overall"]).to_dict("records")
    assert row["shift"] == pytest.approx(SHIFT[name])


def test_what_is_no_audit_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no audit\.json; give the folder"):
        fw.load(tmp_path)
    with pytest.raises(InputError, match=r"'gone' does not exist; fairweight audit FILE"):
        fw.load("gone")
    (tmp_path / "audit.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"is not UTF-8 text; give an audit\.json"):
        fw.load(tmp_path)


# ---------------------------------------------------------------- on the command line


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run a command: its exit code and what it printed."""

    def called(*words: Any) -> tuple[int, str]:
        given = [str(word) for word in words]
        monkeypatch.setattr(sys, "argv", ["fairweight", *given])
        code = cli.run(given)
        captured = capsys.readouterr()
        assert captured.err == ""
        return code, captured.out

    return called


def policy_file(folder: Path, margin: float) -> Path:
    path = folder / "policy.toml"
    lines = ('metric = "accuracy"', 'by = "group"', f"margin = {margin}")
    path.write_text("\n".join(("schema = 1", "min_group_size = 20", "[[rule]]", *lines)))
    return path


@every_audit
def test_the_gate_reads_them(run: Any, tmp_path: Path, name: str) -> None:
    code, _ = run("gate", AUDITS / name, "--policy", policy_file(tmp_path, 0.9))
    assert code == cli.DONE
    code, _ = run("gate", AUDITS / name / "audit.json", "--policy", policy_file(tmp_path, 0.0))
    assert code in (cli.FAILED, cli.CANNOT_TELL)
    if name == "pair":  # 12 of 48 men lost, none gained: more than 2 points beyond doubt
        code, _ = run("gate", AUDITS / name, "--policy", policy_file(tmp_path, 0.02))
        assert code == cli.FAILED


@every_audit
def test_reports_are_written_from_them(run: Any, tmp_path: Path, name: str) -> None:
    code, told = run("report", AUDITS / name, "--format", "md")
    assert code == cli.DONE
    assert COMPRESSED[name] in told
    assert f"−{-100 * SHIFT[name]:.1f}" in told  # in points, with a minus sign
    page = tmp_path / "report.html"
    assert run("report", AUDITS / name, "--out", page) == (cli.DONE, "")
    assert COMPRESSED[name] in page.read_text(encoding="utf-8")
    for form in ("card", "json", "junit"):
        code, told = run("report", AUDITS / name, "--format", form)
        assert code == cli.DONE
        assert COMPRESSED[name] in told


# ---------------------------------------------------------------- in the browser


@pytest.fixture
def viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("FAIRWEIGHT_CACHE", str(tmp_path / "cache"))
    app = create_app(find_items(AUDITS), settings=Settings(annotations=tmp_path / "said.sqlite"))
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        yield client


def test_the_viewer_shows_them(viewer: TestClient) -> None:
    listed = viewer.get("/").text
    for name, variant in COMPRESSED.items():
        assert f"/audit/{name}" in listed
        assert viewer.get(f"/audit/{name}").status_code == 200
        answer = viewer.get(f"/audit/{name}/variant.json", params={"variant": variant})
        assert answer.status_code == 200
        held = numbers(answer.json())
        assert any(number == pytest.approx(SHIFT[name]) for number in held)


def numbers(node: Any) -> list[float]:
    """Every number of a JSON document."""
    if isinstance(node, dict | list):
        inner = node.values() if isinstance(node, dict) else node
        return [number for part in inner for number in numbers(part)]
    return [node] if isinstance(node, int | float) else []


def test_reading_them_changes_nothing() -> None:
    """What was looked at is still of version 0.1.0."""
    for name in COMPRESSED:
        held = json.loads((AUDITS / name / "audit.json").read_text(encoding="utf-8"))
        assert (held["schema"], held["version"]) == (1, "0.1.0")
        assert sorted(p.name for p in (AUDITS / name).iterdir()) == ["audit.json", "tables"]
