"""`fairweight demo`: real models, really compressed, really audited, without a network."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.studies.digit_tables import DemoTables

Progress = Callable[[str, int, int], None]


def demo(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="One dense model and its copies, in seconds; nothing about retraining."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Another seed gives other numbers.")] = 0,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Where predictions and report go.")
    ] = "fairweight-demo",
) -> None:
    """Train small classifiers of handwritten digits, prune and quantise them, audit the copies.

    One dense model and its copies, in seconds:

        fairweight demo --quick

    A population: 10 dense models, each with a pruned and an 8-bit copy, so that
    what compression does can be told from what training again does (less than a
    minute on two cores):

        fairweight demo

    Groups are measured on the strokes: how far a digit leans (slant) and how
    much ink it has.
    """
    from importlib.util import find_spec

    from rich.console import Console

    from fairweight.api import audit_table
    from fairweight.cli.progress import bar
    from fairweight.report.terminal import show
    from fairweight.tables.write import check_writable

    if find_spec("sklearn") is None:
        raise InputError(
            "The demo needs scikit-learn, which is not installed: pip install 'fairweight[demo]'"
        )
    if seed < 0:
        raise InputError(f"--seed {seed} cannot be used; give a whole number of at least 0.")
    check_writable(out)
    room = Path(out)
    console = Console()
    with bar() as progress:
        tables = _trained(quick, seed, progress)
        files = _write(tables, room)
        words = {f"--{name}": file for name, file in files.items() if name != "predictions"}
        words |= {"--random-state": str(seed), "--out": str(room / "audit")}
        flags = [word for pair in words.items() for word in pair]
        command = shlex.join(["fairweight", "audit", files["predictions"], *flags])
        made = audit_table(
            files["predictions"],
            examples=files["examples"],
            train=files["train"],
            variants=files.get("variants"),
            random_state=seed,
            command=command,
            progress=progress,
        )
        progress("writing the report", 0, 1)
        made.save(room / "audit")
    show(made.result, console, report=str(room / "audit" / "report.html"))
    console.print(f"The same again, from the tables: {command}", markup=False, soft_wrap=True)


def _trained(quick: bool, seed: int, progress: Progress) -> DemoTables:
    if quick:
        from fairweight.studies.quick_demo import predictions

        progress("training and compressing", 0, 1)
        return predictions(seed=seed)
    from fairweight.studies.population_demo import Recipe, populations

    what = "training and compressing 30 models"
    progress(what, 0, 10)
    return populations(Recipe(seed), progress=lambda done, total: progress(what, done, total))


def _write(tables: DemoTables, room: Path) -> dict[str, str]:
    """Write the tables; the file of each by the name of the option that reads it."""
    from fairweight.tables.write import atomic_file

    room.mkdir(parents=True, exist_ok=True)
    held = {
        "predictions": tables.predictions,
        "examples": tables.examples,
        "train": tables.train,
        "variants": tables.variants,
    }
    written: dict[str, str] = {}
    for name, table in held.items():
        if table is not None:
            written[name] = str(room / f"{name}.parquet")
            with atomic_file(written[name], "wb") as file:
                table.to_parquet(file)
    return written
