"""Write methods.md and architectures.md of docs/reference from the code itself.

    python docs/generate_methods.py

A test fails when a page is not what the code says.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairweight.lab.models import Architecture

REFERENCE = Path(__file__).parent / "reference"
MADE = "<!-- Made by docs/generate_methods.py from the code: do not edit. -->"
CLASSES, CHANNELS, SIZE = 10, 3, 32  # of all numbers on the page of architectures
M = (4, 8)  # of 2:4, 1:4 and 1:8
LIST = re.compile(r"('[^']+'), '[^;]*'(?= )")  # names of layers, of which the first is enough
NARROW = 0.125  # where channels are removed on trial: the same layers, sooner

PATTERNS = """\
`layers` chooses convolutions and linear layers by patterns over their paths: `layer1.*`, or \
`layer1` for everything inside it. `@first`, `@last`, `@conv` and `@linear` name layers by place \
and kind, and `!` leaves out: `*` with `!@last` is all but the last. On the command line: \
`--layers '*,!@last'`; other fields are `--method-option NAME=VALUE`, those of the schedule \
`--method-option schedule=gmp --method-option schedule.end=60`."""

EXACT = """\
The sparsity that was asked for is reached exactly, to the nearest whole weight or slice; ties are \
broken alike in every run, and nothing grows back."""

REMOVED = """\
Structured methods set whole filters (`dim = 0`) or input channels (`dim = 1`) to 0, which makes a \
network neither smaller nor faster. With `--remove-channels` they are really removed: layers that \
share a channel (those that a shortcut sums, for example) lose it together, and the smaller \
network must answer as the masked one does, else it is refused with the place and the reason. \
[Architectures](architectures.md#what-can-be-done-to-them) says where it works.

It is refused where a channel is an output of the model, where channels are mixed (GroupNorm, \
LayerNorm, LocalResponseNorm, convolutions in groups other than one per channel), where `layers` \
chooses only some of the layers that share a channel, and where no channel would be left."""

N_OF_M = """\
N:M needs layers whose number of input channels (of one group) is a multiple of m; others are \
refused by name, or left as they are with `indivisible = "leave"`. It is reached at once, so it \
has no gradual schedule. Here it is a pattern of zeros: speed needs hardware that knows it."""

QUANTISED = """\
Both kinds run in ONNX Runtime, on the exported model, and become one `.onnx` file: the audit \
sees what ships."""


def methods_page() -> str:
    """Every method, schedule, recipe and kind of int8."""
    from fairweight.cli.lists import method_rows
    from fairweight.lab.compression.descriptions import schedules

    rows = {
        kind: [row for row in method_rows() if row["kind"] == kind]
        for kind in ("method", "recipe", "int8")
    }
    lines = [
        MADE,
        "# Methods",
        "What the option `--method` of `compress` and `train` takes. `fairweight "
        "methods NAME` prints the same; [your own method](../how-to/add-a-method.md) is one "
        "function more.",
        ", ".join(f"[`{row['name']}`](#{row['name']})" for kind in rows.values() for row in kind),
        "## Pruning",
        EXACT,
        PATTERNS,
    ]
    for row in rows["method"]:
        lines += [*_head(row), _fields(row["fields"], links=True)]
    lines += [
        "## Channels really removed",
        REMOVED,
        "## Where N:M is possible",
        N_OF_M,
        "## Schedules",
        "When a model is pruned, and how much at a time. In the formulas `sparsity` is what was "
        "asked for, `t` counts epochs, finished steps of the optimiser, or rounds, and other "
        "names are fields. The share that is removed stays the same from one update to the next. "
        "An `initial` above `sparsity` counts as `sparsity`.",
    ]
    for schedule in schedules():
        formula = schedule.formula
        lines += [
            f"### Schedule {schedule.name}",
            _cell(schedule.summary),
            f"Updates: {formula.updates}.",
            f"Removed: `{formula.removed}`",
            _fields([vars(field) for field in schedule.fields]),
        ]
    lines += ["## Recipes", "A method with the schedule of a paper; any field may be given anew."]
    for row in rows["recipe"]:
        (schedule,) = row["schedules"]
        lines += [
            *_head(row),
            _table(
                ("", ""),
                [
                    ("method", f"[`{row['method']}`](#{row['method']})"),
                    ("layers", _code(_default(row, "layers"))),
                    ("schedule", f"[`{schedule['name']}`](#schedule-{schedule['name']})"),
                    *((f["name"], _code(f["default"])) for f in schedule["fields"]),
                ],
            ),
        ]
    lines += ["## int8", QUANTISED]
    for row in rows["int8"]:
        lines += [*_head(row), _fields(row["fields"]) if row["fields"] else "It has no fields."]
    return "\n\n".join(lines) + "\n"


def architectures_page() -> str:
    """Every architecture: options, parameters, features, and what can be done to it."""
    from fairweight.lab.models import architectures

    entries = architectures()
    lines = [
        MADE,
        "# Architectures",
        "What the option `--model` of `train` takes. All fit any number of classes (or of binary "
        "attributes), of image channels, and a `--width` that multiplies every layer's number of "
        "channels; options of their own are `--model-option NAME=VALUE`. A network of your own is "
        "named `module:function`: a function (or class) that returns a `torch.nn.Module` and gets "
        "those of `classes`, `channels`, `size` and `width` that it has parameters for.",
        f"Parameters are counted for {CLASSES} classes of images of {CHANNELS} × {SIZE} × {SIZE} "
        "at width 1. Features are what `fairweight.lab.features(model, images)` returns, by name, "
        "and the module whose output each of them is.",
    ]
    for entry in entries:
        facts = _facts(entry)
        options = [f"`{name}={value!r}`" for name, value in entry.defaults.items()]
        lines += [
            f"### {entry.name}",
            f"{_capital(entry.summary)}.",
            " ".join((inspect.getdoc(entry.builder) or "").split()),
            _table(
                ("", ""),
                [
                    ("source", entry.source),
                    ("parameters", f"{facts.parameters:,}"),
                    ("options", ", ".join(options) or "none"),
                    ("features", ", ".join(f"`{n}` (`{p}`)" for n, p in facts.features.items())),
                ],
            ),
        ]
    lines += [
        "## What can be done to them",
        "Every unstructured method, and every structured one that leaves zeros, works on all of "
        "them. For N:M the table names the layers whose input channels are no multiple of m (the "
        "first layer is left out by default). For channels that are really removed it says what "
        "was tried when this page was made: half of the channels, by filters (`dim = 0`) and by "
        "inputs (`dim = 1`), with the layers that the method chooses by default.",
        _table(
            ("", "2:4 and 1:4", "1:8", "removed by `dim = 0`", "removed by `dim = 1`"),
            [
                (
                    f"`{entry.name}`",
                    *(_all_but(_facts(entry).indivisible[m]) for m in M),
                    *(_removed(entry, dim) for dim in (0, 1)),
                )
                for entry in entries
            ],
        ),
    ]
    return "\n\n".join(lines) + "\n"


@dataclass(frozen=True)
class Facts:
    """What a network of the stated size is made of."""

    parameters: int
    features: dict[str, str]
    indivisible: dict[int, list[str]]  # by m: layers whose inputs are no multiple of it


@cache
def _facts(entry: Architecture) -> Facts:
    from fairweight.lab.masks import chosen
    from fairweight.lab.models import build
    from fairweight.specs.compression import NOfM

    model: Any = build(entry.name, classes=CLASSES, channels=CHANNELS, size=SIZE)
    layers = {m: chosen(model, NOfM(n=1, m=m).layers) for m in M}
    return Facts(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        features=model.blocks,
        indivisible={
            m: [path for path, layer in found.items() if layer.weight.shape[1] % m]
            for m, found in layers.items()
        },
    )


def _all_but(left: list[str]) -> str:
    if not left:
        return "all layers"
    more = f" and {len(left) - 2} more" if len(left) > 2 else ""
    return "not " + ", ".join(f"`{path}`" for path in left[:2]) + more


def _removed(entry: Architecture, dim: int) -> str:
    import torch

    from fairweight.errors import InputError
    from fairweight.lab.compression.channels import remove_channels
    from fairweight.lab.models import build
    from fairweight.specs.compression import L1Structured

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build(entry.name, classes=CLASSES, channels=CHANNELS, size=SIZE, width=NARROW)
        images = torch.rand(2, CHANNELS, SIZE, SIZE)
    try:
        remove_channels(model, L1Structured(sparsity=0.5, dim=1 if dim else 0), images)
    except InputError as error:
        sentence = LIST.sub(lambda names: f"{names[1]} and others", str(error))
        return f"no: {_cell(sentence.partition(';')[0])}"
    return "yes"


def _head(row: dict[str, Any]) -> list[str]:
    source = f" Used by: {row['source']}." if row["source"] else ""
    return [
        f"### {row['name']}",
        f"{_capital(row['summary'])}.{source}".replace("..", "."),
        f"```sh\n{row['example']}\n```",
    ]


def _fields(fields: Iterable[dict[str, Any]], *, links: bool = False) -> str:
    rows = []
    for field in fields:
        kind = _cell(field["type"])
        if links and field["name"] == "schedule":
            names = field["type"].removeprefix("one of: ").split(", ")
            kind = ", ".join(f"[`{name}`](#schedule-{name})" for name in names)
        default = "required" if field["required"] else _code(field["default"])
        rows.append((f"`{field['name']}`", default, kind, _cell(field["meaning"])))
    return _table(("field", "default", "type", "meaning"), rows)


def _default(row: dict[str, Any], name: str) -> Any:
    return next(field["default"] for field in row["fields"] if field["name"] == name)


def _code(value: Any) -> str:
    import json

    return f"`{json.dumps(value)}`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    shown = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    shown += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(shown)


def _cell(text: str) -> str:
    """Plain text in a table: what would be taken for markup outside `code` is escaped."""
    parts = " ".join(text.split()).split("`")
    for place in range(0, len(parts), 2):
        for mark in ("*", "_", "<", "|"):
            parts[place] = parts[place].replace(mark, f"\\{mark}")
    return "`".join(parts)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


PAGES: dict[str, Callable[[], str]] = {
    "methods.md": methods_page,
    "architectures.md": architectures_page,
}


def main() -> None:
    """Write both pages."""
    for name, page in PAGES.items():
        (REFERENCE / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
