"""Options that several commands share; those of requests come from the fields of their classes."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_type_hints

import typer

from fairweight.base.fields import Option, options_of
from fairweight.base.trust import trusting
from fairweight.errors import InputError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec, read_names, sources_of

if TYPE_CHECKING:
    from fairweight.specs.training import Distillation

OUTPUT = "Output"

# A command that reads tables has a parameter `files`, and parameters that are whole requests:
# `tables: o.Tables`, `options: Annotated[AuditOptions, o.only("alpha")]`. `takes` gives it an
# option for every field of them, and calls it with the requests that were made of these options.


@dataclass(frozen=True)
class Chosen:
    """Which fields of a request a command has."""

    names: frozenset[str]
    among: bool  # these alone, or all but these

    def __contains__(self, name: str) -> bool:
        return (name in self.names) == self.among


def only(*names: str) -> Chosen:
    return Chosen(frozenset(names), True)


def without(*names: str) -> Chosen:
    return Chosen(frozenset(names), False)


Files: TypeAlias = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Predictions: one table, or one file per model (`NAME=FILE`; the first is the "
        "baseline, a NAME given again is another seed). Parquet, CSV, Arrow, JSON lines, globs, "
        "`file.duckdb::SELECT ...`.",
        show_default=False,
    ),
]
Tables: TypeAlias = Annotated[TableSpec, without()]
SingleExamples: TypeAlias = Annotated[TableSpec, without("count")]
OfAudit: TypeAlias = Annotated[AuditOptions, only("members", "n_boot", "min_group", "random_state")]


def takes(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for every field of the requests among its parameters."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    fields: dict[str, dict[str, str]] = {}  # request → field → parameter
    for parameter in inspect.signature(command).parameters.values():
        kind, *more = get_args(hints[parameter.name]) or (hints[parameter.name],)
        if kind not in (TableSpec, AuditOptions):
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
            continue
        chosen = next(item for item in more if isinstance(item, Chosen))
        own = fields.setdefault(parameter.name, {})
        for name, (held, about) in options_of(kind).items():
            if name in chosen:
                own[name] = f"{parameter.name}_{name}"
                parameters.append(_parameter(own[name], held.default, about))

    @functools.wraps(command)
    def called(**given: Any) -> None:
        for request, own in fields.items():
            kind = get_args(hints[request])[0]
            values = {name: _read(kind, name, given.pop(place)) for name, place in own.items()}
            if kind is TableSpec:
                files = given.get("files") or ()
                values["sources"] = sources_of(list(files)) if files else ()
            given[request] = kind(**values)
        command(**given)

    # Options without a default would have to stand before those with one; all are named anyway.
    listed = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    called.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in listed}
    del called.__wrapped__
    return called


def _choices(kind: type[StrEnum]) -> Callable[[], list[str]]:
    """What the shell completes."""

    def listed() -> list[str]:
        return [str(member) for member in kind]

    return listed


def choices(spec: str, field: str) -> Callable[[], list[str]]:
    """What the shell completes: the choices of a field of the lab's specs, `training:Training`.

    The specs are read when the shell asks, not at every start: they take half as long to import as
    the rest of the command line. So the lab's options stand here and in its commands, and a test
    holds their defaults and choices against the specs.
    """

    def listed() -> list[str]:
        module, _, name = spec.partition(":")
        kind = getattr(importlib.import_module(f"fairweight.specs.{module}"), name)
        return list(get_args(get_type_hints(kind)[field]))

    return listed


def _parameter(name: str, default: Any, about: Option) -> inspect.Parameter:
    """The parameter from which typer makes an option."""
    kind: Any
    completed = None
    if isinstance(default, StrEnum):
        # Not as a choice of the parser: the request itself says what can be used.
        kind, default, completed = str, str(default), _choices(type(default))
    elif about.read is not None:
        kind, default = (list[str] | None) if about.repeated else (str | None), None
    elif isinstance(default, bool):
        kind, default = bool, False  # the flag turns it round
    else:
        kind = str | None if default is None else type(default)
    option = typer.Option(
        about.flag,
        metavar=about.metavar,
        help=about.help,
        rich_help_panel=about.panel,
        autocompletion=completed,
    )
    annotation = Annotated[kind, option]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _read(kind: type, name: str, value: Any) -> Any:
    """A field's value from what the parser gives."""
    held, about = options_of(kind)[name]
    if isinstance(held.default, bool):
        return not held.default if value else held.default
    if about.read is None or value is None or value == []:
        return None if value == [] else value
    return about.read(value, about.flag)


