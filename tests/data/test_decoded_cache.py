"""Decoded images are made once, whole or not at all, and go on where they were interrupted."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from fairweight.data import photographs
from fairweight.data.photographs import filled
from fairweight.errors import OutputError

SHAPE = (10, 2, 2, 1)
ALL = np.arange(40, dtype=np.uint8).reshape(SHAPE)


class Rows:
    """Gives rows and remembers which; fails at a row that it is told."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.asked: list[tuple[int, int]] = []
        self.fail_at = fail_at

    def __call__(self, start: int, stop: int) -> NDArray[np.uint8]:
        self.asked.append((start, stop))
        if self.fail_at is not None and start <= self.fail_at < stop:
            raise KeyboardInterrupt
        return ALL[start:stop]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photographs, "_BLOCK_BYTES", 16)  # four rows of four bytes


def test_rows_are_asked_for_once(tmp_path: Path) -> None:
    rows, seen = Rows(), list[tuple[int, int]]()
    held = filled("x", SHAPE, rows, folder=tmp_path, progress=lambda *both: seen.append(both))
    assert (held == ALL).all()
    assert rows.asked == [(0, 4), (4, 8), (8, 10)]
    assert seen == [(4, 10), (8, 10), (10, 10)]
    again = Rows()
    assert (filled("x", SHAPE, again, folder=tmp_path) == ALL).all()
    assert again.asked == []
    assert [path.suffix for path in tmp_path.iterdir()] == [".npy"]


def test_the_array_is_memory_mapped_and_the_file_stays(tmp_path: Path) -> None:
    held = filled("x", SHAPE, Rows(), folder=tmp_path)
    assert isinstance(held, np.memmap)
    held[:] = 0  # allowed (torch wants it), but only in memory
    assert (filled("x", SHAPE, Rows(), folder=tmp_path) == ALL).all()


def test_other_facts_are_another_array(tmp_path: Path) -> None:
    filled("x", SHAPE, Rows(), folder=tmp_path)
    rows = Rows()
    filled("y", SHAPE, rows, folder=tmp_path)
    assert rows.asked


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        filled("x", SHAPE, Rows(fail_at=5), folder=tmp_path)
    assert not list(tmp_path.glob("*.npy"))
    (unfinished,) = tmp_path.glob("*.partial")
    with unfinished.open("ab") as file:
        file.write(b"\7\7")  # half a row, as a killed process may leave it
    rows = Rows()
    assert (filled("x", SHAPE, rows, folder=tmp_path) == ALL).all()
    assert rows.asked == [(4, 8), (8, 10)]


def test_a_file_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    filled("x", SHAPE, Rows(), folder=tmp_path)
    (path,) = tmp_path.glob("*.npy")
    os.truncate(path, path.stat().st_size - 5)
    assert (filled("x", SHAPE, Rows(), folder=tmp_path) == ALL).all()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(OutputError, match=r"taken.* was not written"):
        filled("x", SHAPE, Rows(), folder=tmp_path / "taken")


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    def full(start: int, stop: int) -> NDArray[np.uint8]:
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="no space left"):
        filled("x", SHAPE, full, folder=tmp_path)


def make(folder: str) -> bool:
    return bool((filled("x", SHAPE, Rows(), folder=Path(folder)) == ALL).all())


def test_several_processes_make_one_array(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.map(make, [str(tmp_path)] * 6) == [True] * 6
    assert [path.suffix for path in tmp_path.iterdir()] == [".npy"]
