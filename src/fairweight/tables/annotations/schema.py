"""The SQLite file of annotations: one table to which rows are only ever added."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fairweight.errors import InputError

if TYPE_CHECKING:
    import sqlite3

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


def connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """An open database of annotations, made if it is to be written and does not exist."""
    import sqlite3

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
        if isinstance(error, sqlite3.DatabaseError):
            raise InputError(
                f"'{path}' is no database of annotations ({error}); name one that `fairweight "
                "view` wrote, or a new file."
            ) from error
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, read_only: bool) -> None:
    # In this order: another process may make the file between the two, tables and owner at once.
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    if owner != APPLICATION and (tables or read_only):
        raise InputError(f"'{path}' is a database of something else; name a file of annotations.")
    if read_only:
        return
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")  # an answer means that it is on the disk
    if owner != APPLICATION:
        connection.executescript(SCHEMA)


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Readers do not stop writers. SQLite does not wait for others in this one statement."""
    import sqlite3

    until = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
