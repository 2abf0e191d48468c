"""What is kept of a simulation comes back as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from . import measured
from .measured import STORE, Share, share, stored

RUNS: list[int] = []


@stored
def simulated(number: int) -> dict[tuple[str, int], object]:
    RUNS.append(number)
    return {
        ("share", number): Share(0.25, 400),
        ("none", 1): None,
        ("nested", 2): [(1.5, float("inf")), np.array([1.0, 2.0])],
    }


def test_a_result_is_kept_and_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STORE, str(tmp_path / "results"))
    RUNS.clear()
    first = simulated(7)
    (place,) = (tmp_path / "results").iterdir()
    assert place.suffix == ".json"
    simulated.cache_clear()  # type: ignore[attr-defined]
    again = simulated(7)
    assert repr(again) == repr(first)
    assert RUNS == [7]
    simulated(8)
    assert RUNS == [7, 8]


def test_other_code_is_another_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STORE, str(tmp_path))
    RUNS.clear()
    for code in ("old", "new"):
        monkeypatch.setattr(measured, "code_of", lambda _, code=code: code)
        simulated.cache_clear()  # type: ignore[attr-defined]
        simulated(9)
    assert RUNS == [9, 9]


def test_a_share_leaves_out_what_is_not_estimable() -> None:
    # (1 + 0) / 2 of the first audit, 1 of the second; the third has nothing.
    found = share([np.array([1.0, 0.0]), np.array([1.0, np.nan]), np.array([np.nan])])
    assert (found.value, found.of) == (0.75, 2)
