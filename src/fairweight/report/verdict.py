"""What the rows of one scope say about one variant: who loses, who pays more, which columns.

Scope `model` holds the models fixed and samples examples; scope `method` samples members too. What
is read first uses limits and p that hold for all families and variants at once (`lead_verdict`);
tables use those of their family (`verdict`). The same rules read both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairweight.report.numbers import missing, real, text, whole
from fairweight.report.rows import Scope, at_task, is_ok, records, select
from fairweight.tables.names import split_group

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

Kind: TypeAlias = Literal["group", "class"]

# The confirmatory families: decided before the data are seen, in both a higher value is better.
CONFIRMATORY: tuple[tuple[str, Kind], ...] = (("accuracy", "group"), ("recall", "class"))


@dataclass(frozen=True)
class Context:
    """What the baseline's own members do: a picture beside the limits, never a verdict."""

    matched: float  # median absolute change between equally many baseline and compressed members
    noise_floor: float  # 95 % of the changes between two such sets of baseline members are smaller
    p_retraining: float


@dataclass(frozen=True)
class Change:
    """A metric before and after, with the interval of its shift."""

    metric: str
    task: str | None
    baseline: float
    compressed: float
    shift: float
    low: float
    high: float
    p: float
    context: Context


@dataclass(frozen=True)
class Payer:
    """A class or group with its shift (or its excess over all others) and limits."""

    kind: Kind
    name: str
    task: str | None
    metric: str
    n: int | None
    baseline: float
    compressed: float
    shift: float
    low: float
    high: float
    p: float  # corrected within the family, or in the lead for everything
    n_family: int | None
    context: Context
    churn: float = float("nan")  # share of predictions that became wrong or right
    column: str | None = None  # of a group in the lead: its group column, or columns

    @property
    def key(self) -> tuple[Kind, str, str | None]:
        """Whom it speaks of, in every scope."""
        return self.kind, self.name, self.task


@dataclass(frozen=True)
class Column:
    """Whether the change differs between the groups of one column, or between classes."""

    kind: Kind
    name: str
    task: str | None
    p: float
    differs: bool | None  # None: cannot be told
    reason: str | None
    within_p: float = float("nan")  # the same among examples of one class


@dataclass(frozen=True)
class Verdict:
    """Everything that one scope says about one variant.

    `shifts` and `excesses` hold every row of the confirmatory families that has limits (none of
    missing values), those of intersections behind, and the larger first.
    """

    variant: str
    scope: Scope
    alpha: float
    overall: Change | None
    columns: tuple[Column, ...]
    shifts: tuple[Payer, ...]
    excesses: tuple[Payer, ...]
    reason: str | None = None  # why this scope cannot be had at all

    @property
    def loses(self) -> tuple[Payer, ...]:
        """Whose simultaneous limits lie below 0."""
        return tuple(payer for payer in self.shifts if payer.high < 0)

    @property
    def gains(self) -> tuple[Payer, ...]:
        """Whose simultaneous limits lie above 0."""
        return tuple(payer for payer in self.shifts if payer.low > 0)

    @property
    def pays_more(self) -> tuple[Payer, ...]:
        """Who loses, and loses more than all others in its column, after correction.

        Whoever merely gained less than the others does not pay.
        """
        falls = {payer.key for payer in self.shifts if payer.shift < 0}
        return tuple(
            p for p in self.excesses if p.p <= self.alpha and p.shift < 0 and p.key in falls
        )

    @property
    def most(self) -> Payer | None:
        """Who loses most: the largest shown loss among those shown to lose more than the rest."""
        paying = {payer.key for payer in self.pays_more}
        return min((p for p in self.loses if p.key in paying), key=lambda p: p.shift, default=None)

    def apart(self, column: Column) -> tuple[Payer, ...]:
        """Whose change is shown to differ from the rest of this column, the clearest first."""
        own = [
            p
            for p in self.excesses
            if p.p <= self.alpha
            and (p.kind, p.task) == (column.kind, column.task)
            and (p.kind == "class" or p.column == column.name)
        ]
        return tuple(sorted(own, key=lambda p: (p.p, -abs(p.shift))))


def verdict(result: AuditResult, variant: str, scope: Scope, alpha: float) -> Verdict:
    """What the rows of one scope say."""
    overall = at_task(select(result, variant, "accuracy", "overall", scope), result, None)
    status = text(overall["status"].iloc[0]) if len(overall) else None
    return Verdict(
        variant=variant,
        scope=scope,
        alpha=alpha,
        overall=_overall(records(overall)),
        columns=(
            *_group_columns(result, variant, scope, alpha),
            *_class_columns(result, variant, scope, alpha),
        ),
        shifts=_payers(result, variant, scope, _SHIFT),
        excesses=_payers(result, variant, scope, _EXCESS),
        reason=reason_of(status) if status not in (None, "ok") else None,
    )


