"""A policy: what a compressed model may lose, and how good it must be, before it ships."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass

from fairweight.errors import InputError, UnknownNameError
from fairweight.specs.toml import read_toml

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Kind: TypeAlias = Literal["overall", "class", "group", "intersection", "grouping"]
Criterion: TypeAlias = Literal["margin", "recovery", "min", "max"]
CRITERIA: tuple[Criterion, ...] = ("margin", "recovery", "min", "max")

# Which filters mean something for which rows: a class has no column, a gap no level.
FILTERS: dict[str, tuple[str, ...]] = {
    "overall": (),
    "class": ("classes",),
    "group": ("groups", "columns"),
    "intersection": ("groups", "columns"),
    "grouping": ("columns",),
}


def _class_name(value: object) -> object:
    """Classes are compared by their text, so `classes = [3]` means the class "3"."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Number: TypeAlias = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Names: TypeAlias = Annotated[tuple[str, ...], Field(min_length=1)]
ClassNames: TypeAlias = Annotated[
    tuple[Annotated[str, BeforeValidator(_class_name)], ...], Field(min_length=1)
]

_FROZEN = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Rule:
    """One demand on every row that it names.

    Parameters
    ----------
    metric
        A metric that has a better direction.
    by
        Which rows: overall, every class, every group, every intersection, every group column.
    margin
        The largest tolerated loss against the baseline, in the metric's own unit.
    recovery
        The least share of the baseline's value that must be kept, such as 0.99.
    min, max
        The least or the largest tolerated value of the compressed model itself.
    groups, classes, columns, tasks
        Only these; by default all.
    """

    metric: str
    by: Kind
    margin: Annotated[Number, Field(ge=0)] | None = None
    recovery: Annotated[Number, Field(gt=0, le=1)] | None = None
    min: Number | None = None
    max: Number | None = None
    groups: Names | None = None
    classes: ClassNames | None = None
    columns: Names | None = None
    tasks: Names | None = None

    @model_validator(mode="after")
    def _asks_something(self) -> Rule:
        if not self.criteria():
            raise ValueError("asks for nothing; give a margin, a recovery, a min or a max")
        for name in ("groups", "classes", "columns"):
            if getattr(self, name) is not None and name not in FILTERS[self.by]:
                raise ValueError(
                    f'has {name}, which mean nothing with by = "{self.by}"; '
                    + (
                        f"use {' or '.join(FILTERS[self.by])}"
                        if FILTERS[self.by]
                        else "leave them out"
                    )
                )
        return self

    def criteria(self) -> tuple[tuple[Criterion, float], ...]:
        """What is asked of each row: (margin | recovery | min | max, its limit)."""
        given = ((name, getattr(self, name)) for name in CRITERIA)
        return tuple((name, float(limit)) for name, limit in given if limit is not None)


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Limit:
    """How large or how slow a variant may be: a number of the variants table, as it was measured.

    Parameters
    ----------
    column
        A column of the variants table, such as "size_bytes" or "latency_ms".
    max, min
        The largest or the least tolerated number.
    """

    column: str
    max: Number | None = None
    min: Number | None = None

    @model_validator(mode="after")
    def _asks_something(self) -> Limit:
        if self.max is None and self.min is None:
            raise ValueError("asks for nothing; give a max or a min")
        return self

    def criteria(self) -> tuple[tuple[Literal["max", "min"], float], ...]:
        """What is asked of every variant."""
        given: tuple[tuple[Literal["max", "min"], float | None], ...]
        given = (("max", self.max), ("min", self.min))
        return tuple((name, float(limit)) for name, limit in given if limit is not None)


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Policy:
    """All rules, in the order of the file.

    Parameters
    ----------
    schema
        The version of the format.
    min_group_size
        Rows of fewer examples are never judged: they are "cannot tell".
    small_groups
        What becomes of them: "cannot tell", or "skip", which leaves them out and names them.
    require_groups
        Groups that must be in the data, and are never skipped.
    exclude
        Groups that are not judged at all; the verdict names them.
    limit
        Sizes and latencies of the variants.
    """

    rule: Annotated[tuple[Rule, ...], Field(min_length=1)]
    schema: Literal[1] = 1
    min_group_size: Annotated[int, Field(strict=True, ge=1)] = 100
    small_groups: Literal["cannot tell", "skip"] = "cannot tell"
    require_groups: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    limit: tuple[Limit, ...] = ()

    def confirmatory(self) -> tuple[tuple[str, str], ...]:
        """The (metric, kind of row) pairs that were declared before looking."""
        return tuple(dict.fromkeys((rule.metric, rule.by) for rule in self.rule))


# Policies from TOML files and dictionaries; what cannot be used gets one sentence.

_NAMES = 'give a list of names, such as ["sex=Female"]'
REMEDIES = {
    "schema": "this version reads schema = 1",
    "min_group_size": "give a whole number of at least 1",
    "small_groups": 'use "cannot tell" or "skip"',
    "require_groups": _NAMES,
    "exclude": _NAMES,
    "limit": "write every limit below a line [[limit]], with two brackets",
    "column": 'give a column of the variants table, such as "size_bytes" or "latency_ms"',
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
_PART_KEYS = {
    "rule": [field.name for field in fields(Rule)],
    "limit": [field.name for field in fields(Limit)],
}


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
        given, name = dict(source), "The policy"
    elif isinstance(source, str | Path):
        given = read_toml(
            source,
            "The policy",
            absent="fairweight gate --init > policy.toml writes one",
            damaged="compare it with fairweight gate --init",
        )
        name = f"The policy '{source}'"
    else:
        raise InputError(
            f"policy= cannot be {type(source).__name__}; give the path of a TOML file, a "
            "dictionary or a Policy."
        )
    try:
        return TypeAdapter(Policy).validate_python(given)
    except ValidationError as error:
        raise _refusal(min(error.errors(), key=_urgency), name) from None


def _urgency(error: ErrorDetails) -> int:
    """The cause first: a wrong schema, then a misspelt key, then what follows from them."""
    if error["loc"][:1] == ("schema",):
        return 0
    return 1 if error["type"] == "unexpected_keyword_argument" else 2


def _refusal(error: ErrorDetails, name: str) -> InputError:
    """A complaint as a sentence: which rule, which key, what was given, what to do."""
    place = [part for part in error["loc"] if isinstance(part, str | int)]
    where, keys = name, _POLICY_KEYS
    part = str(place[0]) if place else ""
    if part in _PART_KEYS and len(place) > 1 and isinstance(place[1], int):
        where, keys = f"{name}, {part} {place[1] + 1}", _PART_KEYS[part]
        place = place[2:]
    key = str(place[0]) if place else ""
    if error["type"] == "unexpected_keyword_argument":
        if keys is not _POLICY_KEYS and key in _POLICY_KEYS:
            return InputError(
                f"{where}: the key '{key}' belongs to the whole policy; write it above the first "
                f"[[{part}]]."
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
