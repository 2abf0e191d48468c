"""`fairweight demo`: real models, really compressed, really audited, without a network."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import fairweight as fw
from fairweight.audits import check_report
from fairweight.base.files import atomic_directory, check_folder
from fairweight.cli import options as o
from fairweight.cli.screen import bar, plain_console, show_audit
from fairweight.errors import InputError

TABLES = ("predictions", "examples", "train", "variants")


def demo(
    quick: Annotated[
        bool,
        o.OPTION(
            "One dense model and its copies, in seconds; nothing about retraining.", flag="--quick"
        ),
    ] = False,
    seed: Annotated[int, o.OPTION("Another seed gives other numbers.")] = 0,
    out: Annotated[
        str, o.OPTION("Where models, predictions and report go.", "DIR")
    ] = "fairweight-demo",
    verbose: o.Verbose = False,
    overwrite: o.Overwrite = False,
) -> None:
    """Train small classifiers of handwritten digits, prune and quantise them, audit the copies.

    A population: 8 dense CNNs, each with two pruned copies and an int8 one that
    ONNX Runtime runs. It shows what compression does beyond what retraining does
    (about a minute on two cores):

        fairweight demo

    One dense model and its copies, in seconds and without torch:

        fairweight demo --quick

    Groups are measured on the strokes: how far a digit leans (slant) and how
    much ink it has. The models are in the folder as well.
    """
    if not quick:
        o.require(
            "torch", "onnx", "onnxscript", "onnxruntime", "safetensors",
            remedy="The demo needs {missing}, which is not installed: pip install "
            "'fairweight[lab]'. Without the lab there is a smaller one: fairweight demo --quick.",
        )  # fmt: skip
    from fairweight.auditing.explain.explanations import ExplainRequest
    from fairweight.studies.demo import load, predictions
    from fairweight.studies.population_demo import FamilyRecipe, populations

    if seed < 0:
        raise InputError(f"--seed {seed} cannot be used; give a whole number of at least 0.")
    folder = Path(out)
    check_folder(out, overwrite=overwrite, names=[f"{name}.parquet" for name in TABLES])
    if folder.is_dir():
        check_report(folder / "audit", overwrite=overwrite)
    with bar() as progress:
        with atomic_directory(folder, completion=(), overwrite=overwrite) as unfinished:
            if quick:
                progress("training and compressing", 0, 1)
                tables = predictions(seed=seed)
            else:
                recipe = FamilyRecipe(seed)
                what = f"training and compressing {recipe.models} models"
                progress(what, 0, recipe.members)
                tables = populations(
                    recipe,
                    unfinished / "models",
                    progress=lambda done, total: progress(what, done, total),
                )
            files = {}
            for name in TABLES:
                table = getattr(tables, name)
                if table is not None:
                    table.to_parquet(unfinished / f"{name}.parquet")
                    files[name] = str(folder / f"{name}.parquet")
        words = {f"--{name}": file for name, file in files.items() if name != "predictions"}
        words |= {"--random-state": str(seed), "--out": str(folder / "audit")}
        flags = [word for pair in words.items() for word in pair]
        command = shlex.join(["fairweight", "audit", files["predictions"], *flags])
        made = fw.api.audit_table(
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
        made.save(folder / "audit", overwrite=overwrite)
    report = str(folder / "audit" / "report.html")
    show_audit(made.result, report, made.view, verbose=verbose)
    console = plain_console()
    console.print(f"The same again, from the tables: {command}", soft_wrap=True)
    look = shlex.join(["fairweight", "view", str(folder)])
    console.print(f"Look at single examples: {look}", soft_wrap=True)
