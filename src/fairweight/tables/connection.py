"""The DuckDB connection of an audit: offline, bounded in memory, spilling to its own folder."""

from __future__ import annotations

import atexit
import math
import os
import signal
import socket
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.base.memory import budget
from fairweight.base.scratch import Scratch
from fairweight.errors import LESS_MEMORY, InputError

if TYPE_CHECKING:
    import duckdb


# Ctrl-C for DuckDB: the main thread may sit inside a query and hear nothing.
#
# Python runs signal handlers in the main thread, between two of its own instructions. While that
# thread waits inside DuckDB for work that another thread does, Ctrl-C would have to wait too, for
# hours. The system's own handler writes to a socket at once, and a thread that listens there stops
# the query.

STOP = b"\0"  # no signal has the number 0


class QueryInterrupts:
    """Stops the queries of connections on Ctrl-C, until it is closed or forgotten.

    Nothing is done outside of the main thread, or where somebody (an event loop) listens already.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._release: weakref.finalize[..., QueryInterrupts] | None = None
        self._connections = [connection]
        if threading.current_thread() is not threading.main_thread():
            return
        reader, writer = socket.socketpair()
        writer.setblocking(False)
        before = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
        if before != -1:
            signal.set_wakeup_fd(before)
            reader.close()
            writer.close()
            return
        thread = threading.Thread(target=_listen, args=(reader, self._connections), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no memory for a thread: queries are stopped when they come back
            signal.set_wakeup_fd(-1)
            reader.close()
            writer.close()
            return
        self._release = weakref.finalize(self, _stop, writer, thread)

    @contextmanager
    def watching(self, connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        """Stop this connection too, until the block ends."""
        self._connections.append(connection)
        try:
            yield
        finally:
            self._connections.remove(connection)

    def close(self) -> None:
        """Stop listening; safe to call twice."""
        if self._release is not None:
            self._release()


def _stop(writer: socket.socket, thread: threading.Thread) -> None:
    try:
        held = signal.set_wakeup_fd(-1)
    except ValueError:
        return  # only the main thread may change it; an open socket does no harm
    if held not in (-1, writer.fileno()):
        signal.set_wakeup_fd(held)  # somebody else listens by now
    with suppress(OSError):
        writer.send(STOP)
    thread.join(timeout=1.0)
    writer.close()


def _listen(reader: socket.socket, connections: list[duckdb.DuckDBPyConnection]) -> None:
    with reader:
        while True:
            heard = reader.recv(1)
            if heard in (b"", STOP):
                return
            if heard[0] == signal.SIGINT:
                for connection in tuple(connections):
                    with suppress(Exception):  # it may be closed by now
                        connection.interrupt()


class Database:
    """DuckDB in memory; the folder that it spills to is there while somebody uses it."""

    def __init__(self) -> None:
        import duckdb

        self._users, self._process = 0, os.getpid()
        self._scratch: Scratch | None = Scratch()
        self.config: dict[str, str | bool | int | float | list[str]] = {
            "threads": os.cpu_count() or 1,
            "temp_directory": str(self._scratch.folder),
            # An extension would be downloaded; nothing here may need the network.
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
        }
        self.connection: duckdb.DuckDBPyConnection = duckdb.connect(":memory:", config=self.config)

    def use(self) -> duckdb.DuckDBPyConnection:
        """A connection of one's own, until `release`; fails after rows were spilled and let go."""
        if self._scratch is None:
            scratch = Scratch()
            try:
                self.connection.execute(f"SET temp_directory = {literal(str(scratch.folder))}")
            except BaseException:
                scratch.close()
                raise
            self._scratch, self.config["temp_directory"] = scratch, str(scratch.folder)
        self._users += 1
        return self.connection.cursor()

    def release(self, attached: Sequence[str]) -> None:
        """Let go of what one user attached, and of the folder after the last user."""
        if os.getpid() != self._process:  # a fork of it has no threads to answer
            return
        with _one_at_a_time:
            for name in attached:
                with suppress(Exception):  # somebody may have detached it
                    self.connection.execute(f"DETACH {quote(name)}")
            self._users -= 1
            if self._users == 0 and self._scratch is not None:
                self._scratch.close()
                self._scratch = None


# To make one takes 16 ms, as long as a small audit counts; so a process makes one. Whatever a
# workspace makes in it (temporary views, tables, types) is seen by its own connection alone.
_shared: list[Database] = []
_inherited: list[Database] = []  # by a forked process, where closing one would wait for ever
_one_at_a_time = threading.RLock()


