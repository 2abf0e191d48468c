"""An index built in a process of its own: pages stay quick, and it ends when it is told to."""

from __future__ import annotations

import multiprocessing
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from fairweight.errors import FairweightError, InputError
from fairweight.web.item import Item
from fairweight.web.votes.build import indexed
from fairweight.web.votes.write import Progress

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

LISTEN = 0.1  # seconds between two words of progress, at most
CLEAR_UP = 2.0  # seconds for a process that was stopped


def built_apart(item: Item, progress: Progress) -> None:
    """Build an item's index; whoever is told of the progress may stop it by raising."""
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=_build, args=(item, writer), daemon=True)
    process.start()
    writer.close()
    try:
        _listen(reader, progress)
    except BaseException:
        # Ctrl-C is heard even inside a query, and what is half-written is removed.
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, signal.SIGINT)
        raise
    finally:
        reader.close()
        process.join(CLEAR_UP)
        if process.is_alive():
            process.kill()
            process.join()


def _listen(reader: Connection, progress: Progress) -> None:
    at = ("reading predictions", 0, 1)
    while True:
        progress(*at)
        if not reader.poll(LISTEN):
            continue
        try:
            told = reader.recv()
        except EOFError:
            raise RuntimeError("the process that builds the index ended without a word") from None
        if told is None:
            return
        if isinstance(told, Exception):
            raise told
        at = told


def _build(item: Item, writer: Connection) -> None:
    def told(*words: object) -> None:
        writer.send(words)

    with suppress(KeyboardInterrupt, BrokenPipeError):
        try:
            indexed(item, told)
            writer.send(None)
        except FairweightError as error:
            writer.send(InputError(str(error)))
        except Exception as error:  # those of libraries may not survive the way as they are
            writer.send(RuntimeError(f"{type(error).__name__}: {error}"))
