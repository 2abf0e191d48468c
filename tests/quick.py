"""The core and the tests of what changed since the last commit, within a minute (`make quick`).

First test files that were changed, then those of the modules that were changed (tests/mirror.py),
then the core, then other tests that import these modules. What a minute does not suffice for is
said, and left to `make test`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import mirror

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 50  # after which no further test begins
# An audit from arrays and from files, its numbers by hand, how it is stored, refused and shown.
CORE = (
    "auditing/test_pipeline.py",
    "auditing/compare/test_closed_form.py",
    "auditing/intervals/test_interval_tango.py",
    "tables/test_align_errors.py",
    "report/test_lead_sentences.py",
    "test_lean_imports.py",
)


def changed() -> list[str]:
    """Files that differ from the last commit, or are new and not ignored."""
    git = ["git", "-C", str(ROOT)]
    asked = (["diff", "--name-only", "-z", "HEAD"], ["ls-files", "-z", "-o", "--exclude-standard"])
    out = [subprocess.run([*git, *words], capture_output=True, check=True) for words in asked]
    return sorted({name for one in out for name in one.stdout.decode().split("\0") if name})


def chosen(files: list[str]) -> Iterator[str]:
    """Test files in the order in which they are run; some come twice."""
    source, tests = "src/fairweight/", "tests/"
    modules = [name.removeprefix(source) for name in files if name.startswith(source)]
    known = set(mirror.test_files())
    yield from (name for file in files if (name := file.removeprefix(tests)) in known)
    for module in modules:
        yield from mirror.tests_of(module)
    yield from CORE
    wanted = set(modules)
    for test in sorted(known):
        if wanted & mirror.imported(mirror.TESTS / test):
            yield test


class Limit:
    """Ends the session when its time is over, after the test that runs."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.reached = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if time.monotonic() - self.begun > SECONDS and not self.reached:
            self.reached = True
            item.session.shouldstop = f"{SECONDS} s are over; `make test` runs everything"
        return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.reached:  # to have run out of time is no failure
            session.exitstatus = pytest.ExitCode(min(session.testsfailed, 1))


def main() -> int:
    """Run them; 0 where none failed, in the time that there was."""
    limit = Limit()
    there = dict.fromkeys(test for test in chosen(changed()) if (mirror.TESTS / test).exists())
    print(f"{len(there)} test files")
    return pytest.main(["-q", *(str(mirror.TESTS / test) for test in there)], plugins=[limit])


if __name__ == "__main__":
    sys.exit(main())
