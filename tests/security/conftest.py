"""What every attack is watched by."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .mutations import CANARY


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module that can be imported; the test fails if somebody did. Yields the file it leaves."""
    folder = tmp_path / "importable"
    folder.mkdir()
    sung = tmp_path / "sung"
    code = f"from pathlib import Path\nPath({str(sung)!r}).touch()\n"
    code += "def run(*_, **__):\n    return Path\n"
    (folder / f"{CANARY}.py").write_text(code)
    monkeypatch.syspath_prepend(str(folder))
    yield sung
    assert CANARY not in sys.modules
    assert not sung.exists()
