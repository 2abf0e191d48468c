"""A progress bar on standard error, only for people and only when it takes a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
