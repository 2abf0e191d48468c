"""A spec from plain values; what cannot be used gets one sentence."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from fairweight.errors import InputError, UnknownNameError, brief

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Spec = TypeVar("Spec")
DEEPEST = 30  # tables in tables


def read_spec(kind: type[Spec], given: Mapping[str, Any], what: str) -> Spec:
    """The spec with these fields.

    Parameters
    ----------
    kind
        A frozen dataclass of this folder.
    what
        How messages call it: `The training`.

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
        raise _refusal(first, kind, what) from None


def read_toml(path: str | Path, what: str) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise InputError(f"{what} '{path}' does not exist; check the path.") from None
    except OSError as error:
        raise InputError(
            f"{what} '{path}' cannot be read ({error.strerror}); give a TOML file."
        ) from None
    except (UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"{what} '{path}' is not valid TOML ({error}); correct it.") from None


def check_plain(value: Any, what: str, place: str = "", depth: int = 0) -> None:
    """Raise unless a value is text, finite numbers, lists and tables, which is all that is kept.

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


def _refusal(error: ErrorDetails, kind: type[Any], what: str) -> InputError:
    place = [str(part) for part in error["loc"]]
    field = brief(".".join(place))
    if error["type"] == "unexpected_keyword_argument":
        known = [f.name for f in fields(kind)] if len(place) == 1 else []
        return UnknownNameError(f"{what}: the field", field, known)
    if error["type"] == "missing":
        return InputError(f"{what}: {field} is missing; give it.")
    if error["type"] == "value_error":
        told = brief(error["ctx"]["error"], 600)
        return InputError(f"{what}: {told}.")
    given = brief(repr(error["input"]))
    return InputError(f"{what}: {field} = {given} cannot be used; {_told(error)}.")


def _told(error: ErrorDetails) -> str:
    """What pydantic says, as the second half of a sentence."""
    message = error["msg"]
    return message.replace("Input should be", "it should be").rstrip(".")
