"""The commands and the panels under which `fairweight --help` lists them."""

from __future__ import annotations

from typing import Annotated

import typer

from fairweight.cli.audit import audit, count, gate
from fairweight.cli.choose import choose
from fairweight.cli.demo import demo
from fairweight.cli.explain import exemplars, explain, preflight
from fairweight.cli.lab import compress, predict, train
from fairweight.cli.lists import datasets, methods, metrics
from fairweight.cli.mitigate import mitigate
from fairweight.cli.report import report
from fairweight.cli.similarity import similarity
from fairweight.cli.study import claims, study
from fairweight.cli.view import view

AUDIT, LAB, LOOK = "Audit", "Lab", "Look"

app = typer.Typer(
    name="fairweight",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",  # markdown would import a parser, a third of the start-up time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Who pays when a neural network is compressed: which classes and groups does the "
        "compressed model treat worse than the dense one, and is that more than noise?\n\n"
        "Start with `fairweight demo --quick`, then with your own predictions: "
        "`fairweight audit dense.csv int8.csv --groups sex,age`."
    ),
)


def _version(asked: bool) -> None:
    if asked:
        from fairweight import __version__

        typer.echo(f"fairweight {__version__}")
        raise typer.Exit


@app.callback()
def fairweight(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options that stand before a command."""


app.command(rich_help_panel=AUDIT)(audit)
app.command(rich_help_panel=AUDIT)(gate)
app.command(rich_help_panel=AUDIT)(count)
app.command(rich_help_panel=AUDIT)(explain)
app.command(rich_help_panel=AUDIT)(exemplars)
app.command(rich_help_panel=AUDIT)(preflight)
app.command(rich_help_panel=AUDIT)(choose)
app.add_typer(mitigate, rich_help_panel=AUDIT)
app.command(rich_help_panel=AUDIT)(metrics)
app.command(rich_help_panel=LAB)(train)
app.command(rich_help_panel=LAB)(compress)
app.command(rich_help_panel=LAB)(predict)
app.command(rich_help_panel=LAB)(similarity)
app.command(rich_help_panel=LAB)(methods)
app.command(rich_help_panel=LAB)(datasets)
study.command("claims")(claims)
app.add_typer(study, rich_help_panel=LAB)
app.command(rich_help_panel=LOOK)(view)
app.add_typer(report, rich_help_panel=LOOK)
app.command(rich_help_panel=LOOK)(demo)
