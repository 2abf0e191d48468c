"""The SQLite file of annotations: where it is, and its one table, to which rows are only added.

It lies beside results and not inside them: results are made again, annotations are not.
"""

from __future__ import annotations

import os
import time
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fairweight.errors import InputError
from fairweight.tables.write import MANIFEST

if TYPE_CHECKING:
    import sqlite3

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
    import sqlite3

    if earlier == place or earlier.is_symlink() or not earlier.is_file():
        return place, None
    if place.exists() and os.path.samefile(earlier, place):  # stopped between the two names
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
    import sqlite3

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
