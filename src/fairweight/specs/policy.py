"""A policy: what a compressed model may lose, and how good it must be, before it ships."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

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
class Policy:
    """All rules, in the order of the file.

    Parameters
    ----------
    schema
        The version of the format.
    min_group_size
        Rows of fewer examples are never judged: they are "cannot tell".
    require_groups
        Groups that must be in the data.
    """

    rule: Annotated[tuple[Rule, ...], Field(min_length=1)]
    schema: Literal[1] = 1
    min_group_size: Annotated[int, Field(strict=True, ge=1)] = 100
    require_groups: tuple[str, ...] = ()

    def confirmatory(self) -> tuple[tuple[str, str], ...]:
        """The (metric, kind of row) pairs that were declared before looking."""
        return tuple(dict.fromkeys((rule.metric, rule.by) for rule in self.rule))
