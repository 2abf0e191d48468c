"""`fairweight methods`: what can be done to a model, and the models that can be trained."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairweight.cli.options import require_lab
from fairweight.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fairweight.data import Dataset
    from fairweight.lab.compression.descriptions import Entry, ScheduleEntry
    from fairweight.lab.distillation.registry import DistillationLoss
    from fairweight.lab.models import Architecture
    from fairweight.specs.toml import SpecField

TITLES = {
    "method": "Methods",
    "recipe": "Recipes of the papers: a method with its schedule",
    "int8": "int8 and fewer bits, run by ONNX Runtime",
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
        _show_method(console, rows[0])
    else:
        _show_methods(console, rows)


def _show_methods(console: Console, rows: list[dict[str, Any]]) -> None:
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


def _show_method(console: Console, row: dict[str, Any]) -> None:
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


# Methods and models as plain rows, for tables and for JSON; this imports the lab.

# Recipes that begin with random weights, with the length of their training: on MNIST, 24 epochs
# are the 10,000 steps of Hooker et al., and 360 are eleven rounds and the training before them.
FROM_SCRATCH = {
    "agp-filters": "--epochs 240",
    "agp-weights": "--epochs 240",
    "gmp-random-init": "--epochs 100",
    "gmp-random-init-short": "--epochs 20",
    "zhu-gupta": "--epochs 24",
    "iterative-magnitude": "--epochs 360",
}


def method_rows() -> list[dict[str, Any]]:
    """Everything that `fairweight methods` lists, in its order."""
    from fairweight.lab.compression.descriptions import catalogue
    from fairweight.lab.distillation.registry import losses
    from fairweight.lab.models import architectures

    return [
        *map(_method_row, catalogue()),
        *map(_row_of_loss, losses()),
        *map(_row_of_model, architectures()),
    ]


def _method_row(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": entry.kind,
        "method": entry.method,
        "summary": entry.summary,
        "source": entry.source,
        "fields": _field_rows(entry.fields),
        "schedules": [_schedule_row(schedule) for schedule in entry.schedules],
        "example": _example(entry),
    }


def _row_of_loss(entry: DistillationLoss) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": "loss",
        "summary": entry.summary,
        "source": entry.source,
        "notes": f"Reads {entry.reads}; weighs {entry.weight:g} beside {entry.ce:g} of the "
        "cross-entropy." + (" Acts only in a stage before the training." if entry.initial else ""),
        "options": entry.options,
        "example": "fairweight compress models/dense-0 --method global-magnitude --sparsity 0.9 "
        f"--epochs 3 --lr 0.01 --distill {entry.name}",
    }


def _row_of_model(entry: Architecture) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": "model",
        "summary": entry.summary,
        "source": entry.source,
        "notes": inspect.getdoc(entry.builder) or "",
        "options": entry.defaults,
        "example": f"fairweight train --dataset cifar10 --data DIR --model {entry.name}",
    }


def _schedule_row(schedule: ScheduleEntry) -> dict[str, Any]:
    return {
        "name": schedule.name,
        "summary": schedule.summary,
        "updates": schedule.formula.updates,
        "removed": schedule.formula.removed,
        "fields": _field_rows(schedule.fields),
    }


def _field_rows(fields: Iterable[SpecField]) -> list[dict[str, Any]]:
    return [
        {
            "name": field.name,
            "type": field.type,
            "required": field.required,
            "default": field.default,
            "meaning": field.meaning,
        }
        for field in fields
    ]


def _example(entry: Entry) -> str:
    names = {field.name for field in entry.fields}
    told = f"--method {entry.name}" + (" --sparsity 0.9" if "sparsity" in names else "")
    if entry.name in FROM_SCRATCH:
        return f"fairweight train --dataset mnist --data DIR {told} {FROM_SCRATCH[entry.name]}"
    if entry.kind == "recipe":
        told += " --epochs 80 --lr 0.005"
    elif entry.trains == "must":
        told += " --epochs 3 --lr 0.01"
    elif "dim" in names:
        told = told.replace("0.9", "0.5") + " --remove-channels"
    elif "bits" in names:
        told += " --method-option bits=4"
    elif "indivisible" in names:
        told += " --method-option indivisible=leave"
    return f"fairweight compress models/dense-0 {told}"


# `fairweight datasets`: the registry of data sets, and which of them a folder holds.


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
    rows = [_dataset_row(entry, folder) for entry in chosen]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, allow_nan=False, default=str))
        return
    from rich.console import Console

    console = Console(highlight=False)
    if name:
        _show_dataset(console, rows[0])
    else:
        _show_datasets(console, rows, folder)


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


def _dataset_row(entry: Dataset, folder: Path | None) -> dict[str, Any]:
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


def _show_datasets(console: Console, rows: list[dict[str, Any]], folder: Path | None) -> None:
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


def _show_dataset(console: Console, row: dict[str, Any]) -> None:
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


# `fairweight metrics`: the registry with its definitions.


def metrics(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One metric in full.", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, for programs.")] = False,
) -> None:
    """List every metric, or define one: formula, direction, range, source, undefined cases.

    All of them in one line each, then one in full:

        fairweight metrics

        fairweight metrics cev
    """
    import fairweight.auditing.metrics as registered
    from fairweight.auditing.metrics.registry import metric

    chosen = [metric(name)] if name else list(registered.registry.metrics())
    rows = [
        {
            "name": entry.name,
            "summary": entry.summary,
            "formula": entry.formula,
            "better": entry.better,
            "range": [_finite(entry.low), _finite(entry.high)],
            "by": list(entry.by),
            "source": entry.source,
            "undefined": entry.undefined,
        }
        for entry in chosen
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, allow_nan=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if name:
        grid = Table.grid(padding=(0, 2))
        for key, value in rows[0].items():
            parts = value if isinstance(value, list) else [value]
            shown = ", ".join("∞" if part is None else str(part) for part in parts)
            grid.add_row(Text(key, style="bold"), Text(shown))
        console.print(grid)
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("metric", style="bold", no_wrap=True)
    table.add_column("better")
    table.add_column("what it is")
    for row in rows:
        table.add_row(Text(str(row["name"])), str(row["better"]), Text(str(row["summary"])))
    console.print(table)
    console.print(f"\n{len(rows)} metrics; one in full: fairweight metrics NAME", highlight=False)


def _finite(end: float) -> float | None:
    """An end of a range; None where the range has none (JSON knows no infinity)."""
    return end if math.isfinite(end) else None
