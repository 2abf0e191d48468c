"""Specs from TOML files and dictionaries, with one sentence about what cannot be used."""

from __future__ import annotations

import inspect
import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from fairweight.errors import InputError, UnknownNameError, brief
from fairweight.specs.study import Study

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Spec = TypeVar("Spec")
DEEPEST = 30  # tables in tables


def read_spec(
    kind: type[Spec],
    given: Mapping[str, Any],
    what: str,
    remedies: Mapping[str, str] = MappingProxyType({}),
) -> Spec:
    """The spec with these fields.

    Parameters
    ----------
    kind
        A frozen dataclass of this folder.
    what
        How messages call it: `The training`.
    remedies
        What to do about a field, by its name; by default what pydantic says.

    >>> from fairweight.specs.training import Training
    >>> read_spec(Training, {"epochs": 3}, "The training").epochs
    3
    >>> read_spec(Training, {"epochs": -1}, "The training")
    Traceback (most recent call last):
    ...
    fairweight.errors.InputError: The training: epochs = -1 cannot be used; it should be greater
    than or equal to 0.
    """
    try:
        return TypeAdapter(kind).validate_python(dict(given))
    except ValidationError as error:
        # A misspelt field explains a missing one.
        first = min(error.errors(), key=lambda e: e["type"] != "unexpected_keyword_argument")
        raise refusal(first, kind, what, remedies) from None


def as_spec(kind: type[Spec], given: Spec | Mapping[str, Any] | str, what: str, key: str) -> Spec:
    """A spec as it is, from a dictionary of its fields, or from the one field that it needs.

    Parameters
    ----------
    key
        The field that a plain text stands for.

    >>> from fairweight.specs.data import Data
    >>> as_spec(Data, "digits", "The data", "name") == Data(name="digits")
    True
    """
    if isinstance(given, str):
        given = {key: given}
    return read_spec(kind, given, what) if isinstance(given, Mapping) else given


def read_toml(
    path: str | Path, what: str, *, absent: str = "check the path", damaged: str = "correct it"
) -> dict[str, Any]:
    """The tables of a TOML file.

    Parameters
    ----------
    what
        How messages call it: `The study`.
    absent, damaged
        What to do about a file that is not there, or is not TOML.
    """
    try:
        return tomllib.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{what} '{path}' does not exist; {absent}.") from None
    except OSError as error:
        raise InputError(
            f"{what} '{path}' cannot be read ({error.strerror}); give a TOML file."
        ) from None
    except UnicodeDecodeError:
        raise InputError(
            f"{what} '{path}' is not UTF-8 text; save it as a UTF-8 TOML file."
        ) from None
    except RecursionError:
        raise InputError(f"{what} '{path}' is nested too deep; {damaged}.") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{what} '{path}' is not valid TOML ({error}); {damaged}.") from None


def check_plain(value: Any, what: str, place: str = "", depth: int = 0) -> None:
    """Raise unless a value is text, finite numbers, lists and tables, which is all that is stored.

    TOML also has dates, nan and inf.

    >>> check_plain({"a": [1, {"b": float("nan")}]}, "The study")
    Traceback (most recent call last):
    ...
    fairweight.errors.InputError: The study: a.1.b = nan cannot be used; give text or a finite
    number.
    """
    if depth > DEEPEST:
        raise InputError(f"{what}: {brief(place)} is nested too deeply; make it plainer.")
    if isinstance(value, Mapping | list | tuple):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, held in pairs:
            if isinstance(value, Mapping):
                check_plain(key, what, f"{place}.{key}".lstrip("."), depth)
            check_plain(held, what, f"{place}.{key}".lstrip("."), depth + 1)
        return
    finite = not isinstance(value, float) or math.isfinite(value)
    if isinstance(value, str):
        finite = value.isascii() or not any("\ud800" <= mark <= "\udfff" for mark in value)
    small = not isinstance(value, int) or abs(value) < 2**63
    if not (finite and small and isinstance(value, str | int | float | None)):
        raise InputError(
            f"{what}: {brief(place)} = {brief(value)} cannot be used; give text or a finite number."
        )


