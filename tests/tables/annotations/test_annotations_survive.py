"""Annotations that were acknowledged are kept, whatever happens to the process that wrote them."""

import random
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from fairweight.tables.annotation_store import AnnotationStore, _prepare

AUDIT = "demo"
# Says the number of an annotation once `add` has returned, and never stops by itself.
WRITER = """
import itertools, sys
from fairweight.tables.annotation_store import AnnotationStore
from fairweight.tables.annotations import Annotation

path, who, most = sys.argv[1:]
store = AnnotationStore(path)
for i in itertools.count() if most == "forever" else range(int(most)):
    store.add(Annotation(f"{who}-{i}", "fine", annotator=who, note="x" * 500), audit="demo")
    print(f"{who}-{i}", flush=True)
"""


def writer(path: Path, who: str, most: str = "forever") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), who, most], stdout=subprocess.PIPE, text=True
    )


def killed_after(process: subprocess.Popen[str], n_lines: int, seconds: float) -> list[str]:
    """What the writer acknowledged before SIGKILL, which may come in the middle of a write."""
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(n_lines)]
    timer = threading.Timer(seconds, process.kill)
    timer.start()
    said += process.stdout.readlines()
    timer.join()
    process.stdout.close()
    assert process.wait() == -9
    return [line.strip() for line in said if line.endswith("\n")]


def check_rounds(path: Path, rounds: int) -> None:
    draw = random.Random(0)
    acknowledged: list[str] = []
    for i in range(rounds):
        process = writer(path, f"p{i}")
        acknowledged += killed_after(process, draw.randint(1, 5), draw.uniform(0, 0.03))
        with AnnotationStore(path) as store:
            kept = [row.example_id for row in store.current(AUDIT)]
        assert set(acknowledged) <= set(kept)
        # At most the one that was being written is there without an answer.
        assert len(kept) - len(acknowledged) <= i + 1
    assert len(acknowledged) >= rounds


def test_acknowledged_annotations_survive_being_killed(tmp_path: Path) -> None:
    check_rounds(tmp_path / "annotations.sqlite", 5)


@pytest.mark.slow
def test_acknowledged_annotations_survive_being_killed_a_hundred_times(tmp_path: Path) -> None:
    check_rounds(tmp_path / "annotations.sqlite", 100)


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "annotations.sqlite"
    people = [f"p{i}" for i in range(4)]
    writers = [writer(path, who, "25") for who in people]  # all of them make the file
    for process in writers:
        process.communicate()
        assert process.returncode == 0
    with AnnotationStore(path) as store:
        entries = store.log(AUDIT)
        assert [entry.number for entry in entries] == list(range(1, 101))
        assert store.counts(AUDIT).by_annotator == dict.fromkeys(people, 25)


class Interrupted:
    """A connection after whose first query another process makes the file."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection, self.path, self.said = connection, path, 0

    def execute(self, statement: str) -> sqlite3.Cursor:
        found = self.connection.execute(statement)
        if self.said == 0 and statement.startswith("SELECT"):
            self.said += 1
            rows = found.fetchall()
            AnnotationStore(self.path).close()
            return self.connection.execute(f"VALUES ({rows[0][0]})")
        return found

    def executescript(self, script: str) -> sqlite3.Cursor:
        return self.connection.executescript(script)


def test_a_file_that_another_process_makes_meanwhile_is_not_somebody_elses(tmp_path: Path) -> None:
    path = tmp_path / "annotations.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        _prepare(Interrupted(connection, path), path, read_only=False)
    with AnnotationStore(path) as store:
        assert store.log(AUDIT) == []
