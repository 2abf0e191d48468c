"""Ctrl-C: once asks to stop where one can go on, twice means at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Interrupts:
    """While entered, the first Ctrl-C is only noted; the second raises `KeyboardInterrupt`."""

    def __init__(self) -> None:
        self.asked = False
        self._before: signal.Handlers | object = None

    def __enter__(self) -> Interrupts:
        # Only the main thread may say what signals do; who ignores Ctrl-C goes on ignoring it.
        if (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
        ):
            self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
