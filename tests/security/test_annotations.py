"""Annotation files from anybody: CSV and SQLite that are almost right, and many of them."""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairweight.auditing.mitigate.overrides import read_annotations
from fairweight.errors import InputError
from fairweight.tables.annotation_store import AnnotationStore
from fairweight.tables.annotations import (
    COLUMNS,
    VERDICTS,
    Annotation,
    human_labels,
    read_csv,
    to_csv,
)

from .mutations import CASES, TEXTS, fuzz, mutated_bytes

if TYPE_CHECKING:
    from playwright.sync_api import Page

MANY = 8_000
GOOD = [
    Annotation("id-1", "fine", label="cat", annotator="ann", time="2026-03-01T09:30:00Z"),
    Annotation("=2+2", "label_wrong", label="dog", note='a "quote",\nand a line', annotator="bo"),
    Annotation("id-3", "ambiguous", task="smiling", time="2026-03-01T09:30:00.123Z"),
    Annotation("id-1", "skip", annotator="ann", time="2026-03-02T09:30:00Z"),
]


def hostile_csv(rng: random.Random) -> bytes:
    """A good file with changed bytes, or a file of odd cells."""
    if rng.random() < 0.6:
        return mutated_bytes(to_csv(GOOD).encode(), rng)
    kinds = (*TEXTS, *VERDICTS, *COLUMNS, "2026-03-01T09:30:00Z", "9999-12-31T23:59:59+00:00", "0")
    delimiter = rng.choice([",", ";", "\t", ",", "\0"])
    end = rng.choice(["\n", "\r\n", "\r"])
    header = list(COLUMNS) if rng.random() < 0.8 else [rng.choice(kinds) for _ in range(4)]
    lines = [header]
    for _ in range(rng.randrange(6)):
        row = [rng.choice(kinds) for _ in header]
        if rng.random() < 0.7 and "verdict" in header:
            row[header.index("verdict")] = rng.choice(list(VERDICTS))
        lines.append(row[: rng.choice([len(row), len(row), 2, 20])])
    quote = rng.choice(["", '"'])
    text = end.join(delimiter.join(f"{quote}{cell}{quote}" for cell in line) for line in lines)
    return text.encode("utf-8", "surrogatepass")


@CASES
def test_csv_files(tmp_path: Path, cases: int) -> None:
    path = tmp_path / "annotations.csv"

    def attempt(content: bytes) -> None:
        path.write_bytes(content)
        found = read_csv(path)
        assert read_csv(to_csv(found)) == found  # what was taken comes back as it was
        human_labels(found)
        read_annotations(str(path))

    tally = fuzz(attempt, hostile_csv, cases)
    assert tally["refused"] > cases / 10
    assert tally["accepted"] > cases / 10


def hostile_database(good: bytes) -> Callable[[random.Random], bytes | str]:
    """Changed bytes, or statements that somebody ran on a good file."""
    statements = (
        "DROP TABLE log",
        "DROP TRIGGER log_is_not_changed; UPDATE log SET verdict = 'nonsense'",
        "DROP TRIGGER log_is_not_changed; UPDATE log SET time = 'yesterday'",
        "DROP TRIGGER log_is_not_changed; UPDATE log SET label = 'x', verdict = 'skip'",
        "DROP TRIGGER log_is_not_changed; UPDATE log SET example_id = ''",
        "INSERT INTO log SELECT number + 10, audit, number + 99, example_id, task, verdict, label, "
        "note, annotator, time FROM log",
        "DROP TABLE log; CREATE TABLE log (number, audit, undoes, example_id, task, verdict, "
        "label, note, annotator, time); "
        "INSERT INTO log VALUES (1, 'a', NULL, 1, 2.5, x'00', '', '', '', '')",
        "DROP TABLE log; CREATE VIEW log AS SELECT 1 AS number, 'a' AS audit, NULL AS undoes, "
        "'7' AS example_id, '' AS task, 'fine' AS verdict, '' AS label, zeroblob(200000) AS note, "
        "'' AS annotator, '' AS time",
        "ALTER TABLE log ADD COLUMN more TEXT",
        "ALTER TABLE log RENAME COLUMN note TO notes",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 99",
    )

    def draw(rng: random.Random) -> bytes | str:
        return rng.choice(statements) if rng.random() < 0.2 else mutated_bytes(good, rng)

    return draw


