"""Tables as the papers print them, which docs/errata.md holds."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from tests.scripts import loaded

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="session")
def printed(golden: Path) -> dict[str, Any]:
    """Names that the blocks of the errata page make: the papers' tables are typed only there."""
    errata = loaded("docs/generate_errata.py")
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setenv("FAIRWEIGHT_GOLDEN", str(golden))
        for block in errata.BLOCK.finditer(errata.PAGE.read_text(encoding="utf-8")):
            exec(compile(block[1], "<errata>", "exec"), names)
    return names
