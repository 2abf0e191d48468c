"""Settings of all tests that use torch."""

from __future__ import annotations

import importlib.util

import pytest

collect_ignore_glob: list[str] = []

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob.append("*")  # the lab is an extra: without it there is nothing to test
else:
    import torch

    # Work is spread over processes; threads inside each of them would only get in the way.
    torch.set_num_threads(1)


@pytest.fixture(scope="module", autouse=True)
def _exported_once(exported_once: None) -> None:
    """For all tests of the lab (tests/exports.py)."""
