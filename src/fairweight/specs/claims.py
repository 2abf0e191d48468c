"""Claims of a paper, written down before its study is run: what must be seen, and how much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, FiniteFloat, model_validator
from pydantic.dataclasses import dataclass

from fairweight.specs.study import Name

Cell: TypeAlias = bool | int | float | str
Where: TypeAlias = Mapping[str, Cell | tuple[Cell, ...]]
Direction: TypeAlias = Literal["up", "down", "not-up", "not-down", "none"]

_FROZEN = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Against:
    """What is subtracted: the claim's own rows, but for what is named here.

    Parameters
    ----------
    folder, where
        As of the claim, where they differ.
    replace
        Parts of the line's texts that become others: `{"kd" = "plain"}` sets `kd-45` against
        `plain-45`.
    """

    folder: str | None = None
    where: Where = field(default_factory=dict)
    replace: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Claim:
    """One claim, as it is judged.

    Parameters
    ----------
    id, statement, place
        Its name in tables, what the paper says, and where.
    quantity
        What is judged, in words.
    direction
        `up` and `down`: there is a change in this direction. `not-up` and `not-down`: there is
        none that matters. `none`: there is none that matters in either.
    smallest, why
        The smallest effect that matters, in units of the quantity, and a word on why.
    null
        The value of no effect.
    folder, table, where
        Which stored rows: the folder of an experiment (its audit), `classes`, `settings`, or a
        folder of a mitigation; a table of it; and columns with their values. Columns that say
        what a row is about (`task`, `group`, `class` …) and are not named must be empty; `"*"`
        takes any.
    value
        The column; its limits are those that the table has beside it.
    each, needs
        Columns: one line for each of their values; and of how many lines the claim speaks. With
        `all`, one line that does not reproduce speaks against the claim; `most` are more than
        half; `some` is one, and then limits must hold for all lines together.
    against
        Subtract other rows, over members. Members are paired by `pair_by`, and the interval is
        Student's t of their differences: other members, the same test examples.
    mean_over
        The column over which every member's value is a mean, with `against`.
    pair_by
        The column that says who belongs to whom, with `against`.
    ratio
        With `against`: the quotient of both sides instead of their difference, its geometric mean
        over pairs; the value of no effect is 1.
    corrected
        Whether limits hold for all lines together; else for each line alone.
    unjudged
        Why this study cannot speak to the claim, which is listed all the same.
    """

    id: Name
    statement: str
    place: str
    quantity: str
    direction: Direction
    smallest: Annotated[FiniteFloat, Field(gt=0)]
    why: str
    null: FiniteFloat = 0.0
    folder: str | None = None
    table: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] | None = None
    where: Where = field(default_factory=dict)
    value: str | None = None
    each: tuple[str, ...] = ()
    needs: Literal["all", "most", "some"] = "all"
    against: Against | None = None
    mean_over: str | None = None
    pair_by: str = "seed"
    ratio: bool = False
    corrected: bool = False
    unjudged: str | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Claim:
        if (self.folder is None) == (self.unjudged is None):
            raise ValueError(f"'{self.id}' needs either folder or unjudged")
        if self.against is None and (self.mean_over is not None or self.ratio):
            raise ValueError(f"'{self.id}' has mean_over or ratio, which need against")
        if self.ratio and self.null != 1:
            raise ValueError(f"'{self.id}' is a ratio; give null = 1")
        if self.needs == "some" and not self.corrected:
            raise ValueError(f"'{self.id}' needs some of its lines; give corrected = true")
        if self.corrected and self.against is None and self.value not in (None, "shift"):
            raise ValueError(f"'{self.id}' is corrected; only shift and against can be")
        return self


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Claims:
    """What a paper claims, as far as it is judged.

    Parameters
    ----------
    paper
        Authors, year, title.
    written
        When the claims were written down, and what was known of the results by then.
    claim
        The claims, in the paper's order.
    """

    paper: str
    written: str
    claim: Annotated[tuple[Claim, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _ids_differ(self) -> Claims:
        ids = [one.id for one in self.claim]
        for id in ids:
            if ids.count(id) > 1:
                raise ValueError(f"has two claims '{id}'; give each its own id")
        return self
