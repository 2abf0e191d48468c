"""Ctrl-C stops a query, also while the main thread sits inside DuckDB."""

from __future__ import annotations

import os
import signal
import threading

import duckdb
import pytest

from fairweight.tables.connection import QueryInterrupts, Workspace

ENDLESS = "SELECT sum(hash(range)) FROM range(100000000000000)"


def listening() -> int:
    """The descriptor that signals are written to; -1 where nobody listens."""
    held = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(held)
    return held


def test_ctrl_c_ends_an_endless_query() -> None:
    # Python's own handler would end the whole test run: only the listener may stop the query.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    workspace = Workspace()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(duckdb.InterruptException):
            workspace.connection.execute(ENDLESS).fetchall()
    finally:
        timer.cancel()
        workspace.close()
        signal.signal(signal.SIGINT, before)


def test_nobody_listens_afterwards() -> None:
    assert listening() == -1
    workspace = Workspace()
    assert listening() != -1
    workspace.close()
    workspace.close()
    assert listening() == -1
    forgotten = Workspace()
    del forgotten
    assert listening() == -1


def test_others_who_listen_are_left_alone() -> None:
    outer = Workspace()
    held = listening()
    inner = Workspace()
    assert listening() == held
    inner.close()
    assert listening() == held
    outer.close()


def test_other_threads_do_not_touch_signals() -> None:
    with duckdb.connect() as connection:
        thread = threading.Thread(target=lambda: QueryInterrupts(connection).close())
        thread.start()
        thread.join()
    assert listening() == -1
