"""What a paper prints: its tables and figures, and which rows of a run stand beside each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, FiniteFloat, model_validator
from pydantic.dataclasses import dataclass

from fairweight.specs.claims import Level, Where

_FROZEN = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Cells:
    """Which stored rows a run's values come from; what a row or column sets wins.

    Parameters
    ----------
    folder, table, where, level, value
        As of a claim.
    times
        What the stored value is multiplied by: 100 for percent.
    """

    folder: str | None = None
    table: str | None = None
    where: Where = field(default_factory=dict)
    level: Level | None = None
    value: str | None = None
    times: FiniteFloat | None = None


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class PrintedRow:
    """A row of a table: its name, the paper's values, and where the run's come from.

    Parameters
    ----------
    values
        In the order of the columns; `"-"` where the paper has none.
    recovered
        By column: values that the paper misprints and its other numbers give.
    run
        None: the run has no such row.
    """

    name: str
    values: tuple[FiniteFloat | Annotated[str, Field(pattern="^-$")], ...]
    recovered: Mapping[str, FiniteFloat] = field(default_factory=dict)
    run: Cells | None = None

    def number(self, column: int) -> float | None:
        """The paper's value in a column."""
        value = self.values[column]
        return None if isinstance(value, str) else value


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Column:
    """A column of a table; `run` as of a row. `decimals` is how its values are printed."""

    name: str
    run: Cells | None = None
    decimals: Annotated[int, Field(ge=0, le=6)] = 2


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Exhibit:
    """A table or a figure of a paper.

    Parameters
    ----------
    name, caption
        `Table 1`, and what it shows, in short.
    figures
        Figures of the catalogue that draw the same from a run, such as `HK-T1`.
    folder
        Of the run, for those figures.
    column, row, run
        The paper's values, where it prints numbers; `run` holds for all cells.
    attributes
        Beside it a table of all attributes of the run: how often each is there (`shares`), or how
        much more often among exemplars (`exemplars`).
    note
        What a reader must know of it: a misprint, or how the run differs.
    """

    name: str
    caption: str
    figures: tuple[str, ...] = ()
    folder: str | None = None
    column: tuple[Column, ...] = ()
    row: tuple[PrintedRow, ...] = ()
    run: Cells | None = None
    attributes: Literal["shares", "exemplars"] | None = None
    note: str = ""

    @model_validator(mode="after")
    def _rows_are_full(self) -> Exhibit:
        for one in self.row:
            if len(one.values) != len(self.column):
                raise ValueError(
                    f"{self.name}: the row '{one.name}' has {len(one.values)} values for "
                    f"{len(self.column)} columns"
                )
        return self

    def values(self, row: str) -> dict[str, float | None]:
        """The paper's values of a row by column."""
        (found,) = [one for one in self.row if one.name == row]
        return {column.name: found.number(number) for number, column in enumerate(self.column)}


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Takeaway:
    """What a reader should take away, with the claims that support it.

    Parameters
    ----------
    text
        A sentence in which `{claim}` stands for what the run says of a claim, `{claim:authors}` for
        what the authors' numbers say, and `{claim:authors:line}` for one line of that; with
        `|points` behind it, shares are given in points.
    holds
        The verdicts that make the sentence true, by the same names.
    """

    text: str
    holds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Printed:
    """What a paper says and prints, and what a reader should take away.

    Parameters
    ----------
    says
        What the paper says, in a sentence or two.
    ran
        What was run here, in a sentence or two.
    takeaway
        The three things to take away.
    counts
        Numbers of examples that the paper's tables rest on, by group.
    exhibit
        Its tables and figures, in the paper's order.
    """

    says: str
    ran: str
    takeaway: tuple[Takeaway, ...] = ()
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    exhibit: Annotated[tuple[Exhibit, ...], Field(min_length=1)]

    def named(self, name: str) -> Exhibit:
        """A table or figure by its name."""
        (found,) = [one for one in self.exhibit if one.name == name]
        return found
