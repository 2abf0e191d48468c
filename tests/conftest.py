"""Fixtures and settings that all tests share."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from _pytest.doctest import DoctestModule
from hypothesis import settings

from fairweight.cli import screen

from .few_metrics import only

pytest_plugins = ["tests.chromium", "tests.exports"]

ROOT = Path(__file__).resolve().parents[1]
screen.LINE_EVERY = 1e6  # no lines of progress, however slow the machine is
gc.set_threshold(50_000)  # as in the command line: every 700 objects costs a twentieth of all tests

# Folders whose tests share audits, a browser, or libraries that take seconds to load.
TOGETHER = ("tests/browser/", "tests/lab/", "tests/report/")

# The same examples on every machine and every run: a red build is about the code, not about luck.
# `make test-slow` runs twice as many, `FAIRWEIGHT_HYPOTHESIS=explore make test` looks for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=100)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("FAIRWEIGHT_HYPOTHESIS", "repeatable"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file goes to one process, so that what its tests share is made once; some folders do.

    Files keep their order: the doctests, which are short, come last, and both processes end
    together.
    """
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((folder for folder in TOGETHER if nodeid.startswith(folder)), "") or str(
                super()._split_scope(nodeid)
            )

    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Files without an example are not searched for doctests, object by object."""
    return [
        one
        for one in (yield)
        if not isinstance(one, DoctestModule) or ">>> " in file_path.read_text(encoding="utf-8")
    ]


def pytest_collection_finish() -> None:
    """Libraries and thousands of tests stay until the end: the collector need not look at them."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def one_parser() -> Iterator[None]:
    """Build the parser of all commands once, which takes longer than many a command to run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_the_disk() -> Iterator[None]:
    """Files of tests need not survive a loss of power: an open file is enough for `os.fsync`.

    Commands in processes of their own, also those that are killed, wait as they do for users.
    """

    def is_open(file: int) -> None:
        os.fstat(file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", is_open)
        yield


# What tests of commands look at: a rate, one by class, gaps, changes, one of two classes alone, one
# from scores.
FEW_METRICS = (
    "accuracy", "recall", "group_gap", "worst_group", "flips", "harmful_flips", "cev", "cev_pp",
    "disparate_impact", "ece",
)  # fmt: skip


@pytest.fixture(scope="module")
def few_metrics(request: pytest.FixtureRequest) -> Iterator[None]:
    """Audits with rows of ten metrics, which take half the time, for a whole module.

    For tests of what is read, refused, written or decided, and of estimators, which know a metric
    by its kind. `MORE_METRICS` of the module are added. That an audit has every metric is tested
    where metrics are (auditing/compare/test_estimate.py), and by `make same`.
    """
    with only({*FEW_METRICS, *getattr(request.module, "MORE_METRICS", ())}):
        yield


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
