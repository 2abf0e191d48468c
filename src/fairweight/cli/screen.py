"""The screen: progress on standard error, tables and sentences on standard output.

A terminal has bars. Without one (CI, a log file) there is a line every ten seconds.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult
    from fairweight.report.view_model import View
    from fairweight.runs.runner import News

ENDED = ("done", "cached", "failed", "stopped", "again")
LINE_EVERY = 10.0  # seconds between two lines without a terminal
EVERY = 0.1  # seconds between two looks at the numbers; a step of a small network takes less


def plain_console() -> Console:
    """A console that prints names as they are: nothing in them is markup."""
    return Console(markup=False, emoji=False, highlight=False)


def listing(*titles: str, numbers: Collection[str] = ()) -> Table:
    """An empty table without lines; its first column names the rows, numbers stand to the right."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for place, title in enumerate(titles):
        table.add_column(
            title,
            style="bold" if place == 0 else None,
            justify="right" if title in numbers else "left",
            no_wrap=place == 0 or title in numbers,
        )
    return table


def show_facts(facts: Mapping[str, str]) -> None:
    """Print names with what is known of them, a line or more each."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold")
    for name, fact in facts.items():
        grid.add_row(name, fact)
    plain_console().print(grid)


def show_audit(
    result: AuditResult,
    report: str,
    lead: View | None = None,
    *,
    verdict: Verdict | None = None,
    verbose: bool = False,
) -> None:
    """Print what is read first of an audit, and where its report is."""
    from fairweight.report.terminal import show

    show(result, Console(), report=report, lead=lead, verdict=verdict, verbose=verbose)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print on although the reader (head, less) has gone: the exit code stays the verdict's.

    Without it rich would end the program with 1, which here means `fail`.
    """
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _words(field: str) -> TextColumn:
    return TextColumn(f"{{task.{field}}}", markup=False)


@contextmanager
def _bars(*columns: ProgressColumn) -> Iterator[Progress]:
    """Bars on standard error; without a terminal their first words, every ten seconds."""
    console = Console(stderr=True)
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    begun, done = time.monotonic(), threading.Event()

    def say() -> None:
        # A thread of its own: reading a large table is one long call that reports nothing.
        while not done.wait(LINE_EVERY):
            told = "; ".join(_line(task) for task in progress.tasks)
            try:
                print(f"… {told} ({time.monotonic() - begun:.0f} s)", file=sys.stderr, flush=True)
            except (OSError, ValueError):  # nobody reads standard error
                return

    thread = threading.Thread(target=say, daemon=True)
    with progress:
        if not console.is_terminal:
            with suppress(RuntimeError):  # no memory for a thread: then without lines
                thread.start()
        try:
            yield progress
        finally:
            done.set()
            if thread.ident is not None:
                thread.join()


def _line(task: Task) -> str:
    """What a bar says, in a line."""
    more = [str(task.fields[name]) for name in ("numbers", "words") if task.fields.get(name)]
    if task.total is not None and task.total > 1:
        more.insert(0, f"{task.completed:,.0f} of {task.total:,.0f}")
    return f"{task.description}: {', '.join(more)}" if more else str(task.description)


@contextmanager
def bar() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function (what, done, total) that moves a bar."""
    columns = (SpinnerColumn(), _words("description"), BarColumn(bar_width=30), TimeElapsedColumn())
    with _bars(*columns) as progress:
        job = progress.add_task("reading and aligning", total=None)

        def move(what: str, done: int, total: int) -> None:
            progress.update(job, description=what, completed=done, total=total)

        yield move


@contextmanager
def study_bars(name: str) -> Iterator[Callable[[News], None]]:
    """Yield what `fairweight.runs.runner.run` calls.

    One bar is for the whole study, and one for each running stage.
    """
    with _bars(
        _words("description"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        _words("fields[words]"),
        TimeRemainingColumn(),
    ) as progress:
        whole = progress.add_task(name, total=None, words="")
        running: dict[str, TaskID] = {}

        def tell(news: News) -> None:
            key = news.stage.key
            progress.update(whole, completed=news.finished, total=news.stages)
            if news.event == "started":
                running[key] = progress.add_task(news.stage.label, total=None, words="")
            elif news.event == "running" and key in running:
                progress.update(
                    running[key], completed=news.done, total=news.total or None, words=news.words
                )
            elif news.event in ENDED and key in running:
                progress.remove_task(running.pop(key))
            if news.event == "failed":
                progress.console.print(
                    f"failed: {news.stage.label}: {news.words}", markup=False, highlight=False
                )

        yield tell


@contextmanager
def training_bar(what: str) -> Iterator[Callable[[Mapping[str, float], int, int], None]]:
    """Yield what `fairweight.lab.loop.train` calls after each step."""
    with _bars(
        _words("description"),
        BarColumn(bar_width=20),
        _words("fields[numbers]"),
        TimeRemainingColumn(),
        TextColumn("left"),
    ) as progress:
        job = progress.add_task(what, total=None, numbers="reading data")
        last = 0.0

        def move(values: Mapping[str, float], done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= EVERY or done == total:
                last = now
                progress.update(job, completed=done, total=total, numbers=numbers_text(values))

        yield move


def numbers_text(numbers: Mapping[str, float]) -> str:
    """The numbers of a training in words.

    >>> numbers_text({"loss": 0.1234, "accuracy": 0.9876, "sparsity": 0.9})
    'loss 0.123 · accuracy 98.8 % · sparsity 90.0 %'
    >>> numbers_text({})
    'asking the held-out examples'
    """
    if not numbers:
        return "asking the held-out examples"
    parts = [f"loss {numbers['loss']:.3f}"] if "loss" in numbers else []
    shares = [name for name in ("accuracy", "sparsity") if numbers.get(name)]
    return " · ".join([*parts, *(f"{name} {100 * numbers[name]:.1f} %" for name in shares)])