def _forked() -> None:
    global _one_at_a_time
    _one_at_a_time = threading.RLock()  # another thread may have held it
    _inherited.extend(_shared)
    _shared.clear()


os.register_at_fork(after_in_child=_forked)


@atexit.register
def _close_shared() -> None:
    while _shared:
        with suppress(Exception):
            _shared.pop().connection.close()


def _shared_connection() -> tuple[Database, duckdb.DuckDBPyConnection]:
    import duckdb

    if _shared:
        with suppress(duckdb.Error):  # it has spilled, and its folder is gone
            return _shared[0], _shared[0].use()
        _shared.clear()
    _shared.append(Database())
    return _shared[0], _shared[0].use()


class Workspace:
    """A connection of its own to the database of this process.

    Parameters
    ----------
    alone
        To a database of its own, which can be confined.
    """

    def __init__(self, *, alone: bool = False) -> None:
        self.connection: duckdb.DuckDBPyConnection
        with _one_at_a_time:
            if alone:
                database = Database()
                self.connection = database.use()
            else:
                database, self.connection = _shared_connection()
        self._attached: list[str] = []
        self._release = weakref.finalize(self, database.release, self._attached)
        self.config = database.config
        # A progress bar of DuckDB would mix with the one of the command line.
        self.connection.execute("SET enable_progress_bar = false")
        limit = memory_limit_mb()
        if limit is not None:
            self.config["memory_limit"] = f"{limit}MB"
            with suppress(Exception):  # another audit holds more: the limit stays until it ends
                self.connection.execute(f"SET memory_limit = '{limit}MB'")
        self.interrupts = QueryInterrupts(self.connection)
        self._counter = 0

    def attach(self, path: Path) -> str:
        """The name under which a DuckDB file can be read, until the workspace is closed."""
        database = f"{self.name('file')}_{id(self):x}"
        self.connection.execute(f"ATTACH {literal(str(path))} AS {quote(database)} (READ_ONLY)")
        self._attached.append(database)
        return database

    def detach(self, database: str) -> None:
        """Let go of a file that was attached."""
        self._attached.remove(database)
        self.connection.execute(f"DETACH {quote(database)}")

    def name(self, stem: str) -> str:
        """A table name that nothing else in this workspace has."""
        self._counter += 1
        return f"fw_{stem}_{self._counter}"

    def confine(self, files: Sequence[Path]) -> None:
        """From now on no other files than these can be read, no network, no Python, no settings."""
        allowed = ", ".join(literal(str(file)) for file in files)
        for setting in (
            f"allowed_paths = [{allowed}]",
            "python_enable_replacements = false",
            "enable_external_access = false",
            "lock_configuration = true",
        ):
            self.connection.execute(f"SET {setting}")

    def close(self) -> None:
        """Close the connection and what it made; safe to call twice."""
        self.interrupts.close()
        with suppress(Exception):
            self.connection.close()
        self._release()


