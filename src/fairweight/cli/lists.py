"""`fairweight methods`, `datasets` and `metrics`: what there is, for people and for programs."""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from fairweight.cli import options as o
from fairweight.cli.screen import listing, plain_console, show_facts
from fairweight.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from fairweight.lab.compression.descriptions import Entry

TITLES = {
    "method": "Methods",
    "recipe": "Recipes of the papers: a method with its schedule",
    "int8": "int8 and fewer bits, run by ONNX Runtime",
    "loss": "Losses for --distill; a sum is written at+kd",
    "model": "Models for fairweight train --model",
}
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


def methods(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One method or model in full.", show_default=False),
    ] = None,
    as_json: Annotated[bool, o.OPTION("As JSON, for programs.", flag="--json")] = False,
) -> None:
    """List what compresses a model, and the models; or one of them with all its fields.

    All of them in one line each, then one in full:

        fairweight methods

        fairweight methods global-magnitude
    """
    o.require_lab()
    rows = method_rows()
    if name:
        known = {row["name"]: row for row in rows}
        if name not in known:
            raise UnknownNameError("Method or model", name, known)
        rows = [known[name]]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, allow_nan=False, default=str))
        return
    if name:
        _show_method(rows[0])
        return
    console = plain_console()
    width = max(len(row["name"]) for row in rows)
    for kind, title in TITLES.items():
        console.print(Text(title, style="bold"))
        table = listing("", "")
        table.columns[0].min_width = width
        table.show_header = False
        for row in rows:
            if row["kind"] == kind:
                table.add_row(row["name"], row["summary"])
        console.print(table)
        console.print()
    console.print(f"{len(rows)} in all; one in full: fairweight methods NAME")


def _show_method(row: dict[str, Any]) -> None:
    """Print a method, a loss or a model with its fields and schedules."""
    told = {key: row[key] for key in ("name", "summary", "source", "notes") if row.get(key)}
    if row["kind"] == "recipe":
        told["method"] = f"{row['method']}, with the schedule '{row['schedules'][0]['name']}'"
    if row["kind"] in ("model", "loss"):
        told["options"] = ", ".join(_with_defaults(row["options"])) or "none"
    told["example"] = row["example"]
    show_facts(told)
    console = plain_console()
    if row.get("fields"):
        console.print()
        console.print(_field_table("field", row["fields"]))
    for schedule in row.get("schedules", ()):
        console.print()
        console.print(Text(f"schedule {schedule['name']}", style="bold"))
        console.print(schedule["summary"])
        console.print(f"updates: {schedule['updates']}")
        console.print(f"removed: {schedule['removed']}")
        console.print(_field_table("its field", schedule["fields"]))


def _with_defaults(options: dict[str, Any]) -> list[str]:
    return [f"{option}={default!r}" for option, default in options.items()]


def _field_table(title: str, fields: list[dict[str, Any]]) -> Table:
    table = listing(title, "default", "type", "meaning")
    for field in fields:
        default = "required" if field["required"] else json.dumps(field["default"])
        table.add_row(field["name"], default, field["type"], field["meaning"])
    return table


