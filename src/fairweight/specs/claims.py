"""A paper's claims, written down before its study is run, and the tables and figures it prints.

A claim says what must be seen, and how much; a printed value says which rows of a run stand beside
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import AwareDatetime, ConfigDict, Field, FiniteFloat, model_validator
from pydantic.dataclasses import dataclass

from fairweight.specs.study import Name

Cell: TypeAlias = bool | int | float | str
Where: TypeAlias = Mapping[str, Cell | tuple[Cell, ...]]
Direction: TypeAlias = Literal["up", "down", "not-up", "not-down", "none"]
Share: TypeAlias = Annotated[FiniteFloat, Field(ge=0, le=1)]

_FROZEN = ConfigDict(extra="forbid")


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class PaperLevel:
    """Which variant stands for a level of the paper: by loss of accuracy, not by its name.

    A network that is a sixtieth of the paper's is in another regime at the same sparsity.

    Parameters
    ----------
    family
        A pattern of variants' names, such as `pruned-*`.
    loss
        The paper's loss of accuracy at the levels meant, as shares of 1: one line for each. The
        variant whose loss is nearest stands for it, if that is between half and double of it.
    between
        Instead: the variant that loses most within these limits.
    folder
        Where accuracies are looked up, if not in the claim's own folder.
    """

    family: str
    loss: tuple[Annotated[FiniteFloat, Field(gt=0, le=1)], ...] = ()
    between: tuple[FiniteFloat, FiniteFloat] | None = None
    folder: str | None = None

    @model_validator(mode="after")
    def _one_way(self) -> PaperLevel:
        if bool(self.loss) == (self.between is not None):
            raise ValueError(f"the level '{self.family}' needs either loss or between")
        return self


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Against:
    """The other side of a difference: like the claim's own rows, except for the fields named here.

    Parameters
    ----------
    folder, where, level
        As of the claim, where they differ.
    replace
        Parts of the line's texts that become others: `{"kd" = "plain"}` sets `kd-45` against
        `plain-45`.
    """

    folder: str | None = None
    where: Where = field(default_factory=dict)
    level: PaperLevel | None = None
    replace: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Part:
    """A part of a claim: one quantity, and what must be seen of it.

    Parameters
    ----------
    quantity
        What is judged, in words.
    direction
        `up` and `down`: there is a change in this direction. `not-up` and `not-down`: there is
        none that matters. `none`: there is none that matters in either.
    smallest, why
        The smallest effect that matters, in units of the quantity, and a word on why.
    says
        The number that the paper states, on the scale of the quantity: the interval must contain
        or exceed it, else the effect is weaker than claimed.
    null
        The value of no effect.
    folder, table, where
        Which stored rows: the folder of an experiment (its audit), `classes`, `settings`, or a
        folder of a mitigation; a table of it; and columns with their values. Columns that say
        what a row is about (`task`, `group`, `class` …) and are not named must be empty; `"*"`
        takes any.
    level
        The variant, where it is matched by loss of accuracy; it stands where values of `where` say
        `{level}`, else as the variant.
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
    control
        The variant that was trained as long as this one with nothing removed; its change of the
        same quantity stands beside.
    difficulty
        Of claims about exemplars: the column that has the same of dense against dense.
    total
        The loss of accuracy without which there is nothing to divide among groups: a share of 1.
    unjudged
        Why these data cannot speak to it.
    """

    quantity: str
    direction: Direction
    smallest: Annotated[FiniteFloat, Field(gt=0)]
    why: str
    says: FiniteFloat | None = None
    null: FiniteFloat = 0.0
    folder: str | None = None
    table: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")] | None = None
    where: Where = field(default_factory=dict)
    level: PaperLevel | None = None
    value: str | None = None
    each: tuple[str, ...] = ()
    needs: Literal["all", "most", "some"] = "all"
    against: Against | None = None
    mean_over: str | None = None
    pair_by: str = "seed"
    ratio: bool = False
    corrected: bool = False
    control: str | None = None
    difficulty: str | None = None
    total: Share | None = None
    unjudged: str | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Part:
        name = f"'{self.quantity}'"
        if (self.folder is None) == (self.unjudged is None):
            raise ValueError(f"{name} needs either folder or unjudged")
        if self.against is None and (self.mean_over is not None or self.ratio):
            raise ValueError(f"{name} has mean_over or ratio, which need against")
        if self.ratio and self.null != 1:
            raise ValueError(f"{name} is a ratio; give null = 1")
        if self.needs == "some" and not self.corrected:
            raise ValueError(f"{name} needs some of its lines; give corrected = true")
        if self.corrected and self.against is None and self.value not in (None, "shift"):
            raise ValueError(f"{name} is corrected; only shift and against can be")
        named = any("{level}" in str(value) for value in self.where.values())
        if self.level is None and named:
            raise ValueError(f"{name} names {{level}}; give level")
        if self.level is not None and not named and "variant" in self.where:
            raise ValueError(f"{name} has a level, which says the variant; leave variant out")
        if self.says is not None:
            if self.direction not in ("up", "down"):
                raise ValueError(f"{name} claims no change, so it says no number; leave says out")
            if (self.says - self.null > 0) != (self.direction == "up"):
                raise ValueError(f"{name} says {self.says:g}, which is not {self.direction}")
        return self


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Claim(Part):
    """One claim, as it is judged: a first part, and further ones that must hold with it.

    Parameters
    ----------
    id, statement, place
        Its name in tables, what the paper says, and where: `Table 3`, `Figure 2`, then sections.
    also
        What the claim says besides: it reproduces only where every part does.
    twin_of
        The claim that this one follows from by arithmetic. It is shown, and not counted.
    authors
        How it is computed from the authors' own numbers: `compute` names the computation
        (`studies/authors.py`), the rest is what it takes.
    written
        When it was written down, where that was not when the others were.
    """

    id: Name
    statement: str
    place: str
    also: tuple[Part, ...] = ()
    twin_of: Name | None = None
    authors: Where | None = None
    written: AwareDatetime | None = None


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Regime:
    """What the paper's dense models reach, for comparison with those of a run.

    Parameters
    ----------
    folder, task
        Of the run; every task where none is named.
    recall
        The paper's recall of the rarer class.
    tcb
        Where no recall is printed: how often the paper's dense models predict the rarer class,
        over how often it is there.
    accuracy
        The paper's dense accuracy, to be shown beside the run's.
    down_sampled
        Classes of which training examples were taken away.
    """

    folder: str
    task: str | None = None
    recall: Share | None = None
    tcb: Share | None = None
    accuracy: Share | None = None
    down_sampled: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, config=_FROZEN)
class Claims:
    """What a paper claims, as far as it is judged.

    Parameters
    ----------
    paper, title
        Authors and year; the paper's title.
    written
        When the claims were written down (with a time zone). A claim is *written before the run*
        where the run began later, else *after*.
    known
        What was known of results by then.
    members
        How many members the second round has on a side: what pilots reckon with.
    regime
        What the paper's dense models reach.
    claim
        The claims, in the paper's order.
    """

    paper: str
    written: AwareDatetime
    title: str = ""
    known: str = ""
    members: Annotated[int, Field(ge=2)] = 5
    regime: tuple[Regime, ...] = ()
    claim: Annotated[tuple[Claim, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _ids_differ(self) -> Claims:
        ids = [one.id for one in self.claim]
        for id in ids:
            if ids.count(id) > 1:
                raise ValueError(f"has two claims '{id}'; give each its own id")
        for one in self.claim:
            if one.twin_of is not None and one.twin_of not in ids:
                raise ValueError(f"'{one.id}' is a twin of '{one.twin_of}', which is no claim")
        return self

    def written_at(self, claim: Claim) -> datetime:
        """When a claim was written down."""
        return claim.written or self.written


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
    level: PaperLevel | None = None
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
class PrintedColumn:
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
    column: tuple[PrintedColumn, ...] = ()
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
