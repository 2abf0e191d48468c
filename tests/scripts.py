"""Scripts of `docs` and `benchmarks`, which are no packages, as modules."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


def loaded(path: str) -> ModuleType:
    """The script at a path below the project's root; it may import what stands beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str((ROOT / path).parent))
        return importlib.import_module(Path(path).stem)
