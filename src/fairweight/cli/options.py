"""Options that several commands share; those of requests come from the fields of their classes."""

from __future__ import annotations

import functools
import inspect
import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from importlib import util
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_args, get_type_hints

import typer

from fairweight.base.fields import Option, options_of
from fairweight.base.memory import keep_freed_blocks
from fairweight.base.trust import trusting
from fairweight.errors import InputError
from fairweight.specs.audit import AuditOptions
from fairweight.tables.spec import TableSpec, read_names, sources_of

if TYPE_CHECKING:
    from fairweight.lab.batches import Scaling


def panel(title: str | None) -> Callable[..., Any]:
    """What makes the options of a panel of `--help`: `OUTPUT("Where it goes.", "DIR")`.

    The shell completes choices that are listed in place of the value: `sgd|adam`.
    """

    def option(help: str, metavar: str | None = None, *, flag: str = "", **more: Any) -> Any:
        if metavar is not None and "|" in metavar and metavar.islower():
            more["autocompletion"] = lambda: metavar.split("|")
        return typer.Option(
            *flag.split(), help=help, metavar=metavar, rich_help_panel=title, **more
        )

    return option


OPTION, OUTPUT, DATA, TRAINING, TRUST = map(panel, (None, "Output", "Data", "Training", "Trust"))

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


@dataclass(frozen=True)
class OptionGroup:
    """Options that several commands have together: a subclass has a field for each of them."""

    def given(self) -> dict[str, Any]:
        """Options that were used, by their names on the command line.

        >>> @dataclass(frozen=True)
        ... class Group(OptionGroup):
        ...     batch_size: int | None = None
        ...     set_: list[str] | None = None
        >>> Group(set_=["momentum=0.8"]).given()
        {'--set': ['momentum=0.8']}
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            "--" + name.rstrip("_").replace("_", "-"): value
            for name, value in values.items()
            if value
        }


def takes(command: Callable[..., None]) -> Callable[..., None]:
    """The command with an option for every field of the requests and groups it has."""
    hints = get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    requests: dict[str, dict[str, str]] = {}  # request → field → parameter
    groups: dict[str, type[OptionGroup]] = {}
    for parameter in inspect.signature(command).parameters.values():
        kind, *more = get_args(hints[parameter.name]) or (hints[parameter.name],)
        if isinstance(kind, type) and issubclass(kind, OptionGroup):
            groups[parameter.name] = kind
            annotations = get_type_hints(kind, include_extras=True)
            parameters += [
                parameter.replace(
                    name=field.name, default=field.default, annotation=annotations[field.name]
                )
                for field in fields(kind)
            ]
            continue
        if kind not in (TableSpec, AuditOptions):
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
            continue
        chosen = next(item for item in more if isinstance(item, Chosen))
        own = requests.setdefault(parameter.name, {})
        for name, (held, about) in options_of(kind).items():
            if name in chosen:
                own[name] = f"{parameter.name}_{name}"
                parameters.append(_parameter(own[name], held.default, about))

    @functools.wraps(command)
    def called(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        for request, own in requests.items():
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


def _parameter(name: str, default: Any, about: Option) -> inspect.Parameter:
    """The parameter from which typer makes an option."""
    kind: Any
    completed: Callable[[], list[str]] | None = None
    if isinstance(default, StrEnum):
        # Not as a choice of the parser: the request itself says what can be used.
        names = [str(member) for member in type(default)]
        kind, default, completed = str, str(default), lambda: names
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
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def _read(kind: type, name: str, value: Any) -> Any:
    """A field's value from what the parser gives."""
    held, about = options_of(kind)[name]
    if isinstance(held.default, bool):
        return not held.default if value else held.default
    if about.read is None or value is None or value == []:
        return None if value == [] else value
    return about.read(value, about.flag)


Quiet: TypeAlias = Annotated[bool, OUTPUT("Print no summary.", flag="--quiet -q")]
Verbose: TypeAlias = Annotated[
    bool, OUTPUT("Print everything about every variant, and all notes.", flag="--verbose -v")
]
Memory: TypeAlias = Annotated[
    str | None,
    OUTPUT(
        "Memory to hold at most, such as 4GB; beyond it tables spill to disk. Half of what is free "
        "by default; no number depends on it.",
        "SIZE",
        flag="--memory",
    ),
]
Overwrite: TypeAlias = Annotated[
    bool,
    OUTPUT(
        "Replace files too that fairweight did not write, or that were changed since.",
        flag="--overwrite",
    ),
]


