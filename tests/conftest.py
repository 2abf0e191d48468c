"""Fixtures and settings that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.chromium"]

ROOT = Path(__file__).resolve().parents[1]

# The same examples on every machine and every run: a red build is about the code, not about luck.
# `FAIRWEIGHT_HYPOTHESIS=explore make test` looks for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("FAIRWEIGHT_HYPOTHESIS", "repeatable"))


def _folder(variable: str, default: Path) -> Path:
    folder = Path(os.environ.get(variable, default))
    if not folder.is_dir():
        pytest.skip(f"no folder {folder}: set {variable} to run this test")
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets, which are not part of the repository."""
    return _folder("FAIRWEIGHT_DATA", ROOT.parent / "shared" / "data")


@pytest.fixture(scope="session")
def golden() -> Path:
    """The folder of numbers that were published with the papers."""
    return _folder("FAIRWEIGHT_GOLDEN", ROOT.parent / "shared" / "golden")
