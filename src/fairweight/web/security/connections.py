"""Requests arrive whole and in time, so that those who only begin one keep nobody out.

uvicorn has a time limit between two requests and none within one, and its limit of connections
counts those that have sent half a line. Here a connection that waits for its client (nothing came
yet, half a request, the pause after an answer) has a time to do so, and of such connections there
are at most `MOST_WAITING`: one more, and another is cut off. Those that have asked something
already go first, then those that have waited longest. Requests that are there in full have places
of their own.
"""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_AT_ONCE = 200  # whole requests; beyond it one is answered with 503
# So many that a client which sends at once is read before as many others can connect.
MOST_WAITING = 500
HEAD_SECONDS = 10.0  # from the end of the last answer, or the connection, to the end of the headers
BODY_SECONDS = 120.0  # the largest file that may be imported, at half a megabit per second
READ_SECONDS = 60.0  # for which an answer is held that nobody fetches


class TimelyProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with an end to waiting."""

    _phase: Any = None  # what is waited for: headers (IDLE), a body (SEND_BODY), or nothing
    _since = 0.0
    _limit: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(READ_SECONDS, self._cut_off)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _watch(self) -> None:
        """Start the time of what is waited for, when that has changed."""
        state = self.conn.their_state
        phase = state if state in (h11.IDLE, h11.SEND_BODY) else None
        if phase is self._phase or self.transport.is_closing():
            return
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None
        if self._phase is None:  # a body belongs to the wait that began with its headers
            self._since = self.loop.time()
        self._phase = phase
        if phase is None:
            return
        seconds = HEAD_SECONDS if phase is h11.IDLE else BODY_SECONDS
        self._limit = self.loop.call_later(seconds, self._cut_off)
        others: set[Any] = self.connections
        waiting = [one for one in others if one._phase is not None]
        if len(waiting) > MOST_WAITING:
            min(waiting, key=lambda one: (one.cycle is None, one._since))._cut_off()

    def _cut_off(self) -> None:
        self._stop_timers()
        self.connections.discard(self)  # its place is free now, not when the loop comes round
        self.transport.abort()

    def _stop_timers(self) -> None:
        for timer in (self._limit, self._unread):
            if timer is not None:
                timer.cancel()
        self._limit = self._unread = None