def split_names(text: str | None, option: str) -> list[str] | None:
    """`a,b,c` as names; a name with a comma is quoted: `"a,b"`."""
    return None if text is None else list(read_names(text, option))


def shell_command(context: typer.Context) -> str:
    """The command as it was typed, quoted so that it can be typed again."""
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
        try:
            place[last] = json.loads(text)
        except ValueError:
            place[last] = text
    return found


# Data sets, and what the commands of the lab share.

DataFolder: TypeAlias = Annotated[
    str | None, DATA("The folder with data sets; by default the variable FAIRWEIGHT_DATA.", "DIR")
]
DatasetOptions: TypeAlias = Annotated[
    list[str] | None,
    DATA(
        "An option of the data set (`fairweight datasets NAME` lists them); may be repeated.",
        "NAME=VALUE",
    ),
]
Threads: TypeAlias = Annotated[
    int | None,
    TRAINING("Threads of torch; small networks are fastest with 1 and several processes."),
]


def _trust_modules(context: typer.Context, names: list[str] | None) -> list[str] | None:
    context.with_resource(trusting(modules=names or ()))
    return names


# It acts by being given: what it names is trusted until the command ends.
TrustModule: TypeAlias = Annotated[
    list[str] | None,
    TRUST(
        "Import this module where a card or a study names a network of it "
        "(`MODULE:function`); may be repeated.",
        "MODULE",
        callback=_trust_modules,
    ),
]


# Of models without a card: how bytes of images are scaled, and files that can run code.
Mean: TypeAlias = Annotated[
    str | None,
    DATA(
        "Per channel, or one number for all: what models without a card take from a pixel (0 to "
        "1).",
        "a,b,c",
    ),
]
Deviation: TypeAlias = Annotated[
    str | None, DATA("Per channel, by what they divide the rest.", "a,b,c")
]
DatasetName: TypeAlias = Annotated[
    str | None, DATA("The data to predict; by default what the models were trained on.", "NAME")
]


def _trust_files(context: typer.Context, files: list[str] | None) -> list[str] | None:
    context.with_resource(trusting(files=files or ()))
    return files


TrustFile: TypeAlias = Annotated[
    list[str] | None,
    TRUST(
        "Open this .pt2 file, which can run any code; may be repeated.",
        "FILE",
        callback=_trust_files,  # until the command ends
    ),
]


def read_scaling(mean: str | None, std: str | None) -> Scaling | None:
    """The scaling of pixels by `--mean` and `--std`; None where neither is given."""
    from fairweight.lab.batches import OneScaling, Scaling

    if mean is None and std is None:
        return None
    channels = []
    for option, text in (("--mean", mean), ("--std", std)):
        try:
            channels.append(tuple(float(part) for part in (text or "").split(",")))
        except ValueError:
            raise InputError(
                f"{option} {text or ''} cannot be used; give both --mean and --std, one number "
                "per channel: 0.485,0.456,0.406"
            ) from None
    if len(channels[0]) != len(channels[1]) or not all(part > 0 for part in channels[1]):
        raise InputError(
            f"--mean {mean} and --std {std} do not fit; give one number per channel, those of "
            "--std above 0."
        )
    kind = OneScaling if len(channels[0]) == 1 else Scaling
    return kind(channels[0], channels[1])


def require(*packages: str, remedy: str) -> None:
    """Refuse with this sentence, before anything is read, if a package is missing."""
    for name in packages:
        if util.find_spec(name) is None:
            raise InputError(remedy.format(missing=name))


def require_lab(threads: int | None = None) -> None:
    """Refuse a command of the lab where torch is missing; give torch its threads and memory."""
    require(
        "torch",
        remedy="This command needs the lab, which is not installed: pip install 'fairweight[lab]'",
    )
    keep_freed_blocks()
    if threads is not None:
        if threads < 1:
            raise InputError(f"--threads {threads} cannot be used; give at least 1.")
        import torch

        torch.set_num_threads(threads)