@CASES
def test_databases(tmp_path: Path, cases: int) -> None:
    path = tmp_path / "annotations.sqlite"
    with AnnotationStore(path) as store:
        store.import_rows(GOOD, "audit")
        store.undo("ann", "audit")
    good = path.read_bytes()

    def attempt(content: bytes | str) -> None:
        for end in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        path.write_bytes(good if isinstance(content, str) else content)
        if isinstance(content, str):
            with closing(sqlite3.connect(path)) as held:
                held.executescript(content)
        with AnnotationStore(path, read_only=True) as store:
            for audit in store.audits():
                store.current(audit)
                store.log(audit)
        read_annotations(str(path))

    tally = fuzz(attempt, hostile_database(good), cases)
    assert tally["refused"] > cases / 20
    assert tally["accepted"] > cases / 20


# --- many at once --------------------------------------------------------------------------------


def test_a_database_that_swallows_verdicts_is_refused(tmp_path: Path) -> None:
    """A trigger could say "saved" and keep nothing."""
    path = tmp_path / "annotations.sqlite"
    AnnotationStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TRIGGER t BEFORE INSERT ON log BEGIN SELECT raise(ignore); END")
        connection.commit()
    with pytest.raises(InputError, match="is a database of something else"):
        AnnotationStore(path)


def many() -> list[Annotation]:
    return [
        Annotation(f"id-{i}", "fine", label="cat", annotator="ann", time="2026-03-01T09:30:00Z")
        for i in range(MANY)
    ]


def test_a_file_is_imported_in_one_transaction(tmp_path: Path) -> None:
    text = to_csv(many())
    with AnnotationStore(tmp_path / "said.sqlite") as store:
        stated: list[str] = []
        store._connection.set_trace_callback(stated.append)
        begun = time.process_time()
        assert store.import_rows(read_csv(text), "digits") == MANY
        assert time.process_time() - begun < 10
        store._connection.set_trace_callback(None)
        assert [line for line in stated if not line.startswith(("INSERT", "SELECT"))] == [
            "BEGIN IMMEDIATE",
            "COMMIT",
        ]
        with pytest.raises(InputError, match="not ISO 8601"):
            store.import_rows((*many(), *read_csv("example_id,verdict,time\n1,fine,now")), "digits")
        assert len(store.current("digits")) == MANY


def test_the_report_imports_a_file_at_once(browser_page: Page) -> None:
    """It looked through everything for every row: half a minute, then three quarters of one."""
    code = resources.files("fairweight.report.templates").joinpath("annotation_log.js").read_text()
    browser_page.goto("data:text/html,<title>log</title>")
    taken = browser_page.evaluate(
        """([code, n]) => {
          const make = new Function(code + "; return annotationLog;")();
          const log = make({ storage: "x", withoutLabel: ["skip"], keys: { f: "fine" } });
          const rows = [...Array(n).keys()].map((i) => ({
            example_id: "id-" + i, task: "", verdict: "fine", label: "a", note: "",
            annotator: "ann", time: "2026-03-01T09:30:00.000Z",
          }));
          const older = rows.map((row) => ({ ...row, time: "" }));
          const begun = performance.now();
          const added = [log.merge([...rows, ...older]), log.merge(rows)];
          return { added, held: log.current().length, ms: performance.now() - begun };
        }""",
        [code, MANY],
    )
    # Of the same example the older row goes in first: both are in the log, the newer one counts.
    assert taken["added"] == [2 * MANY, 0]
    assert taken["held"] == MANY
    assert taken["ms"] < 5_000
