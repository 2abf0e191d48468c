"""The budget of memory: as asked for, else half of what is free; shared out among processes."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fairweight.auditing.compare.replicates import in_batches
from fairweight.base import memory
from fairweight.base.memory import amount, budget, budgeted, shared_out
from fairweight.errors import InputError


@pytest.fixture
def half_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with 8 GiB free, in a container that may hold 3 more."""
    for name, text in (
        ("MEMORY_INFO", "MemAvailable:    8388608 kB\n"),
        ("GROUP_MOST", str(5 * 2**30)),
        ("GROUP_HELD", str(2 * 2**30)),
    ):
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(memory, name, tmp_path / name)
    monkeypatch.delenv(memory.VARIABLE, raising=False)


@pytest.mark.usefixtures("half_free")
def test_half_of_what_is_free_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert budget() == 3 * 2**29
    with budgeted("2GB"):
        assert budget() == 2_000_000_000
        with budgeted(None):
            assert budget() == 2_000_000_000
    assert budget() == 3 * 2**29
    monkeypatch.setenv(memory.VARIABLE, "700MB")
    assert budget() == 700_000_000


@pytest.mark.usefixtures("half_free")
def test_processes_share_it() -> None:
    with budgeted("2GB"), shared_out(4):
        assert amount(os.environ[memory.VARIABLE]) == 500_000_000
    assert memory.VARIABLE not in os.environ


@pytest.mark.parametrize("text", ["", "much", "3", "-4GB", "1 XB", "12MB", "nanGB"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--memory"):
        amount(text)


def test_draws_do_not_depend_on_it() -> None:
    """Smaller blocks, the same numbers."""

    def drawn(text: str) -> tuple[np.ndarray, int]:
        made, largest = np.empty(200), [0]

        def work(generators: list[np.random.Generator], sizes: list[int], start: int) -> None:
            largest[0] = max(largest[0], sum(sizes))
            for rng, size in zip(generators, sizes, strict=True):
                made[start : start + size] = rng.random(size)
                start += size

        with budgeted(text):
            in_batches(np.random.default_rng(5), 200, 20_000, work)
        return made, largest[0]

    (small, one), (large, several) = drawn("64MB"), drawn("8GB")
    assert (small == large).all()
    assert one <= several


FAULTS = """
import resource, sys
import numpy as np
from fairweight.base.memory import keep_freed_blocks
if sys.argv[1] == "keep":
    keep_freed_blocks()
np.ones(100 << 20, dtype=np.uint8)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    np.ones(100 << 20, dtype=np.uint8)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library: nothing is set")
def test_large_blocks_are_kept_for_the_next_round() -> None:
    """Five arrays of 100 MB: 128,000 new pages of 4 KiB (250 of 2 MiB) without it, none with it."""
    faults = {
        how: int(subprocess.check_output([sys.executable, "-c", FAULTS, how], text=True))
        for how in ("keep", "give")
    }
    assert faults["keep"] < 50 < 200 < faults["give"]
