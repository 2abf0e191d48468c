"""Work in other processes: order, progress, and what is left when something goes wrong."""

from __future__ import annotations

import os
import tempfile
import time
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest

from fairweight.base.files import check_writable
from fairweight.errors import FairweightError, OutputError
from fairweight.studies.population_demo import in_processes


def test_results_come_in_order_and_temporary_files_go() -> None:
    told: list[tuple[int, int]] = []
    jobs: list[Any] = [partial(pow, 2, 3), tempfile.mkdtemp, partial(pow, 2, 5), os.getpid]
    first, folder, second, pid = in_processes(jobs, 2, lambda *seen: told.append(seen))
    assert (first, second) == (8, 32)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert pid != os.getpid()
    assert Path(str(folder)).parent.name.startswith("fairweight-")
    assert not Path(str(folder)).parent.exists()


def test_an_error_ends_the_others_and_arrives_as_it_was_raised() -> None:
    before, begun = active_children(), time.monotonic()
    with pytest.raises(OutputError, match="has an empty name"):
        in_processes([partial(time.sleep, 60), partial(check_writable, "")], 2)
    assert time.monotonic() - begun < 30
    assert active_children() == before


def test_a_process_that_was_killed_is_told() -> None:
    with pytest.raises(FairweightError, match=r"ended in the midst of its work.*memory"):
        in_processes([partial(os._exit, 9)], 1)
