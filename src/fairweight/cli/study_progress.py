"""Progress bars of a study: one for the whole, one for each running stage, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairweight.runs.outcome import News

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
