"""What an audit found, per variant: what each scope says, and what stays unknown.

Structure only; `report.sentences` puts it into words for terminal, page and notebook alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairweight.auditing.result import Scope, at_task, is_ok, of_scope, records, select, variant_of
from fairweight.auditing.schema import Status
from fairweight.base.wording import missing, real, text, whole
from fairweight.report.members import RETRAINED, members_of
from fairweight.tables.companions import leaks
from fairweight.tables.names import split_group

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.compare.estimate import Members as RunValues
    from fairweight.auditing.result import AuditResult


# What the rows of one scope say about one variant: who loses, who pays more, which columns.
#
# Scope `model` holds the models fixed and samples examples; scope `method` samples members too.
# What
# is read first uses limits and p that hold for all families and variants at once (`lead_verdict`);
# tables use those of their family (`verdict`). The same rules read both.

Kind: TypeAlias = Literal["group", "class"]

# The confirmatory families: decided before the data are seen, in both a higher value is better.
UNTESTED = "no test was made"
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
    status = Status.of(overall["status"].iloc[0] if len(overall) else None)
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
        reason=None if status.ok else status.reason or UNTESTED,
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
                reason=None if known else Status.of(row["status"]).reason or UNTESTED,
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


# What an audit cannot tell: losses that could have gone unseen, and who is too small.


@dataclass(frozen=True)
class Blind:
    """A class or group where a shift that would matter could have gone unseen."""

    kind: Kind
    name: str
    task: str | None
    n: int | None
    detectable: float  # least loss found with 80 % power; NaN where no loss would be
    reference: float
    n_needed: float


@dataclass(frozen=True)
class Small:
    """A class or group that is too small, or a number that cannot be estimated, and why."""

    kind: Kind | None
    name: str
    n: int | None
    reason: str


@dataclass(frozen=True)
class Open:
    """A class or group where a loss beyond the margin is not ruled out."""

    kind: Kind
    name: str
    task: str | None
    n: int | None
    largest: float  # the largest loss that the data do not rule out


@dataclass(frozen=True)
class RuledOut:
    """For how many classes and groups a loss beyond the margin is ruled out, or shown, or open."""

    margin: float
    number: int
    of: int
    shown: int
    open: tuple[Open, ...]  # the largest possible loss first
    largest: float  # the largest loss that is not ruled out anywhere; NaN where it is not known

    @property
    def whom(self) -> str:
        """For how many, in words.

        >>> [RuledOut(0.02, n, 11, 0, (), 0.1).whom for n in (0, 4, 11)]
        ['none of 11 classes and groups', '4 of 11 classes and groups', 'all 11 classes and groups']
        """
        many = f"{self.of:,} classes and groups"
        if self.number == self.of:
            return f"all {many}"
        return f"{f'{self.number:,}' if self.number else 'none'} of {many}"


def margin_of(result: AuditResult) -> float:
    """The loss that matters, as a fraction; version 0.1.0 called it the reference shift."""
    options = result.provenance.options
    return float(options.get("margin", options.get("reference_shift", 0.02)))


def ruled_out(result: AuditResult, model: Verdict) -> RuledOut | None:
    """By the one-sided limits of each family; None where the audit has none.

    A loss beyond the margin is shown where the limits of the lead (`model`) lie below it.
    """
    number, of, margin = 0, 0, margin_of(result)
    beyond = {payer.key for payer in model.shifts if payer.high < -margin}
    left: list[Open] = []
    for metric, kind in CONFIRMATORY:
        rows = select(result, model.variant, metric, kind)
        rows = rows[is_ok(rows) & rows["family"].notna() & rows["loss_ruled_out"].notna()]
        of += len(rows)
        number += int(rows["loss_ruled_out"].sum())
        power = result.power
        power = power[(power["variant"] == model.variant) & (power["metric"] == metric)]
        reach = {
            (text(row["task"]), str(row[kind])): real(row.get("largest_loss"))
            for row in records(power[power["by"] == kind])
        }
        for row in records(rows[~rows["loss_ruled_out"].astype(bool)], (kind, "task", "n")):
            task, name = text(row["task"]), str(row[kind])
            largest = reach.get((task, name), float("nan"))
            left.append(Open(kind, name, task, whole(row["n"]), largest))
    if not of:
        return None
    left.sort(key=lambda o: 0.0 if missing(o.largest) else -o.largest)
    still = tuple(o for o in left if (o.kind, o.name, o.task) not in beyond)
    largest = left[0].largest if left else float("nan")
    return RuledOut(margin, number, of, len(left) - len(still), still, largest)


def blind(result: AuditResult, variant: str) -> tuple[tuple[Blind, ...], int]:
    """Rows where a loss of the reference size could have been missed, and was not found.

    The second value is how many classes and groups were looked at.
    """
    frame = result.power
    found: list[Blind] = []
    watched = 0
    for metric, kind in CONFIRMATORY:
        power = frame[
            (frame["variant"] == variant) & (frame["metric"] == metric) & (frame["by"] == kind)
        ]
        watched += len(power)
        reference = float(frame["reference_shift"].iloc[0]) if len(frame) else 0.0
        seen = _settled(select(result, variant, metric, kind), kind, reference)
        for row in records(power):
            if (text(row["task"]), str(row[kind])) in seen:
                continue
            detectable = abs(real(row["min_detectable_shift"]))
            reference = abs(real(row["reference_shift"]))
            if not missing(detectable) and detectable <= reference:
                continue
            found.append(
                Blind(
                    kind=kind,
                    name=str(row[kind]),
                    task=text(row["task"]),
                    n=whole(row["n"]),
                    detectable=detectable,
                    reference=reference,
                    n_needed=real(row["n_needed"]),
                )
            )
    return tuple(sorted(found, key=lambda b: b.n if b.n is not None else -1)), watched


def _settled(rows: pd.DataFrame, kind: Kind, reference: float) -> set[tuple[str | None, str]]:
    """Rows that are told: limits beside 0, or a loss of the reference size is ruled out."""
    above = rows["loss_ruled_out"].fillna(False).astype(bool)
    found = rows[(rows["sim_high"] < 0) | (rows["sim_low"] >= -abs(reference)) | above]
    return {(text(task), str(name)) for task, name in zip(found["task"], found[kind], strict=True)}


def small(result: AuditResult, variant: str) -> tuple[Small, ...]:
    """Classes and groups of the confirmatory families that got no verdict, each once."""
    found: dict[tuple[str, str], Small] = {}
    for metric, kind in CONFIRMATORY:
        rows = select(result, variant, metric, kind)
        for row in records(rows[~is_ok(rows)]):
            name = str(row[kind])
            found.setdefault(
                (kind, name),
                Small(kind, name, whole(row["n"]), Status.of(row["status"]).reason or UNTESTED),
            )
    return tuple(found.values())


@dataclass(frozen=True)
class Allowed:
    """The excess of a group, as observed and corrected for wrong group labels."""

    name: str
    task: str | None
    low: float
    high: float


@dataclass(frozen=True)
class Members:
    """How many models stand on each side, and how they were paired."""

    baseline: int
    compressed: int
    pairing: str | None  # parent, seed, independent, single
    kind: str = RETRAINED  # or repeated: what they are (report/members.py)

    @property
    def population(self) -> bool:
        return self.baseline > 1 or self.compressed > 1


@dataclass(frozen=True)
class Finding:
    """Everything the summary of one variant says."""

    variant: str
    baseline: str
    n_examples: int
    n_classes: int
    alpha: float
    correction: str
    members: Members
    model: Verdict  # these models, as they are; with the limits of the lead
    method: Verdict | None  # beyond retraining; None for one pair
    families: tuple[Verdict, ...]  # both scopes with the limits of their families, for tables
    one_rate: bool  # whether the limits of the lead hold for all variants at once
    ruled_out: RuledOut | None
    blind: tuple[Blind, ...]
    n_watched: int  # classes and groups whose power is known
    small: tuple[Small, ...]
    clustered: bool
    label_error: float = 0.0  # declared share of wrong group labels
    allowed: tuple[Allowed, ...] = ()  # excess allowing for it, the most harmed first
    leak: str | None = None  # what its teacher saw beyond its own training set
    runs: tuple[RunValues, ...] = ()  # every member's accuracy, of both sides

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The scopes that can be had: these models, and the method where there are members."""
        if self.method is None or self.method.reason is not None:
            return (self.model,)
        return (self.model, self.method)


