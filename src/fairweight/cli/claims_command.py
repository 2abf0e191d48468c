"""`fairweight study claims`: what a paper claims, judged from the results of its study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairweight.cli.options import Overwrite
from fairweight.cli.study_command import STORE, Preset, Which
from fairweight.errors import InputError

if TYPE_CHECKING:
    from fairweight.specs.claims import Claims
    from fairweight.studies.claims.table import Judged

FORMATS = (".md", ".csv", ".json")


def claims(
    which: Which,
    preset: Preset = None,
    results: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help=f"What the study published; by default {STORE}/results/NAME.",
        ),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="A .md, .csv or .json file.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Judge the claims of a study's paper from its results.

    Each claim was written down without them: a quantity, a direction, and the
    smallest effect that matters. The interval that the study stored decides: it
    reproduces, it does not, or it cannot be told at this scale:

        fairweight study claims characterising-bias

        fairweight study claims simon-says --results DIR --out claims.md

    A study of your own, mine.toml, has its claims in mine.claims.toml.
    """
    from fairweight.studies.claims.table import judged
    from fairweight.studies.library import claims as written
    from fairweight.studies.library import study as read
    from fairweight.tables.write import check_file

    if out is not None and Path(out).suffix not in FORMATS:
        raise InputError(f"--out '{out}' must end in {', '.join(FORMATS)}.")
    asked = written(which)
    folder = Path(results or f"{STORE}/results/{read(which, preset).name}")
    if out is not None:
        own = Path(which).with_suffix(".claims.toml") if which.endswith(".toml") else None
        given = [which, str(folder), None if own is None else str(own)]
        check_file(out, inputs=given, overwrite=overwrite)
    found = judged(asked, folder)
    if out is None:
        _show(found)
        return
    _write(asked, found, Path(out))
    typer.echo(f"Written to {out}")


def _write(asked: Claims, found: list[Judged], path: Path) -> None:
    import json

    from fairweight.report.machine import records
    from fairweight.studies.claims.page import markdown, summary
    from fairweight.studies.claims.table import frame
    from fairweight.tables.write import atomic_file

    with atomic_file(path) as file:
        if path.suffix == ".md":
            file.write(markdown(asked, found))
        elif path.suffix == ".csv":
            frame(found).to_csv(file, index=False, lineterminator="\n")
        else:
            document = {
                "schema": 1,
                "paper": asked.paper,
                "written": asked.written,
                "summary": summary(found),
                "lines": records(frame(found)),
            }
            json.dump(document, file, ensure_ascii=False, allow_nan=False, indent=2)


def _show(found: list[Judged]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fairweight.studies.claims.page import needed, summary, told

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("claim", "it would take", "this run", "verdict"):
        table.add_column(column, style="bold" if column == "claim" else None)
    for one in found:
        takes = Text(needed(one.claim))
        if one.lines[0][0]:
            table.add_row(Text(one.claim.id), takes, "", Text(one.verdict, style="bold"))
        for line, estimate, verdict in one.lines:
            reason = f": {estimate.reason}" if estimate.reason else ""
            name, needs = (f"  {line}", Text("")) if line else (one.claim.id, takes)
            table.add_row(Text(name), needs, Text(told(estimate)), Text(verdict + reason))
    console = Console(highlight=False)
    console.print(table)
    console.print()
    console.print(Text(summary(found)))
