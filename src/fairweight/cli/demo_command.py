"""`fairweight demo`: a real model, really compressed, really audited, without a network."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from fairweight.errors import InputError


def demo(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="A small network on scikit-learn's digits (what there is so far)."
        ),
    ] = True,
    seed: Annotated[int, typer.Option(help="Another seed gives other numbers.")] = 0,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Where predictions and report go.")
    ] = "fairweight-demo",
) -> None:
    """Train a small classifier of handwritten digits, prune and quantise it, and audit the copies.

        fairweight demo --quick

    Groups are measured on the strokes: how far a digit leans (slant) and how much ink it has.
    """
    from importlib.util import find_spec

    from rich.console import Console

    from fairweight.api import audit_table
    from fairweight.cli.progress import bar
    from fairweight.report.terminal import show
    from fairweight.tables.write import atomic_file, check_writable

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
        progress("training and compressing", 0, 3)
        from fairweight.studies.quick_demo import predictions

        tables = predictions(seed=seed)
        room.mkdir(parents=True, exist_ok=True)
        names = {
            "predictions": tables.predictions,
            "examples": tables.examples,
            "train": tables.train,
        }
        for name, table in names.items():
            with atomic_file(room / f"{name}.parquet", "wb") as file:
                table.to_parquet(file)
        progress("auditing", 1, 3)
        words = {
            "--examples": room / "examples.parquet",
            "--train": room / "train.parquet",
            "--random-state": seed,
            "--out": room / "audit",
        }
        flags = [str(word) for pair in words.items() for word in pair]
        command = shlex.join(["fairweight", "audit", str(room / "predictions.parquet"), *flags])
        made = audit_table(
            str(room / "predictions.parquet"),
            examples=str(room / "examples.parquet"),
            train=str(room / "train.parquet"),
            random_state=seed,
            command=command,
        )
        progress("writing the report", 2, 3)
        made.save(room / "audit")
    show(made.result, console, report=str(room / "audit" / "report.html"))
    console.print(f"The same again, from the tables: {command}", markup=False, soft_wrap=True)