def method_rows() -> list[dict[str, Any]]:
    """Everything that `fairweight methods` lists, in its order, as plain values."""
    from fairweight.lab.compression.descriptions import catalogue
    from fairweight.lab.distillation.registry import losses
    from fairweight.lab.models import architectures

    methods = [
        {
            "name": entry.name,
            "kind": entry.kind,
            "method": entry.method,
            "summary": entry.summary,
            "source": entry.source,
            "fields": [asdict(field) for field in entry.fields],
            "schedules": [
                {
                    "name": schedule.name,
                    "summary": schedule.summary,
                    **asdict(schedule.formula),
                    "fields": [asdict(field) for field in schedule.fields],
                }
                for schedule in entry.schedules
            ],
            "example": _example(entry),
        }
        for entry in catalogue()
    ]
    distillation = [
        {
            "name": loss.name,
            "kind": "loss",
            "summary": loss.summary,
            "source": loss.source,
            "notes": f"Reads {loss.reads}; weighs {loss.weight:g} beside {loss.ce:g} of the "
            "cross-entropy."
            + (" Acts only in a stage before the training." if loss.initial else ""),
            "options": loss.options,
            "example": "fairweight compress models/dense-0 --method global-magnitude "
            f"--sparsity 0.9 --epochs 3 --lr 0.01 --distill {loss.name}",
        }
        for loss in losses()
    ]
    models = [
        {
            "name": model.name,
            "kind": "model",
            "summary": model.summary,
            "source": model.source,
            "notes": inspect.getdoc(model.builder) or "",
            "options": model.defaults,
            "example": f"fairweight train --dataset cifar10 --data DIR --model {model.name}",
        }
        for model in architectures()
    ]
    return [*methods, *distillation, *models]


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


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One data set in full.", show_default=False),
    ] = None,
    data: Annotated[
        str | None,
        o.OPTION(
            "Say which of them are in this folder, by the names of files.",
            "DIR",
            envvar="FAIRWEIGHT_DATA",
            show_envvar=False,
        ),
    ] = None,
    as_json: Annotated[bool, o.OPTION("As JSON, for programs.", flag="--json")] = False,
) -> None:
    """List every data set, or one in full: source, licence, files, groups, options.

    Without --data the variable FAIRWEIGHT_DATA names the folder. All of them in one line each,
    with those that a folder holds, and one in full:

        fairweight datasets --data ~/data

        fairweight datasets mnist
    """
    import fairweight.data as registered

    folder = Path(data).expanduser() if data else None
    if folder is not None and not folder.is_dir():
        raise InputError(
            f"The data folder '{data}' (--data, or FAIRWEIGHT_DATA) does not exist or is no "
            "folder; give one that does."
        )
    rows: list[dict[str, Any]] = []
    for entry in [registered.dataset(name)] if name else registered.datasets():
        found, missing = entry.found_in(folder) if folder is not None else (None, ())
        rows.append(
            {
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
        )
    if as_json:
        typer.echo(json.dumps(rows, indent=2, allow_nan=False, default=str))
        return
    if name:
        (row,) = rows
        facts = {
            "name": row["name"],
            "summary": row["summary"],
            "source": row["source"],
            "files": "\n".join(row["files"]) or "none are needed",
            "groups": ", ".join(row["groups"]) or "none of its own",
            "options": "\n".join(_with_defaults(row["options"])) or "none",
            "notes": row["notes"],
            "found": row["found"],
            "missing": "\n".join(row["missing"]) if row["found"] == "in part" else "",
        }
        show_facts({key: value for key, value in facts.items() if value})
        return
    searched = ("found",) if folder is not None else ()
    table = listing("data set", *searched, "what it is", "groups")
    for row in rows:
        cells = [row["name"], row["summary"], ", ".join(row["groups"])]
        if folder is not None:
            cells.insert(1, row["found"])
        table.add_row(*cells)
    console = plain_console()
    console.print(table)
    if folder is not None:
        console.print(f"\nLooked for the names of files in {folder}; none was read.")
    console.print(f"\n{len(rows)} data sets; one in full: fairweight datasets NAME")


def metrics(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One metric in full.", show_default=False)
    ] = None,
    as_json: Annotated[bool, o.OPTION("As JSON, for programs.", flag="--json")] = False,
) -> None:
    """List every metric, or define one: formula, direction, range, source, undefined cases.

    All of them in one line each, then one in full:

        fairweight metrics

        fairweight metrics cev
    """
    import fairweight.auditing.metrics as registered
    from fairweight.auditing.metrics.registry import metric

    chosen = [metric(name)] if name else list(registered.registry.metrics())
    rows: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "summary": entry.summary,
            "formula": entry.formula,
            "better": entry.better,
            # JSON knows no infinity: an end that the range has not is null
            "range": [end if math.isfinite(end) else None for end in (entry.low, entry.high)],
            "by": list(entry.by),
            "source": entry.source,
            "undefined": entry.undefined,
        }
        for entry in chosen
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2, allow_nan=False))
        return
    if name:
        facts = {}
        for key, value in rows[0].items():
            parts = value if isinstance(value, list) else [value]
            facts[key] = ", ".join("∞" if part is None else str(part) for part in parts)
        show_facts(facts)
        return
    table = listing("metric", "better", "what it is")
    for row in rows:
        table.add_row(row["name"], str(row["better"]), row["summary"])
    console = plain_console()
    console.print(table)
    console.print(f"\n{len(rows)} metrics; one in full: fairweight metrics NAME")