Quiet: TypeAlias = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print no summary.", rich_help_panel=OUTPUT)
]
Overwrite: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace files too that fairweight did not write, or that were changed since.",
        rich_help_panel=OUTPUT,
    ),
]


def split_names(text: str | None, option: str) -> list[str] | None:
    """`a,b,c` as names; a name with a comma is quoted: `"a,b"`."""
    return None if text is None else list(read_names(text, option))


def shell_command(context: typer.Context) -> str:
    """The command as it was typed, quoted so that it can be typed again."""
    import shlex

    return shlex.join(["fairweight", *(context.obj or [])])


# `--set name=value` options: fields of a spec that have no option of their own.


def assignments(given: list[str] | None, option: str) -> dict[str, Any]:
    """Names and values; a dotted name goes into a table, and what is no JSON is text.

    >>> assignments(["momentum=0.8", "augment.flip=true", "schedule=step"], "--set")
    {'momentum': 0.8, 'augment': {'flip': True}, 'schedule': 'step'}
    """
    found: dict[str, Any] = {}
    for item in given or []:
        name, equals, text = item.partition("=")
        if not (name and equals):
            raise InputError(f"{option} {item!r} is not of the form NAME=VALUE.")
        *tables, last = name.split(".")
        place = found
        for table in tables:
            inner = place.setdefault(table, {})
            if not isinstance(inner, dict):
                raise InputError(f"{option} sets '{table}' both as a value and as a table.")
            place = inner
        place[last] = _value(text)
    return found


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Two sets of fields; the second decides, and tables are joined.

    >>> merged({"augment": {"flip": True}}, {"augment": {"crop": 4}})
    {'augment': {'flip': True, 'crop': 4}}
    """
    both = dict(first)
    for name, value in second.items():
        held = both.get(name)
        if isinstance(held, dict) and isinstance(value, dict):
            value = merged(held, value)
        both[name] = value
    return both


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


# Options that the commands of the lab share.

DATA, NETWORK, TRAINING, PRUNING = "Data", "Network", "Training", "Pruning"
DISTILLATION, TRUST = "Distillation", "Trust"

DataFolder: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="The folder with data sets; by default the variable FAIRWEIGHT_DATA.",
        rich_help_panel=DATA,
    ),
]
DatasetOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--dataset-option",
        metavar="NAME=VALUE",
        help="An option of the data set (`fairweight datasets NAME` lists them); may be repeated.",
        rich_help_panel=DATA,
    ),
]
AskedDataset: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What to ask about; by default what the models were trained on.",
        rich_help_panel=DATA,
    ),
]
AskedPart: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="test|validation|train",
        help="Which examples, as the models' cards divide them.",
        autocompletion=lambda: ["test", "validation", "train"],
        rich_help_panel=DATA,
    ),
]
Tasks: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="a,b",
        help="Of several attributes only these: one by itself, two as a co-trained pair.",
        rich_help_panel=DATA,
    ),
]
Epochs: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Passes over the training examples.", rich_help_panel=TRAINING),
]
BatchSize: TypeAlias = Annotated[
    int | None, typer.Option(help="Examples per step.", rich_help_panel=TRAINING)
]
LearningRate: TypeAlias = Annotated[
    float | None, typer.Option("--lr", help="Learning rate.", rich_help_panel=TRAINING)
]
Optimizer: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="sgd|adam",
        help="How weights are changed.",
        autocompletion=choices("training:Training", "optimizer"),
        rich_help_panel=TRAINING,
    ),
]
Augmentation: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="crop=4,flip",
        help="Random changes of training images: crop=PIXELS, flip, rotate=DEGREES, shift=SHARE, "
        "zoom=SHARE.",
        rich_help_panel=TRAINING,
    ),
]
TrainingSet: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other field of the training: momentum=0.8, schedule=constant, warmup_epochs=5, "
        'weight_decay=1e-4, decay_of=[["*.bias",0]]; may be repeated.',
        rich_help_panel=TRAINING,
    ),
]
TrainingFile: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--training",
        metavar="FILE",
        help="These fields from a TOML file; options decide where both speak.",
        rich_help_panel=TRAINING,
    ),
]
Device: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="cpu|cuda|mps",
        help="Where it runs.",
        autocompletion=lambda: ["cpu", "cuda", "mps"],
        rich_help_panel=TRAINING,
    ),
]
Threads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="Threads of torch; small networks are fastest with 1 and several processes.",
        rich_help_panel=TRAINING,
    ),
]
Sparsity: TypeAlias = Annotated[
    float | None,
    typer.Option(help="Share of weights (or slices) to remove.", rich_help_panel=PRUNING),
]
Layers: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERNS",
        help="Which layers: 'layer1.*,fc', '@conv', '!@last' (all but the last).",
        rich_help_panel=PRUNING,
    ),
]
MethodOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--method-option",
        metavar="NAME=VALUE",
        help="Another field of the method (`fairweight methods NAME` lists them): n=1, dim=1, "
        "schedule=gmp, schedule.end=60; may be repeated.",
        rich_help_panel=PRUNING,
    ),
]
Distill: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="LOSSES",
        help="Hold the model near a teacher while it trains: kd, at+kd (`fairweight methods` "
        "lists the losses).",
        rich_help_panel=DISTILLATION,
    ),
]
DistillOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--distill-option",
        metavar="NAME=VALUE",
        help="Another field of it: weights.at=500, options.kd.temperature=2, cache=true; may be "
        "repeated.",
        rich_help_panel=DISTILLATION,
    ),
]
Variant: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="What the model is called in tables.", rich_help_panel=OUTPUT
    ),
]
Onnx: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--onnx", help="Also write model.onnx, which is what ships.", rich_help_panel=OUTPUT
    ),
]


def _trust_modules(context: typer.Context, names: list[str] | None) -> list[str] | None:
    context.with_resource(trusting(modules=names or ()))
    return names


def _trust_files(context: typer.Context, files: list[str] | None) -> list[str] | None:
    context.with_resource(trusting(files=files or ()))
    return files


# Both act by being given: what they name is trusted until the command ends.
TrustModule: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-module",
        metavar="MODULE",
        help="Import this module where a card or a study names a network of it "
        "(`MODULE:function`); may be repeated.",
        callback=_trust_modules,
        rich_help_panel=TRUST,
    ),
]
TrustFile: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-file",
        metavar="FILE",
        help="Open this .pt2 file, which can run any code; may be repeated.",
        callback=_trust_files,
        rich_help_panel=TRUST,
    ),
]


def require_lab() -> None:
    """A sentence where torch is missing, before anything is read."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise InputError(
            "This command needs the lab, which is not installed: pip install 'fairweight[lab]'"
        )


