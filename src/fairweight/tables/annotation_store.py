"""The SQLite file of annotations: where it is, and its one table, to which rows are only added.

It lies beside results and not inside them: results are made again, annotations are not.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from fairweight.base.files import MANIFEST
from fairweight.errors import InputError, OutputError
from fairweight.tables.annotations import Annotation, check_text, moment, now

NAME = "annotations.sqlite"
# A folder with one of these is results: fairweight writes it, and may write it again.
RESULTS = (MANIFEST, "audit.json", "study.json")
APPLICATION = 0x46574147  # "FWAG", in the file's header: nobody else's database is written to
PATIENCE = 30.0  # seconds for which a writer waits for the others
SCHEMA = f"""
BEGIN IMMEDIATE;
PRAGMA application_id = {APPLICATION};
CREATE TABLE IF NOT EXISTS log (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  audit TEXT NOT NULL, undoes INTEGER REFERENCES log (number),
  example_id TEXT NOT NULL, task TEXT NOT NULL, verdict TEXT NOT NULL, label TEXT NOT NULL,
  note TEXT NOT NULL, annotator TEXT NOT NULL, time TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS log_by_audit ON log (audit, annotator);
CREATE TRIGGER IF NOT EXISTS log_is_not_changed BEFORE UPDATE ON log
  BEGIN SELECT raise(ABORT, 'the log is only added to'); END;
CREATE TRIGGER IF NOT EXISTS log_is_not_shortened BEFORE DELETE ON log
  BEGIN SELECT raise(ABORT, 'the log is only added to'); END;
COMMIT;
"""


def place_for(path: Path) -> tuple[Path, Path]:
    """Where annotations of what is at a path go, and where earlier versions put them.

    Both are the same for a table, and for a folder that only holds other folders of results.
    """
    folder = path if path.is_dir() else path.parent
    earlier = folder / NAME
    results = None
    for place in (folder.resolve(), *folder.resolve().parents):
        if not place.name or not any((place / mark).is_file() for mark in RESULTS):
            break
        results = place
    if results is None:
        return earlier, earlier
    return results.with_name(f"{results.name}.{NAME}"), earlier


def move_out(earlier: Path, place: Path) -> tuple[Path, str | None]:
    """Move annotations of an earlier version out of results; where they are, and what to say.

    They stay where they are while another process has them open, and where there are newer ones.
    """
    if earlier == place or earlier.is_symlink() or not earlier.is_file():
        return place, None
    if place.exists() and earlier.samefile(place):  # stopped between the two names
        earlier.unlink()
        return place, None
    stays = f"Annotations of an earlier version stay in '{earlier}'"
    if os.path.lexists(place):
        newer = f"there are newer ones in '{place}'"
        return place, f"{stays}, because {newer}; see them with --annotations."
    try:
        connection = connect(earlier, read_only=False)
    except InputError as error:
        return place, f"{stays}: {error}"
    try:
        # Alone, and with everything in the one file: no log beside it may be left behind.
        connection.execute("PRAGMA busy_timeout = 100")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("BEGIN EXCLUSIVE")
        os.link(earlier, place)  # never over another file
        earlier.unlink()
    except (sqlite3.OperationalError, OSError) as error:
        return earlier, f"{stays} ({error}); close other viewers, and they are moved next time."
    finally:
        connection.close()
    return place, f"Annotations are beside results now: '{earlier}' was moved to '{place}'."


def connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """An open database of annotations, made if it is to be written and does not exist."""
    if read_only and not path.is_file():
        raise InputError(f"The annotations '{path}' do not exist; check the path.")
    try:
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):  # what people say is theirs: nobody else reads it
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}",
            uri=True,
            timeout=PATIENCE,
            isolation_level=None,
            check_same_thread=False,  # the store has a lock of its own
        )
    except (OSError, sqlite3.OperationalError) as error:
        raise InputError(
            f"The annotations '{path}' cannot be opened ({error}); name a file in a folder that "
            "can be written."
        ) from error
    try:
        _prepare(connection, path, read_only)
    except BaseException as error:
        connection.close()
        # What SQLite says about a damaged file may itself be no text.
        if isinstance(error, sqlite3.DatabaseError | UnicodeError):
            raise InputError(
                f"'{path}' is no database of annotations ({error}); name one that `fairweight "
                "view` wrote, or a new file."
            ) from error
        raise
    return connection


def _acting(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    """Names and texts of what acts by itself in a database."""
    query = "SELECT name, sql FROM sqlite_schema WHERE type IN ('trigger', 'view')"
    return {*connection.execute(query)}


@cache
def _our_triggers() -> set[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return _acting(connection)


def _prepare(connection: sqlite3.Connection, path: Path, read_only: bool) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")  # the file may be from anybody
    # In this order: another process may make the file between the two, tables and owner at once.
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    # A trigger of somebody else could swallow what is written.
    strange = owner == APPLICATION and not _acting(connection) <= _our_triggers()
    if strange or (owner != APPLICATION and (tables or read_only)):
        raise InputError(f"'{path}' is a database of something else; name a file of annotations.")
    if read_only:
        return
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")  # an answer means that it is on the disk
    if owner != APPLICATION:
        connection.executescript(SCHEMA)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Readers do not stop writers. SQLite does not wait for others in this one statement."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


# Annotations on disk: a log that several people may write to at once.
#
# `add` returns when the annotation is on the disk, in the file that is at the path: whatever
# happens to the process afterwards, it is kept. Nothing is changed or removed; an undo is one more
# row, and brings back what the same person had said before.

_FIELDS = tuple(field.name for field in fields(Annotation))
_INSERT = (
    f"INSERT INTO log (audit, undoes, {', '.join(_FIELDS)}) "
    f"VALUES ({', '.join('?' * (len(_FIELDS) + 2))})"
)
UNDO = "undo"


@dataclass(frozen=True)
class LogEntry:
    """A row of the log: an annotation, or the undoing of one (`undoes` is its number)."""

    number: int
    audit: str
    annotator: str
    time: str
    annotation: Annotation | None
    undoes: int | None


@dataclass(frozen=True)
class AnnotationCounts:
    """How far people are: distinct examples, and verdicts by kind and by person."""

    n_examples: int
    by_verdict: dict[str, int]
    by_annotator: dict[str, int]


class AnnotationStore:
    """The annotations in one file, of one audit or of several.

    Parameters
    ----------
    path
        Made if it does not exist.
    read_only
        Nothing is written, and the file must exist.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.RLock()
        self._connection = connect(self.path, read_only)
        self._files = self._found()
        self.lost = False  # whether the open file is no longer the one at `path`
        self._known: dict[str, tuple[int, dict[int, Annotation]]] = {}

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> AnnotationStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, annotation: Annotation, audit: str) -> int:
        """Keep an annotation; its number in the log, once it is on the disk.

        One without a time gets the present one.
        """
        check_text(audit, "audit")
        with self._writing() as connection:
            return _insert(connection, annotation, audit)

    def undo(self, annotator: str, audit: str) -> Annotation | None:
        """Take back what somebody said last; what that was, or None if nothing is left."""
        with self._writing() as connection:
            live = self._live(audit)
            own = [number for number, row in live.items() if row.annotator == annotator]
            if not own:
                return None
            taken = live[own[-1]]
            values = [taken.example_id, UNDO, taken.task, "", "", annotator, now()]
            connection.execute(_INSERT, [audit, own[-1], *values])
            return taken

    def import_rows(self, rows: Iterable[Annotation], audit: str) -> int:
        """Add rows of a file; how many were new.

        A row is left out where the same person has a verdict on the same example that is as new or
        newer, so that importing a file twice changes nothing.
        """
        check_text(audit, "audit")
        n_new = 0
        with self._writing() as connection:
            there = {_key(row): moment(row.time) for row in self._live(audit).values()}
            for row in sorted(rows, key=lambda row: moment(row.time)):
                if _key(row) in there and there[_key(row)] >= moment(row.time):
                    continue
                _insert(connection, row, audit, dated=False)
                there[_key(row)] = moment(row.time)
                n_new += 1
        return n_new

    def current(self, audit: str) -> list[Annotation]:
        """What everybody says now: one annotation per person, task and example, in log order."""
        with self._reading():
            live = self._live(audit)
            said = {_key(row): number for number, row in live.items()}
            return [live[number] for number in sorted(said.values())]

    def counts(self, audit: str) -> AnnotationCounts:
        """Progress of the annotation of one audit."""
        rows = self.current(audit)
        return AnnotationCounts(
            len({(row.task, row.example_id) for row in rows}),
            dict(Counter(row.verdict for row in rows)),
            dict(Counter(row.annotator for row in rows)),
        )

    def log(self, audit: str) -> list[LogEntry]:
        """Everything that was ever said or undone."""
        with self._reading():
            return [_entry(row) for row in self._rows(audit, 0)]

    def audits(self) -> list[str]:
        """The audits that annotations are about."""
        with self._reading():
            found = self._connection.execute("SELECT DISTINCT audit FROM log ORDER BY audit")
            names = [row[0] for row in found]
            for name in names:
                check_text(name, "audit")
            return names

    def _live(self, audit: str) -> dict[int, Annotation]:
        """Number → annotation that was not undone; only new rows of the log are read."""
        last, live = self._known.get(audit, (0, {}))
        for row in self._rows(audit, last):
            entry = _entry(row)
            last = entry.number
            if entry.annotation is not None:
                live[entry.number] = entry.annotation
            elif entry.undoes is not None:
                live.pop(entry.undoes, None)
        self._known[audit] = (last, live)
        return live

    def _rows(self, audit: str, after: int) -> list[tuple[Any, ...]]:
        return self._connection.execute(
            f"SELECT number, audit, undoes, {', '.join(_FIELDS)} FROM log "
            "WHERE audit = ? AND number > ? ORDER BY number",
            [audit, after],
        ).fetchall()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What SQLite, or a row that nobody can have given, says about a damaged file."""
        with self._lock:
            try:
                yield
            except (sqlite3.Error, InputError, TypeError, ValueError, OverflowError) as error:
                self._known.clear()
                raise InputError(
                    f"The annotations '{self.path}' are damaged ({error}); take a copy that is "
                    "whole, or an annotations.csv that was exported."
                ) from error

    def _found(self) -> tuple[tuple[int, int] | None, ...]:
        """Which files are at the path now: the database, and the log of what is not in it yet."""
        found: list[tuple[int, int] | None] = []
        for name in (self.path, f"{self.path}-wal"):
            try:
                facts = os.stat(name)
                found.append((facts.st_dev, facts.st_ino))
            except OSError:
                found.append(None)
        return tuple(found)

    def _check_place(self) -> None:
        """Refuse to say that something was kept in a file that nobody will find."""
        found = self._found()
        if self._files[1] is None:
            self._files = (self._files[0], found[1])  # SQLite makes its log when it needs it
        if found != self._files:
            self.lost = True
            raise OutputError(
                f"'{self.path}' was moved, removed or replaced while it was open, so this was not "
                "saved. Put the file back; or give the verdict again, then the file that is there "
                "now is used, or a new one."
            )

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction: all of it is on the disk at the end, or nothing."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    self._check_place()
                    yield self._connection
                    self._connection.execute("COMMIT")
                    self._check_place()
                except BaseException:
                    self._known.clear()  # it may hold rows that are taken back now
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise OutputError(
                    f"The annotation was not saved in '{self.path}': {error}; check the disk and "
                    "the permissions, and give it again."
                ) from error


def _insert(
    connection: sqlite3.Connection, row: Annotation, audit: str, *, dated: bool = True
) -> int:
    values = dict(zip(_FIELDS, astuple(row), strict=True))
    if dated and not row.time:
        values["time"] = now()
    number = connection.execute(_INSERT, [audit, None, *values.values()]).lastrowid
    assert number is not None
    return number


def _key(row: Annotation) -> tuple[str, str, str]:
    return (row.annotator, row.task, row.example_id)


def _entry(row: tuple[Any, ...]) -> LogEntry:
    number, audit, undoes, *values = row
    said = dict(zip(_FIELDS, values, strict=True))
    annotation = None if undoes is not None else Annotation(**said)
    return LogEntry(number, audit, said["annotator"], said["time"], annotation, undoes)
