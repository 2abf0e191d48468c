"""The commands of `fairweight`, as `fairweight --help` lists them.

The module of a command is loaded when the command is used, not for the list.
"""

from __future__ import annotations

import functools
import importlib
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from fairweight import __version__

# Panel, module, command, and the first paragraph of its help.
LISTED = (
    ("Audit", "audit", "audit",
     "Compare compressed models with the dense one: who pays, and is it more than noise?"),
    ("Audit", "audit", "gate",
     "Check compressed models against a policy: pass, fail, or cannot tell."),
    ("Audit", "plan", "plan",
     "Before collecting: how many examples of each group does a margin take?"),
    ("Audit", "audit", "count",
     "Count predictions into a cube: how many examples share groups, label and predictions."),
    ("Audit", "explain", "explain",
     "Audit, and look for what lost examples have in common: exemplars, slices, properties."),
    ("Audit", "explain", "exemplars",
     "Find the examples on which compressed models predict differently from dense ones."),
    ("Audit", "explain", "preflight",
     "Before compressing: which classes, groups and examples are at risk?"),
    ("Audit", "choose", "choose",
     "Choose among variants: by one number, a frontier, or weights, with requirements."),
    ("Audit", "mitigate", "mitigate",
     "What helps: thresholds, overrides or a cascade, each audited again on rows that it was not "
     "fitted on, with who got worse."),
    ("Audit", "lists", "metrics",
     "List every metric, or define one: formula, direction, range, source, undefined cases."),
    ("Lab", "lab", "train",
     "Train a network and write it as a folder: weights (safetensors), card (JSON), ONNX if "
     "wanted."),
    ("Lab", "compress", "compress",
     "Compress a trained model: prune it (and finetune), remove its channels, or make it int8."),
    ("Lab", "predict", "predict",
     "Run models on held-out examples, and write a prediction table for `audit`."),
    ("Lab", "predict", "similarity",
     "How far apart are the representations of two models, block by block?"),
    ("Lab", "precision", "sensitivity",
     "Which layer's compression hurts whom: each unit compressed alone, and left out."),
    ("Lab", "lists", "methods",
     "List what compresses a model, and the models; or one of them with all its fields."),
    ("Lab", "lists", "datasets",
     "List every data set, or one in full: source, licence, files, groups, options."),
    ("Lab", "study", "study",
     "Populations and studies: dense models, their copies, predictions and audits, each made once "
     "and kept."),
    ("Look", "view", "view",
     "Look at audits and single examples in a browser, and annotate them."),
    ("Look", "report", "report",
     "Write a stored audit as a page, a summary for a pull request, a model card or tests; "
     "single figures as files."),
    ("Look", "demo", "demo",
     "Train small classifiers of handwritten digits, prune and quantise them, audit the copies."),
)  # fmt: skip
NAMES = tuple(name for _, _, name, _ in LISTED)
HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


@functools.cache
def parser(name: str) -> Any:
    """The parser of a command, or of a group of commands, with everything that it needs to run."""
    module = next(module for _, module, listed, _ in LISTED if listed == name)
    held = getattr(importlib.import_module(f"fairweight.cli.{module}"), name)
    if isinstance(held, typer.Typer):
        found: Any = typer.main.get_group(held)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode="rich")
        alone.command(name)(held)
        found = typer.main.get_command(alone)
    found.context_settings = {**found.context_settings, **HELP}
    return found


class Commands(typer.core.TyperGroup):
    """All commands: listed by what stands here, loaded when one is used."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for panel, _, name, summary in LISTED:
            self.add_command(
                typer.core.TyperCommand(name, help=summary, rich_help_panel=panel, callback=None)
            )

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, None if listed is None else parser(listed.name or ""), rest


app = typer.Typer(
    name="fairweight",
    cls=Commands,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",  # markdown would import a parser, a third of the start-up time
    pretty_exceptions_enable=False,
    context_settings=HELP,
    help=(
        "Who pays when a neural network is compressed: which classes and groups does the "
        "compressed model treat worse than the dense one, and is that more than noise?\n\n"
        "Start with `fairweight demo --quick`, then with your own predictions: "
        "`fairweight audit dense.csv int8.csv --groups sex,age`."
    ),
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"fairweight {__version__}")
        raise typer.Exit


@app.callback()
def fairweight(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options that stand before a command."""