def memory_limit_mb() -> int | None:
    """Megabytes that DuckDB may hold before it spills; None where the system does not say."""
    held = budget()
    return None if held is None else max(1, held // 2**20)


# Names and values written into SQL so that no quote, newline or markup in them can do harm.

INTEGER_TYPES: frozenset[str] = frozenset(
    f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG", "HUGE")
) | {"INTEGER", "UINTEGER"}
FLOAT_TYPES: frozenset[str] = frozenset(("FLOAT", "DOUBLE"))


def quote(name: str) -> str:
    """A column, table or type name as SQL.

    >>> print(quote('a "b" c'))
    "a ""b"" c"
    """
    return '"' + name.replace('"', '""') + '"'


def renamed(value: str, column: str | None, name: str) -> str:
    """A value under a name of ours; DuckDB ignores AS where the column differs in case alone.

    >>> print(renamed('"Label"', "Label", "label"), "|", renamed('"y"', "y", "label"))
    CASE WHEN true THEN "Label" END AS label | "y" AS label
    """
    if column is not None and column != name and column.lower() == name:
        value = f"CASE WHEN true THEN {value} END"
    return f"{value} AS {name}"


def literal(value: Any) -> str:
    """A value as SQL.

    >>> [literal(v) for v in ("it's", 3, 2.5, True, None)]
    ["'it''s'", '3', '2.5::DOUBLE', 'true', 'NULL']
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value!r}::DOUBLE" if math.isfinite(value) else f"'{value!r}'::DOUBLE"
    if isinstance(value, bytes):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    return "'" + str(value).replace("'", "''") + "'"


def is_integer(kind: str) -> bool:
    """Whether a DuckDB type holds whole numbers."""
    return kind in INTEGER_TYPES


def is_float(kind: str) -> bool:
    """Whether a DuckDB type can hold NaN."""
    return kind in FLOAT_TYPES


def is_number(kind: str) -> bool:
    """Whether a DuckDB type holds numbers of any sort."""
    return is_integer(kind) or is_float(kind) or kind.startswith("DECIMAL")


def is_text(kind: str) -> bool:
    """Whether a DuckDB type holds text; types with a name in quotes are enumerations of ours."""
    return kind == "VARCHAR" or kind.startswith(("ENUM(", '"'))


def is_list(kind: str) -> bool:
    """Whether a DuckDB type holds a list per row (class probabilities).

    >>> is_list("DOUBLE[]"), is_list("FLOAT[10]"), is_list("DOUBLE")
    (True, True, False)
    """
    return kind.endswith("]")


def is_nested(kind: str) -> bool:
    """Whether a DuckDB type holds several values per row.

    >>> [is_nested(k) for k in ("INTEGER[]", "STRUCT(a INTEGER)", "MAP(VARCHAR, INTEGER)", "DATE")]
    [True, True, True, False]
    """
    return is_list(kind) or kind.startswith(("STRUCT(", "MAP(", "UNION("))


def missing(expression: str, kind: str) -> str:
    """SQL that is true where a value is missing: null, or not a number.

    >>> missing("x", "DOUBLE")
    '(x IS NULL OR isnan(x))'
    """
    return (
        f"({expression} IS NULL OR isnan({expression}))"
        if is_float(kind)
        else (f"({expression} IS NULL)")
    )


def one_row(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    """The single row that a query returns.

    `fetchone` would leave the result open, and with it the connection busy.
    """
    row: tuple[Any, ...]
    (row,) = connection.execute(sql).fetchall()
    return row


# What libraries and the system say while reading, as one sentence that a user can act on.


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn what DuckDB, Arrow and the system say while reading into one InputError."""
    import duckdb

    try:
        yield
    except duckdb.InterruptException as error:
        raise KeyboardInterrupt from error
    except duckdb.Error as error:
        raise InputError(_sentence(what, str(error))) from error
    except UnicodeDecodeError as error:
        raise InputError(encoding_sentence(what)) from error
    except PermissionError as error:
        raise InputError(f"{what} cannot be read: permission denied.") from error
    except OSError as error:
        raise InputError(f"{what} cannot be read: {first_line(str(error))}") from error


@contextmanager
def streaming(what: str) -> Iterator[None]:
    """`reading`, for the time after a table was opened: rows of Parquet are read when counted.

    A complaint about the SQL itself is ours and stays what it is; so do errors of other work.
    """
    import duckdb

    try:
        yield
    except (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException):
        raise
    except duckdb.Error:
        with reading(what):
            raise


def first_line(message: str) -> str:
    """The first sentence of a library's message, without its kind."""
    line = message.strip().split("\n", 1)[0].strip()
    for kind in (
        "Invalid Input Error: ",
        "IO Error: ",
        "Binder Error: ",
        "Parser Error: ",
        "Out of Memory Error: ",
    ):
        line = line.removeprefix(kind)
    return line if line.endswith((".", "!", "?")) else line + "."


def encoding_sentence(what: str) -> str:
    return (
        f"{what} is not UTF-8 text; save it as UTF-8 "
        "(for example: iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW)."
    )


def _sentence(what: str, message: str) -> str:
    lowered = message.lower()
    if "error when sniffing" in lowered:  # its advice lists every option of DuckDB
        return (
            f"{what} cannot be read: its lines do not have the columns of the header; look for "
            "lines with more or fewer columns, and for quotation marks that are never closed."
        )
    if "pytz" in lowered:
        return (
            f"{what} has moments with a time zone in a column of names (variant, seed, id or "
            "task); write them as text."
        )
    if "utf-8" in lowered or "utf8" in lowered or "unicode" in lowered:
        return encoding_sentence(what)
    if "magic bytes" in lowered or "too small to be a parquet" in lowered:
        return (
            f"{what} is not a complete Parquet file (cut off, or still being written); "
            "write or copy it again."
        )
    if "out of memory" in lowered or "no space left" in lowered:
        return (
            f"{what} needs more memory or temporary disk space than there is "
            f"({first_line(message).rstrip('.')}); {LESS_MEMORY}, or set TMPDIR to a larger disk."
        )
    lines = [line.strip() for line in message.strip().split("\n") if line.strip()]
    told = first_line(message)
    if "csv error" in lowered and len(lines) > 2:
        told = first_line(lines[0]).rstrip(".") + ": " + first_line(lines[2])
    return f"{what} cannot be read: {told}"
