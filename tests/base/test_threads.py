"""Threads of numerical libraries."""

from __future__ import annotations

import builtins
import subprocess
import sys
from typing import Any

import pytest

from fairweight.base import threads
from fairweight.base.threads import one_thread

LOADED_LATER = """
import numpy
from fairweight.base.threads import one_thread
with one_thread():
    pass
import torch
torch.set_num_threads(2)
assert torch.get_num_threads() == 2  # torch sets its own number at the first use
with one_thread():
    assert torch.get_num_threads() == 1
assert torch.get_num_threads() == 2
"""


def test_every_library_has_one_thread_and_its_own_number_again() -> None:
    info = pytest.importorskip("threadpoolctl").threadpool_info
    before = [library["num_threads"] for library in info()]
    with one_thread():
        assert {library["num_threads"] for library in info()} == {1}
    assert [library["num_threads"] for library in info()] == before


def test_without_threadpoolctl_nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    known = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name == "threadpoolctl":
            raise ImportError(name)
        return known(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    threads._libraries.cache_clear()
    try:
        assert threads._libraries(frozenset()) is None
        with one_thread():
            pass
    finally:
        threads._libraries.cache_clear()


def test_a_library_that_is_loaded_later_is_found() -> None:
    pytest.importorskip("torch", reason="the lab is not installed: nothing loads threads later")
    pytest.importorskip("threadpoolctl", reason="without it no threads are set")
    subprocess.run([sys.executable, "-c", LOADED_LATER], check=True)
