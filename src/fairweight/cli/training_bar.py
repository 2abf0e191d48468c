"""The progress of a training: loss, accuracy, sparsity and the time left, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

EVERY = 0.1  # seconds between two looks at the numbers; a step of a small network takes less


@contextmanager
def training_bar(what: str) -> Iterator[Callable[[Mapping[str, float], int, int], None]]:
    """Yield what `fairweight.lab.train.train` calls after each step; silent without a terminal."""
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
