"""Ctrl-C for DuckDB: the main thread may sit inside a query and hear nothing.

Python runs signal handlers in the main thread, between two of its own instructions. While that
thread waits inside DuckDB for work that another thread does, Ctrl-C would have to wait too, for
hours. The system's own handler writes to a socket at once, and a thread that listens there stops
the query.
"""

from __future__ import annotations

import signal
import socket
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

STOP = b"\0"  # no signal has the number 0


class Interrupts:
    """Stops the queries of connections on Ctrl-C, until it is closed or forgotten.

    Nothing is done outside of the main thread, or where somebody (an event loop) listens already.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._release: weakref.finalize[..., Interrupts] | None = None
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
