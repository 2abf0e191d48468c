"""`fairweight datasets`: the registry of data sets, and which of them a folder holds."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from fairweight.data import Dataset


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One data set in full.", show_default=False),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Say which of them are in this folder, by the names of files.",
            envvar="FAIRWEIGHT_DATA",
            show_envvar=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """List every data set, or one in full: source, licence, files, groups, options.

    Without --data the variable FAIRWEIGHT_DATA names the folder. All of them in one line each,
    with those that a folder holds, and one in full:

        fairweight datasets --data ~/data

        fairweight datasets mnist
    """
    import fairweight.data as registered

    folder = _folder(data)
    chosen = [registered.dataset(name)] if name else list(registered.datasets())
    rows = [_row(entry, folder) for entry in chosen]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, allow_nan=False, default=str))
        return
    from rich.console import Console

    console = Console(highlight=False)
    if name:
        _show_one(console, rows[0])
    else:
        _show_all(console, rows, folder)


def _folder(given: str | None) -> Path | None:
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise InputError(
            f"The data folder '{given}' (--data, or FAIRWEIGHT_DATA) does not exist or is no "
            "folder; give one that does."
        )
    return folder


def _row(entry: Dataset, folder: Path | None) -> dict[str, Any]:
    found, missing = entry.found_in(folder) if folder is not None else (None, ())
    return {
        "name": entry.name,
        "summary": entry.summary,
        "source": entry.source,
        "files": list(entry.layout),
        "groups": list(entry.groups),
        "options": entry.options,
        "notes": inspect.getdoc(entry.function) or "",
        "found": found,  # null: no folder was searched
        "missing": list(missing),
    }


def _show_all(console: Console, rows: list[dict[str, Any]], folder: Path | None) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("data set", style="bold", no_wrap=True)
    if folder is not None:
        table.add_column("found", no_wrap=True)
    table.add_column("what it is")
    table.add_column("groups")
    for row in rows:
        cells = [row["name"], row["summary"], ", ".join(row["groups"])]
        if folder is not None:
            cells.insert(1, row["found"])
        table.add_row(*map(Text, cells))
    console.print(table)
    if folder is not None:
        console.print(Text(f"\nLooked for the names of files in {folder}; none was read."))
    console.print(f"\n{len(rows)} data sets; one in full: fairweight datasets NAME")


def _show_one(console: Console, row: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    options = [f"{option}={default!r}" for option, default in row["options"].items()]
    told = {
        "name": row["name"],
        "summary": row["summary"],
        "source": row["source"],
        "files": "\n".join(row["files"]) or "none are needed",
        "groups": ", ".join(row["groups"]) or "none of its own",
        "options": "\n".join(options) or "none",
        "notes": row["notes"],
        "found": row["found"],
        "missing": "\n".join(row["missing"]) if row["found"] == "in part" else "",
    }
    grid = Table.grid(padding=(0, 2))
    for key, value in told.items():
        if value:
            grid.add_row(Text(key, style="bold"), Text(value))
    console.print(grid)
