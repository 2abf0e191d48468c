"""Threads of numerical libraries."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from fairweight.base.threads import one_thread


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
    with one_thread() as limits:
        assert limits is None