def findings(result: AuditResult) -> tuple[Finding, ...]:
    """One finding per compressed variant, in the order given."""
    return tuple(find(result, variant) for variant in result.variants)


def find(result: AuditResult, variant: str | None = None) -> Finding:
    """The finding about one variant (the first one by default)."""
    from fairweight.auditing.compare.estimate import members_of as values_of

    name = variant_of(result, variant)
    options = result.provenance.options
    alpha = float(options.get("alpha", 0.05))
    own = result.results[result.results["variant"] == name]
    has_method = bool(of_scope(own, "method").any())
    unseen, n_watched = blind(result, name)
    model = lead_verdict(result, name, "model", alpha)
    return Finding(
        variant=name,
        baseline=result.baseline,
        n_examples=result.n_examples,
        n_classes=len(result.classes),
        alpha=alpha,
        correction=str(options.get("correction", "holm")),
        members=_members(result, name),
        model=model,
        method=_method(result, name, alpha) if has_method else None,
        families=_families(result, name, alpha, has_method),
        one_rate=bool(len(result.lead)),
        ruled_out=ruled_out(result, model),
        blind=unseen,
        n_watched=n_watched,
        small=small(result, name),
        clustered=bool(result.results["n_clusters"].notna().any()),
        label_error=float(options.get("group_error") or 0.0),
        allowed=_allowed(result, name),
        leak=leaks(result.variants_table, (name,)).get(name),
        runs=tuple(values_of(result.per_seed, side) for side in (result.baseline, name)),
    )


