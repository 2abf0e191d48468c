"""Commands that kill themselves at the k-th thing they do to files below a folder.

`python killer.py` imports once and forks a process for every line of JSON that it reads (`Order`),
so that hundreds of kills do not start Python hundreds of times. Before each thing it is to do below
the folder (open for writing, write, sync, rename, link, unlink, make or remove a folder, a
statement of SQLite) the process counts; at the k-th it writes down what that is and sends itself
SIGKILL: at once, or `delay` seconds later, from a thread, in the midst of it.
"""

from __future__ import annotations

import builtins
import importlib
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OPENED_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
PATHS = {  # audit events of Python, and how many of their first arguments are paths
    "os.rename": 2, "os.remove": 1, "os.rmdir": 1, "os.mkdir": 1, "os.link": 2, "os.symlink": 2,
    "os.truncate": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Order:
    """A command line, what is watched, and when the end comes; `at` 0 is never."""

    arguments: list[str]
    folder: str
    log: str
    at: int = 0
    delay: float = 0.0
    output: str = os.devnull
    environment: dict[str, str] | None = None
    modules: str = os.devnull  # where the names of the modules go that it had loaded in the end


@dataclass(frozen=True)
class Done:
    """What was about to be done, as the log tells."""

    number: int
    what: str
    path: str


class Watch:
    """Counts, writes down, kills."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.root = os.path.realpath(order.folder)
        self.count = 0
        self.log = os.open(order.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.inside = threading.local()
        self.note = os.write

    def start(self) -> None:
        sys.addaudithook(self.audited)
        io.open = builtins.open = self.watched(open)
        sqlite3.connect = self.connected(sqlite3.connect)
        for name in ("fsync", "fdatasync", "write"):
            setattr(os, name, self.counted(getattr(os, name), name))

    def watched(self, opened: Callable[..., Any]) -> Callable[..., Any]:
        """Open as ever; what is written is counted."""

        def open_(*arguments: Any, **options: Any) -> Any:
            file = opened(*arguments, **options)
            if file.writable() and self.below(arguments[0]) is not None:
                file.write = self.counted(file.write, "write", arguments[0])
            return file

        return open_

    def counted(self, function: Callable[..., Any], what: str, path: Any = None) -> Any:
        def counts(*arguments: Any) -> Any:
            self.met(what, arguments[0] if path is None else path)
            return function(*arguments)

        return counts

    def audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & OPENED_TO_WRITE:
                self.met("open", path)
        elif event in PATHS:
            if event == "os.mkdir" and os.path.isdir(arguments[0]):
                return  # it is there: nothing will be done
            self.met(event.removeprefix("os."), *arguments[: PATHS[event]])

    def connected(self, connect: Callable[..., sqlite3.Connection]) -> Callable[..., Any]:
        def connect_(*arguments: Any, **options: Any) -> sqlite3.Connection:
            handle = connect(*arguments, **options)
            handle.set_trace_callback(self.stated)
            return handle

        return connect_

    def stated(self, text: str) -> None:
        if text.startswith(("BEGIN", "INSERT", "COMMIT", "CREATE", "PRAGMA application")):
            self.met(f"sqlite {text.split()[0]}", self.root)

    def met(self, what: str, *paths: Any) -> None:
        """One more, if it is below the folder."""
        if getattr(self.inside, "here", False):
            return
        self.inside.here = True
        try:
            below = [text for path in paths if (text := self.below(path)) is not None]
            if below:
                self.count += 1
                line = json.dumps(asdict(Done(self.count, what, " → ".join(below))))
                if self.order.at in (0, self.count):
                    self.note(self.log, f"{line}\n".encode())
                if self.order.at == self.count:
                    self.kill()
        finally:
            self.inside.here = False

    def below(self, path: Any) -> str | None:
        """The path relative to the folder; None where it is elsewhere, or no path."""
        if isinstance(path, int):
            try:
                path = os.readlink(f"/proc/self/fd/{path}")
            except OSError:
                return None
        if not isinstance(path, str | bytes | os.PathLike):
            return None
        whole = os.path.join(os.getcwd(), os.fsdecode(path))
        place = os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
        if place != self.root and not place.startswith(f"{self.root}/"):
            return None
        return os.path.relpath(place, self.root)

    def kill(self) -> None:
        if self.order.delay:
            threading.Thread(target=self.kill_later, daemon=True).start()
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    def kill_later(self) -> None:
        until = time.perf_counter() + self.order.delay
        while time.perf_counter() < until:
            pass
        os.kill(os.getpid(), signal.SIGKILL)


def obey(order: Order) -> None:
    """Run the command line in this process, which does not come back."""
    code = 99
    try:
        os.environ.update(order.environment or {})
        output = os.open(order.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        import fairweight.report.html
        from fairweight import cli

        # The page takes seconds and is one file, whatever is in it.
        fairweight.report.html.render = lambda *_: "<!doctype html>"
        Watch(order).start()
        code = cli.run(order.arguments)
        Path(order.modules).write_text("\n".join(sys.modules), encoding="utf-8")
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def main() -> None:
    for name in sys.stdin.readline().split():
        with suppress(Exception):  # some are parts of others, and some have gone
            importlib.import_module(name)
    for line in sys.stdin:
        order = Order(**json.loads(line))
        process = os.fork()
        if process == 0:
            obey(order)
        print(process, flush=True)
        _, status = os.waitpid(process, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


class Killer:
    """The other end: gives orders."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def begin(self, order: Order) -> int:
        """Start a command; the number of its process."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(asdict(order))}\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self) -> int:
        """Wait for it; its exit code, or minus the number of the signal that ended it."""
        return self._answer()

    def run(self, order: Order) -> int:
        self.begin(order)
        return self.end()

    def _answer(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())


@contextmanager
def killer(imports: str = "") -> Iterator[Killer]:
    """A process that obeys orders; `imports` are names of modules that it loads beforehand."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", __file__],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(" ".join(imports.split()) + "\n")
    process.stdin.flush()
    try:
        yield Killer(process)
    finally:
        process.communicate()


def read_log(path: str | Path) -> list[Done]:
    return [Done(**json.loads(line)) for line in Path(path).read_text().splitlines()]


if __name__ == "__main__":
    main()
