"""`fairweight methods`: what can be done to a model, and the models that can be trained."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli.lab_options import require_lab
from fairweight.errors import UnknownNameError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

TITLES = {
    "method": "Methods",
    "recipe": "Recipes of the papers: a method with its schedule",
    "int8": "int8, run by ONNX Runtime",
    "loss": "Losses for --distill; a sum is written at+kd",
    "model": "Models for fairweight train --model",
}


def methods(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One method or model in full.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """List what compresses a model, and the models; or one of them with all its fields.

    All of them in one line each, then one in full:

        fairweight methods

        fairweight methods global-magnitude
    """
    require_lab()
    from fairweight.cli.method_rows import method_rows

    rows = method_rows()
    if name:
        known = {row["name"]: row for row in rows}
        if name not in known:
            raise UnknownNameError("Method or model", name, known)
        rows = [known[name]]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, allow_nan=False, default=str))
        return
    from rich.console import Console

    console = Console(highlight=False)
    if name:
        _show_one(console, rows[0])
    else:
        _show_all(console, rows)


def _show_all(console: Console, rows: list[dict[str, Any]]) -> None:
    from rich.text import Text

    width = max(len(row["name"]) for row in rows)
    for kind, title in TITLES.items():
        console.print(Text(title, style="bold"))
        table = _table("", "")
        table.columns[0].min_width = width
        table.show_header = False
        for row in rows:
            if row["kind"] == kind:
                table.add_row(Text(row["name"]), Text(row["summary"]))
        console.print(table)
        console.print()
    console.print(f"{len(rows)} in all; one in full: fairweight methods NAME")


def _show_one(console: Console, row: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    told = {key: row[key] for key in ("name", "summary", "source", "notes") if row.get(key)}
    if row["kind"] == "recipe":
        told["method"] = f"{row['method']}, with the schedule '{row['schedules'][0]['name']}'"
    if row["kind"] in ("model", "loss"):
        options = [f"{option}={default!r}" for option, default in row["options"].items()]
        told["options"] = ", ".join(options) or "none"
    told["example"] = row["example"]
    grid = Table.grid(padding=(0, 2))
    for key, value in told.items():
        grid.add_row(Text(key, style="bold"), Text(value))
    console.print(grid)
    if row.get("fields"):
        console.print()
        console.print(_field_table("field", row["fields"]))
    for schedule in row.get("schedules", ()):
        console.print()
        console.print(Text.assemble(("schedule ", "bold"), (schedule["name"], "bold")))
        console.print(Text(schedule["summary"]))
        console.print(Text(f"updates: {schedule['updates']}"))
        console.print(Text(f"removed: {schedule['removed']}"))
        console.print(_field_table("its field", schedule["fields"]))


def _field_table(title: str, fields: list[dict[str, Any]]) -> Table:
    from rich.text import Text

    table = _table(title, "default", "type", "meaning")
    for field in fields:
        default = "required" if field["required"] else json.dumps(field["default"])
        table.add_row(
            Text(field["name"]), Text(default), Text(field["type"]), Text(field["meaning"])
        )
    return table


def _table(*titles: str) -> Table:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0))
    for place, title in enumerate(titles):
        table.add_column(title, no_wrap=place == 0, style="bold" if place == 0 else "")
    return table
