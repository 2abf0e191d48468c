"""Slow tests go on where they were stopped, and only on the same code (tests/slow.py)."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from . import slow


def test_what_passed_on_this_code_is_not_run_again(tmp_path: Path) -> None:
    passed = slow.Outcome("tests/a.py", "code", 0, {"passed": 3}, 1.0, 2.0)
    others = [replace(passed, file="tests/b.py", exit=1), replace(passed, code="older")]
    lines = [json.dumps(asdict(one)) for one in (passed, *others)]
    (tmp_path / "outcomes.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert list(slow.earlier(tmp_path, "code")) == [passed]
    assert list(slow.earlier(tmp_path / "empty", "code")) == []


def test_the_code_is_all_that_the_tests_run_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "README.md").write_text("a", encoding="utf-8")
    (tmp_path / "src" / "m.py").write_text("a = 1", encoding="utf-8")
    monkeypatch.setattr(slow, "ROOT", tmp_path)
    first = slow.code()
    (tmp_path / "README.md").write_text("b", encoding="utf-8")
    assert slow.code() == first
    (tmp_path / "tests" / "test_m.py").write_text("", encoding="utf-8")
    assert slow.code() != first