def lead_verdict(result: AuditResult, variant: str, scope: Scope, alpha: float) -> Verdict:
    """The same with limits and p that hold for all families and variants at once.

    An audit of version 0.1.0 has none of these; then those of the families stand in.
    """
    tables = verdict(result, variant, scope, alpha)
    frame = result.lead
    rows = frame[(frame["variant"] == variant) & (frame["scope"] == scope)]
    if not len(rows):
        return tables
    found: dict[tuple[str, str, str | None, str | None], dict[str, Any]] = {}
    for row in records(rows):
        name = text(row["class"] if row["by"] == "class" else row["group"])
        found[(str(row["quantity"]), str(row["by"]), name, text(row["task"]))] = row

    def held(payers: tuple[Payer, ...], quantity: str) -> tuple[Payer, ...]:
        made = []
        for payer in payers:
            own = found.get((quantity, payer.kind, payer.name, payer.task))
            if own is not None:
                low, high, p = (real(own[name]) for name in ("low", "high", "p_lead"))
                column = text(own["column"])
                made.append(replace(payer, low=low, high=high, p=p, column=column))
        return tuple(made)

    shifts, excesses = held(tables.shifts, "shift"), held(tables.excesses, "excess")
    overall = tables.overall
    if overall is not None and ("shift", "overall", None, overall.task) in found:
        row = found[("shift", "overall", None, overall.task)]
        limits = real(row["low"]), real(row["high"])
        overall = replace(overall, low=limits[0], high=limits[1], p=real(row["p_lead"]))
    return replace(
        tables,
        overall=overall,
        shifts=shifts,
        excesses=excesses,
        columns=tuple(_held_column(column, rows, alpha) for column in tables.columns),
    )


def _held_column(column: Column, lead: pd.DataFrame, alpha: float) -> Column:
    """A column by the least p of its groups' excesses, so that the two never disagree."""
    own = lead[(lead["quantity"] == "excess") & (lead["by"] == column.kind)]
    own = own[own["task"].isna() if column.task is None else own["task"] == column.task]
    if column.kind == "group":
        own = own[own["column"] == column.name]
    p = real(own["p_lead"].min()) if len(own) else float("nan")
    if column.differs is None or missing(p):
        return column
    return replace(column, p=p, differs=p <= alpha)


def reason_of(status: str | None) -> str:
    """The reason behind a status.

    >>> reason_of("not_estimable: one level"), reason_of("small_group: n < 10"), reason_of("ok")
    ('one level', 'n < 10', 'no test was made')
    """
    return (status or "").partition(": ")[2] or "no test was made"


def _context(row: dict[str, Any]) -> Context:
    return Context(real(row["matched"]), real(row["noise_floor"]), real(row["p_retraining"]))


def _overall(rows: list[dict[str, Any]]) -> Change | None:
    for row in rows:
        return Change(
            metric="accuracy",
            task=text(row["task"]),
            baseline=real(row["baseline"]),
            compressed=real(row["compressed"]),
            shift=real(row["shift"]),
            low=real(row["ci_low"]),
            high=real(row["ci_high"]),
            p=real(row["p_value"]),
            context=_context(row),
        )
    return None


def _group_columns(
    result: AuditResult, variant: str, scope: Scope, alpha: float
) -> tuple[Column, ...]:
    found = []
    within = {
        (str(row["group"]), text(row["task"])): real(row["p_adjusted"])
        for row in records(
            select(result, variant, "heterogeneity_within_classes", "grouping", scope)
        )
    }
    for row in records(select(result, variant, "heterogeneity", "grouping", scope)):
        p = real(row["p_adjusted"])
        known = not missing(p)
        found.append(
            Column(
                kind="group",
                name=str(row["group"]),
                task=text(row["task"]),
                p=p,
                differs=bool(p <= alpha) if known else None,
                reason=None if known else reason_of(text(row["status"])),
                within_p=within.get((str(row["group"]), text(row["task"])), float("nan")),
            )
        )
    return tuple(found)


def _class_columns(
    result: AuditResult, variant: str, scope: Scope, alpha: float
) -> tuple[Column, ...]:
    """Whether the change differs between classes: the least corrected p of their excesses."""
    rows = select(result, variant, "recall", "class", scope)
    found = []
    for task, part in rows.groupby("task", dropna=False, sort=False):
        p = part.loc[is_ok(part), "excess_p_adjusted"].min()
        if not missing(p):
            found.append(Column("class", "classes", text(task), real(p), bool(p <= alpha), None))
    return tuple(found)


_PAYER = (
    "task", "metric", "n", "baseline", "compressed", "n_family",
    "matched", "noise_floor", "p_retraining", "churn",
)  # fmt: skip
_SHIFT = ("shift", "sim_low", "sim_high", "p_adjusted")
_EXCESS = ("excess_shift", "excess_sim_low", "excess_sim_high", "excess_p_adjusted")


def _payers(
    result: AuditResult, variant: str, scope: Scope, columns: tuple[str, str, str, str]
) -> tuple[Payer, ...]:
    """Every judged row of the confirmatory families by these four columns."""
    found: list[Payer] = []
    for metric, kind in CONFIRMATORY:
        rows = select(result, variant, metric, kind, scope)
        known = rows[columns[0]].notna() & rows["family"].notna()  # not of missing values
        judged = records(rows[is_ok(rows) & known], (kind, *_PAYER, *columns))
        found += [_payer(row, kind, *columns) for row in judged]
    return _in_order(found, result)


def _payer(row: dict[str, Any], kind: Kind, shift: str, low: str, high: str, p: str) -> Payer:
    return Payer(
        kind=kind,
        name=str(row[kind]),
        task=text(row["task"]),
        metric=str(row["metric"]),
        n=whole(row["n"]),
        baseline=real(row["baseline"]),
        compressed=real(row["compressed"]),
        shift=real(row[shift]),
        low=real(row[low]),
        high=real(row[high]),
        p=real(row[p]),
        n_family=whole(row["n_family"]),
        context=_context(row),
        churn=real(row["churn"]),
    )


def _in_order(payers: list[Payer], result: AuditResult) -> tuple[Payer, ...]:
    """The larger shift first; intersections behind the columns that they are made of."""

    def place(payer: Payer) -> tuple[bool, float]:
        inside = payer.kind == "group" and len(split_group(payer.name)) > 1
        return inside, -abs(payer.shift)

    return tuple(sorted(payers, key=place))