def refusal(
    error: ErrorDetails, kind: type[Any], what: str, remedies: Mapping[str, str]
) -> InputError:
    """A complaint as a sentence: which spec, which field, what was given, what to do."""
    place = [str(part) for part in error["loc"]]
    field = brief(".".join(place))
    if error["type"] == "unexpected_keyword_argument":
        if len(place) > 1:
            return InputError(f"{what} has no field '{field}'; leave it out.")
        return UnknownNameError(f"{what}: the field", field, [f.name for f in fields(kind)])
    if error["type"] == "value_error":
        said = brief(error["ctx"]["error"], 600)
        return InputError(f"{', '.join(filter(None, (what, field)))}: {said}.")
    remedy = remedies.get(next((part for part in reversed(place) if not part.isdigit()), ""))
    if error["type"] == "missing":
        return InputError(f"{what}: {field} is missing; {remedy or 'give it'}.")
    given = brief(repr(error["input"]))
    said = error["msg"].replace("Input should be", "it should be").rstrip(".")
    return InputError(f"{what}: {field} = {given} cannot be used; {remedy or said}.")


# What the fields of a spec are: type and default from its schema, meaning from its docstring.

REQUIRED = "required"
_PARAMETERS = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class SpecField:
    name: str
    type: str  # in words: `number from 0 to 1`
    default: Any  # None may also be a default: `required` tells
    required: bool
    meaning: str

    @property
    def default_text(self) -> str:
        """The default as it is written in JSON and TOML; `required` without one."""
        return REQUIRED if self.required else json.dumps(self.default, ensure_ascii=False)


def described(spec: type[Any]) -> tuple[SpecField, ...]:
    """The fields of a spec, those without a default first.

    >>> from fairweight.specs.compression import GlobalMagnitude
    >>> field = described(GlobalMagnitude)[0]
    >>> field.name, field.type, field.default_text
    ('sparsity', 'number from 0 to 1', 'required')
    """
    schema = TypeAdapter(spec).json_schema()
    required = schema.get("required", ())
    # Entries of the section `Parameters` of the class and of those that it builds on.
    meanings: dict[str, str] = {}
    for base in reversed(spec.__mro__):
        section = _PARAMETERS.search(inspect.cleandoc(vars(base).get("__doc__") or ""))
        names: list[str] = []
        for line in section[1].splitlines() if section else ():
            if line and not line[0].isspace():
                names = [name.strip() for name in line.split(",")]
                meanings |= dict.fromkeys(names, "")
            else:
                for name in names:
                    meanings[name] = f"{meanings[name]} {line.strip()}".strip()
    fields = [
        SpecField(
            name=name,
            type=_words(facts),
            default=facts.get("default"),
            required=name in required,
            meaning=meanings.get(name, ""),
        )
        for name, facts in schema["properties"].items()
        if "const" not in facts  # the name of a schedule, which says which of them it is
    ]
    return tuple(sorted(fields, key=lambda field: not field.required))


def summary_of(spec: type[Any]) -> str:
    """The paragraphs of a docstring before its parameters, on one line."""
    text = inspect.cleandoc(spec.__doc__ or "")
    return " ".join(_PARAMETERS.sub("", text).split())


def _words(facts: dict[str, Any]) -> str:
    """A JSON schema in words."""
    if "anyOf" in facts:
        return " or ".join(_words(choice) for choice in facts["anyOf"])
    if "discriminator" in facts:
        return "one of: " + ", ".join(facts["discriminator"]["mapping"])
    if "enum" in facts:
        return " or ".join(json.dumps(value) for value in facts["enum"])
    kind: str = facts.get("type", "anything")
    if kind == "array":
        return f"list of {_words(facts.get('items', {}))}"
    words = {"string": "text", "integer": "whole number", "boolean": "true or false"}
    low, high = facts.get("minimum"), facts.get("maximum")
    if low is not None and high is not None:
        return f"{words.get(kind, kind)} from {low:g} to {high:g}"
    ends = (
        ("of at least", low),
        ("above", facts.get("exclusiveMinimum")),
        ("of at most", high),
        ("below", facts.get("exclusiveMaximum")),
    )
    said = [f"{word} {end:g}" for word, end in ends if end is not None]
    return " ".join([words.get(kind, kind), " and ".join(said)]).rstrip()


# Studies from TOML files and dictionaries; what cannot be used gets one sentence.


def read_study(source: str | Path | Mapping[str, Any]) -> Study:
    """The study of a TOML file (a path) or of a dictionary with the same keys.

    >>> read_study({"name": "s", "experiment": [{"name": "a", "data": {"name": "digits"},
    ...     "model": {"architecture": "lenet"}, "training": {"epochs": 3}}]}).experiment[0].members
    5
    """
    if isinstance(source, Mapping):
        held, what = source, "The study"
    else:
        held, what = read_toml(source, "The study"), f"The study '{source}'"
    check_plain(held, what)
    return read_spec(Study, held, what)
