"""`fairweight demo`: real models, really compressed, really audited, without a network."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairweight.cli.options import Overwrite
from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.base.types import Progress
    from fairweight.studies.demo import DemoTables

TABLES = ("predictions", "examples", "train", "variants")


def demo(
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="One dense model and its copies, in seconds; nothing about retraining."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Another seed gives other numbers.")] = 0,
    out: Annotated[
        str, typer.Option(metavar="DIR", help="Where models, predictions and report go.")
    ] = "fairweight-demo",
    overwrite: Overwrite = False,
) -> None:
    """Train small classifiers of handwritten digits, prune and quantise them, audit the copies.

    A population: 8 dense CNNs, each with two pruned copies and an int8 one that
    ONNX Runtime runs, so that what compression does can be told from what training
    again does (about a minute on two cores):

        fairweight demo

    One dense model and its copies, in seconds and without torch:

        fairweight demo --quick

    Groups are measured on the strokes: how far a digit leans (slant) and how
    much ink it has. The models are in the folder as well.
    """
    from rich.console import Console

    from fairweight.api import audit_table
    from fairweight.auditing.explain.explanations import ExplainRequest
    from fairweight.base.files import check_folder
    from fairweight.cli.progress import bar
    from fairweight.report.html import names
    from fairweight.report.terminal import show
    from fairweight.studies.demo import load

    _check_installed(quick)
    if seed < 0:
        raise InputError(f"--seed {seed} cannot be used; give a whole number of at least 0.")
    room = Path(out)
    check_folder(out, overwrite=overwrite, names=[f"{name}.parquet" for name in TABLES])
    if room.is_dir():
        check_folder(str(room / "audit"), overwrite=overwrite, names=names())
    console = Console()
    with bar() as progress:
        files = _make(quick, seed, room, progress, overwrite)
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
            explain=ExplainRequest(("exemplars",), random_state=seed, images=load(seed).test),
            command=command,
            progress=progress,
        )
        progress("writing the report", 0, 1)
        made.save(room / "audit", overwrite=overwrite)
    show(made.result, console, report=str(room / "audit" / "report.html"))
    console.print(f"The same again, from the tables: {command}", markup=False, soft_wrap=True)
    look = shlex.join(["fairweight", "view", str(room)])
    console.print(f"Look at single examples: {look}", markup=False, soft_wrap=True)


def _check_installed(quick: bool) -> None:
    """What the demo needs beside the audit; nothing of it is imported here."""
    from importlib.util import find_spec

    lab = () if quick else ("torch", "onnx", "onnxscript", "onnxruntime", "safetensors")
    missing = next((name for name in lab if find_spec(name) is None), None)
    if missing is not None:
        raise InputError(
            f"The demo needs {missing}, which is not installed: pip install 'fairweight[lab]'. "
            "Without the lab there is a smaller one: fairweight demo --quick."
        )


def _make(
    quick: bool, seed: int, room: Path, progress: Progress, overwrite: bool
) -> dict[str, str]:
    """Write models and tables; the file of each table by the name of the option that reads it."""
    from fairweight.base.files import atomic_directory

    with atomic_directory(room, completion=(), overwrite=overwrite) as unfinished:
        tables = _trained(quick, seed, unfinished / "models", progress)
        held = {name: getattr(tables, name) for name in TABLES}
        written = {name: table for name, table in held.items() if table is not None}
        for name, table in written.items():
            table.to_parquet(unfinished / f"{name}.parquet")
    return {name: str(room / f"{name}.parquet") for name in written}


def _trained(quick: bool, seed: int, models: Path, progress: Progress) -> DemoTables:
    if quick:
        from fairweight.studies.demo import predictions

        progress("training and compressing", 0, 1)
        return predictions(seed=seed)
    from fairweight.studies.population_demo import FamilyRecipe, populations

    recipe = FamilyRecipe(seed)
    what = f"training and compressing {recipe.models} models"
    progress(what, 0, recipe.members)
    return populations(recipe, models, progress=lambda done, total: progress(what, done, total))
