"""Tables as the papers print them, which docs/errata.md holds."""

from __future__ import annotations

import contextlib
import importlib.util
import io
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="session")
def printed(golden: Path) -> dict[str, Any]:
    """Names that the blocks of the errata page make: the papers' tables are typed only there."""
    spec = importlib.util.spec_from_file_location("errata", DOCS / "generate_errata.py")
    assert spec is not None
    assert spec.loader is not None
    errata = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(errata)
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setenv("FAIRWEIGHT_GOLDEN", str(golden))
        for block in errata.BLOCK.finditer(errata.PAGE.read_text(encoding="utf-8")):
            exec(compile(block[1], "<errata>", "exec"), names)
    return names
