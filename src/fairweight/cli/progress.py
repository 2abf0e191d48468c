"""A progress bar on standard error, only for people and only when it takes a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairweight.runs.runner import News


@contextmanager
def bar() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a function (what, done, total) that moves a bar; without a terminal it is silent."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        job = progress.add_task("reading", total=None)

        def move(what: str, done: int, total: int) -> None:
            progress.update(job, description=what, completed=done, total=total)

        yield move


# Progress bars of a study: one for the whole, one for each running stage, on standard error.

ENDED = ("done", "cached", "failed", "stopped", "again")


@contextmanager
def study_bars(name: str) -> Iterator[Callable[[News], None]]:
    """Yield what `fairweight.runs.runner.run` calls; without a terminal only failures are told."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
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
                console.print(
                    f"failed: {news.stage.label}: {news.words}", markup=False, highlight=False
                )

        yield tell


# The progress of a training: loss, accuracy, sparsity and the time left, on standard error.

EVERY = 0.1  # seconds between two looks at the numbers; a step of a small network takes less


@contextmanager
def training_bar(what: str) -> Iterator[Callable[[Mapping[str, float], int, int], None]]:
    """Yield what `fairweight.lab.loop.train` calls after each step; silent without a terminal."""
    import time

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[numbers]}", markup=False),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        job = progress.add_task(what, total=None, numbers="reading data")
        last = 0.0

        def move(numbers: Mapping[str, float], done: int, total: int) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last >= EVERY or done == total:
                last = now
                progress.update(job, completed=done, total=total, numbers=shown(numbers))

        yield move


def shown(numbers: Mapping[str, float]) -> str:
    """The numbers as words.

    >>> shown({"loss": 0.1234, "accuracy": 0.9876, "sparsity": 0.9})
    'loss 0.123 · accuracy 98.8 % · sparsity 90.0 %'
    """
    parts = [f"loss {numbers['loss']:.3f}"] if "loss" in numbers else []
    parts += [
        f"{name} {100 * numbers[name]:.1f} %"
        for name in ("accuracy", "sparsity")
        if numbers.get(name)
    ]
    return " · ".join(parts)
