"""Policies from TOML files and dictionaries; what cannot be used gets one sentence."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.policy import Policy, Rule

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_NAMES = 'give a list of names, such as ["sex=Female"]'
REMEDIES = {
    "schema": "this version reads schema = 1",
    "min_group_size": "give a whole number of at least 1",
    "require_groups": _NAMES,
    "rule": "write every rule below a line [[rule]], with two brackets, and at least one of them",
    "metric": 'give the name of a metric, such as "accuracy" (fairweight metrics lists them)',
    "by": 'use "overall", "class", "group", "intersection" or "grouping"',
    "margin": "give the largest tolerated loss as a number of at least 0, such as 0.02 (2 points)",
    "recovery": "give the share of the baseline that must be kept as a number above 0 and at most "
    "1, such as 0.99 (99 %)",
    "min": "give the least tolerated value as a number, such as 0.8",
    "max": "give the largest tolerated value as a number, such as 0.1",
    "groups": _NAMES,
    "classes": 'give a list of classes, such as ["3"]',
    "columns": 'give a list of group columns, such as ["sex"]',
    "tasks": 'give a list of tasks, such as ["smiling"]',
}
_POLICY_KEYS = [field.name for field in fields(Policy)]
_RULE_KEYS = [field.name for field in fields(Rule)]


def read_policy(source: Policy | str | Path | Mapping[str, Any]) -> Policy:
    """The policy of a TOML file (a path) or of a dictionary with the same keys.

    >>> read_policy({"rule": [{"metric": "accuracy", "by": "group", "margin": 0.02}]}).rule[0].by
    'group'
    >>> read_policy({"rule": [{"metric": "accuracy", "by": "group", "margin": -1}]})
    Traceback (most recent call last):
    ...
    fairweight.errors.InputError: The policy, rule 1: margin = -1 cannot be used; give the largest
    tolerated loss as a number of at least 0, such as 0.02 (2 points).
    """
    if isinstance(source, Policy):
        return source
    if isinstance(source, Mapping):
        return _checked(dict(source), "The policy")
    if isinstance(source, str | Path):
        return _checked(_toml(Path(source)), f"The policy '{source}'")
    raise InputError(
        f"policy= cannot be {type(source).__name__}; give the path of a TOML file, a dictionary "
        "or a Policy."
    )


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise InputError(
            f"The policy '{path}' does not exist; fairweight gate --init > policy.toml writes one."
        ) from None
    except OSError as error:
        raise InputError(
            f"The policy '{path}' cannot be read ({error.strerror}); give a TOML file."
        ) from None
    except UnicodeDecodeError:
        raise InputError(
            f"The policy '{path}' is not UTF-8 text; save it as a UTF-8 TOML file."
        ) from None
    except RecursionError:
        raise InputError(
            f"The policy '{path}' is nested too deep; compare it with fairweight gate --init."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(
            f"The policy '{path}' is not valid TOML ({error}); compare it with fairweight gate "
            "--init."
        ) from None


def _checked(given: dict[str, Any], name: str) -> Policy:
    try:
        return TypeAdapter(Policy).validate_python(given)
    except ValidationError as error:
        raise _refusal(min(error.errors(), key=_urgency), name) from None


def _urgency(error: ErrorDetails) -> int:
    """Another schema explains all other complaints; a misspelt key explains a missing one."""
    if error["loc"][:1] == ("schema",):
        return 0
    return 1 if error["type"] == "unexpected_keyword_argument" else 2


def _refusal(error: ErrorDetails, name: str) -> InputError:
    """A complaint as a sentence: which rule, which key, what was given, what to do."""
    place = [part for part in error["loc"] if isinstance(part, str | int)]
    where, keys = name, _POLICY_KEYS
    if len(place) > 1 and place[0] == "rule" and isinstance(place[1], int):
        where, keys = f"{name}, rule {place[1] + 1}", _RULE_KEYS
        place = place[2:]
    key = str(place[0]) if place else ""
    if error["type"] == "unexpected_keyword_argument":
        if keys is _RULE_KEYS and key in _POLICY_KEYS:
            return InputError(
                f"{where}: the key '{key}' belongs to the whole policy; write it above the first "
                "[[rule]]."
            )
        return UnknownNameError(f"{where}: the key", key, keys)
    if error["type"] == "missing":
        return InputError(f"{where}: the key '{key}' is missing; {REMEDIES[key]}.")
    given = repr(error["input"])
    given = given if len(given) <= 200 else f"{given[:200]}…"
    if error["type"] == "value_error":
        return InputError(f"{where} {error['ctx']['error']}.")
    if key in REMEDIES:
        return InputError(f"{where}: {key} = {given} cannot be used; {REMEDIES[key]}.")
    return InputError(f"{where} cannot be {given}; {REMEDIES['rule']}.")
