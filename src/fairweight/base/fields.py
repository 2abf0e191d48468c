"""Fields of a typed request: each with its default, its meaning, and its option.

A request is a frozen dataclass whose fields are made by `option`. The command line reads its
options off the fields, and a stored request is read and written field by field, so that a field is
described in one place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from enum import StrEnum
from typing import Any

from fairweight.errors import InputError


@dataclass(frozen=True)
class Option:
    """How the command line asks for a field.

    Parameters
    ----------
    help, panel, metavar
        As `--help` shows them.
    flag
        `--label`.
    read, write
        From the text (of a repeated option: the texts) to the field's value, and back.
    repeated
        Whether it may be given several times.
    """

    help: str
    panel: str
    flag: str
    metavar: str | None = None
    read: Callable[[Any, str], Any] | None = None
    write: Callable[[Any], Any] = str
    repeated: bool = False


def option(
    default: Any,
    help: str,
    panel: str,
    flag: str,
    metavar: str | None = None,
    read: Callable[[Any, str], Any] | None = None,
    write: Callable[[Any], Any] = str,
    repeated: bool = False,
) -> Any:
    """A field with a default and an option; the parameters are those of `Option`."""
    about = Option(help, panel, flag, metavar, read, write, repeated)
    return field(default=default, metadata={"option": about})


def options_of(request: Any) -> dict[str, tuple[Field[Any], Option]]:
    """The fields of a request that have an option, in their order, by name."""
    return {f.name: (f, f.metadata["option"]) for f in fields(request) if "option" in f.metadata}


def refuse(request: Any, name: str, value: Any, rule: str) -> InputError:
    """The error for a value that a field cannot have: option, argument, and what is allowed."""
    _, about = options_of(request)[name]
    return InputError(f"{about.flag} ({name}=) cannot be {value!r}; {rule}.")


def choice(request: Any, name: str, kind: type[StrEnum]) -> None:
    """Make a field of a frozen request one of its choices."""
    given = getattr(request, name)
    if given not in list(kind):
        *most, last = (str(member) for member in kind)
        raise refuse(request, name, given, f"use {', '.join(most)} or {last}")
    object.__setattr__(request, name, kind(given))


def changed(request: Any) -> list[str]:
    """The fields with an option that are not at their defaults."""
    return [
        name for name, (held, _) in options_of(request).items()
        if getattr(request, name) != held.default
    ]  # fmt: skip


def words(request: Any) -> list[str]:
    """The options that make this request again; fields at their defaults need none.

    A switch (`--force`, `--no-filters`) stands alone.
    """
    found: list[str] = []
    options = options_of(request)
    for name in changed(request):
        _, about = options[name]
        value = getattr(request, name)
        if isinstance(value, bool):
            found.append(about.flag)
        elif about.repeated:
            found += [word for text in about.write(value) for word in (about.flag, text)]
        else:
            found += [about.flag, about.write(value)]
    return found


def plain(value: Any) -> Any:
    """A field's value in the form that JSON stores."""
    if isinstance(value, StrEnum):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(held) for key, held in value.items()}
    if isinstance(value, tuple | list):
        return [plain(held) for held in value]
    if hasattr(value, "to_json"):
        return value.to_json()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