def _families(
    result: AuditResult, variant: str, alpha: float, has_method: bool
) -> tuple[Verdict, ...]:
    """What the tables show: these models, and the method where its rows have limits."""
    model = verdict(result, variant, "model", alpha)
    method = verdict(result, variant, "method", alpha) if has_method else None
    return (model,) if method is None or method.reason is not None else (model, method)


FEWEST_FOR_LEAD = 4  # members a side: with three the tables speak of the method, the lead does not


def _method(result: AuditResult, variant: str, alpha: float) -> Verdict:
    """What the lead says about the method; of too few members nothing."""
    made = lead_verdict(result, variant, "method", alpha)
    members = _members(result, variant)
    fewest = min(members.baseline, members.compressed)
    if made.reason is None and fewest < FEWEST_FOR_LEAD:
        return replace(made, reason=f"{fewest} members a side")
    return made


def _members(result: AuditResult, variant: str) -> Members:
    rows = at_task(select(result, variant, "accuracy", "overall"), result, None)
    sides = [
        (whole(row["n_seeds_baseline"]) or 1, whole(row["n_seeds_compressed"]) or 1)
        for row in records(rows, ("n_seeds_baseline", "n_seeds_compressed"))
    ] or [(1, 1)]
    return Members(*sides[0], result.pairing.get(variant), members_of(result))


def _allowed(result: AuditResult, variant: str) -> tuple[Allowed, ...]:
    """Groups whose excess is harmful, with its range if some group labels are wrong."""
    frame = result.group_error
    if frame.empty:
        return ()
    rows = frame[(frame["variant"] == variant) & (frame["corrected_low"] < 0)]
    return tuple(
        Allowed(str(row["group"]), text(row["task"]), row["corrected_low"], row["corrected_high"])
        for row in records(rows.sort_values("corrected_low", kind="stable"))
    )


# Variants side by side: who loses most in each, the clearest loss first.


@dataclass(frozen=True)
class Standing:
    """One variant in the ranking, read in one scope."""

    place: int  # among the variants as they were given, from 1
    finding: Finding
    verdict: Verdict

    @property
    def loses_overall(self) -> bool:
        """Whether accuracy is shown to fall."""
        change = self.verdict.overall
        return change is not None and not missing(change.high) and change.high < 0

    @property
    def overall(self) -> float:
        """The shift of accuracy; 0 where it cannot be told."""
        change = self.verdict.overall
        return 0.0 if change is None or missing(change.shift) else change.shift


def ranked(found: Sequence[Finding], scope: Scope = "model") -> tuple[Standing, ...]:
    """Variants in which somebody loses most first, then those with another shown loss.

    Each by the size of that loss; then the others by their accuracy.

    In scope `method` only those of which it can be told.
    """
    standings = [
        Standing(place, finding, verdict)
        for place, finding in enumerate(found, start=1)
        for verdict in finding.verdicts
        if verdict.scope == scope
    ]
    return tuple(sorted(standings, key=_order))


def _order(standing: Standing) -> tuple[int, float]:
    verdict = standing.verdict
    if verdict.most is not None:
        return 0, verdict.most.shift
    if standing.loses_overall or verdict.loses:
        return 1, standing.overall
    if verdict.pays_more:
        return 2, verdict.pays_more[0].shift
    return 3, standing.overall