def limit_threads(threads: int | None) -> None:
    """Give torch a number of threads, if one was asked for."""
    if threads is None:
        return
    if threads < 1:
        raise InputError(f"--threads {threads} cannot be used; give at least 1.")
    import torch

    torch.set_num_threads(threads)


def training_fields(
    file: str | None,
    *,
    epochs: int | None,
    batch_size: int | None,
    lr: float | None,
    optimizer: str | None,
    augment: str | None,
    others: list[str] | None,
    seed: int | None,
) -> dict[str, Any]:
    """The fields of a training from a file, then from options."""
    from fairweight.specs.toml import read_toml

    given = {} if file is None else read_toml(file, "The training file")
    options: dict[str, Any] = {
        "epochs": epochs,
        "batch_size": batch_size,
        "lr": lr,
        "optimizer": optimizer,
        "seed": seed,
        "augment": None if augment is None else _augmentation(augment),
    }
    given = merged(given, assignments(others, "--set"))
    return merged(given, {name: value for name, value in options.items() if value is not None})


def method_fields(
    sparsity: float | None, layers: str | None, others: list[str] | None
) -> dict[str, Any]:
    """The fields of a method from options; `schedule=gmp` and `schedule.end=60` are one table."""
    plain = [item for item in others or [] if not item.startswith("schedule=")]
    kinds = [item.partition("=")[2] for item in others or [] if item.startswith("schedule=")]
    fields = assignments(plain, "--method-option")
    if kinds:
        held = fields.get("schedule", {})
        fields["schedule"] = {"kind": kinds[-1], **held} if isinstance(held, dict) else kinds[-1]
    if sparsity is not None:
        fields["sparsity"] = sparsity
    if layers is not None:
        fields["layers"] = tuple(part.strip() for part in layers.split(",") if part.strip())
    return fields


def distillation(losses: str | None, options: list[str] | None) -> Distillation | None:
    """The distillation that options ask for, if they do; its losses are looked up."""
    if losses is None:
        if options:
            raise InputError("--distill-option needs --distill LOSSES, such as --distill at+kd.")
        return None
    from fairweight.lab.distillation.registry import terms_of
    from fairweight.specs.toml import read_spec
    from fairweight.specs.training import Distillation

    fields = assignments(options, "--distill-option")
    spec = read_spec(Distillation, {**fields, "losses": losses}, "The distillation")
    terms_of(spec)
    return spec


def _augmentation(text: str) -> dict[str, Any]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not words:
        raise InputError(f"--augment {text!r} names nothing; write, for example, crop=4,flip")
    return assignments([w if "=" in w else f"{w}=true" for w in words], "--augment")
