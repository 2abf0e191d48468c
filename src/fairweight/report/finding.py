"""What an audit found, per variant: what each scope says, and what stays unknown.

Structure only; `report.sentences` puts it into words for terminal, page and notebook alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from fairweight.auditing.metrics import confirmatory
from fairweight.auditing.metrics import metric as registered
from fairweight.auditing.result import (
    Row,
    Scope,
    power_of,
    records,
    row_ok,
    rows_of,
    variant_of,
)
from fairweight.auditing.schema import Status
from fairweight.base.wording import missing, real, text, whole
from fairweight.report.members import RETRAINED, members_of
from fairweight.report.numbers import Unit
from fairweight.tables.names import split_group

if TYPE_CHECKING:
    from fairweight.auditing.compare.estimate import RunValues
    from fairweight.auditing.result import AuditResult


# What the rows of one scope say about one variant: who loses, who pays more, which columns.
#
# Scope `model` holds the models fixed and samples examples; scope `method` samples members too.
# What is read first uses limits and p that hold for all families and variants at once
# (`lead_verdict`); tables use those of their family (`verdict`). The same rules read both.

Kind: TypeAlias = Literal["group", "class"]

UNTESTED = "no test was made"


def lead_families() -> list[tuple[str, Kind]]:
    """The confirmatory families by group and by class: of classes, and of any outcome.

    >>> lead_families()[0], lead_families()[-1]
    (('accuracy', 'group'), ('recall', 'class'))
    """
    kinds: tuple[Kind, Kind] = ("group", "class")
    return [
        (name, kind) for kind in kinds for name, held in confirmatory() if held == kind
    ]  # fmt: skip


@dataclass(frozen=True)
class Change:
    """A metric before and after, of everybody, a class or a group, and its shift with limits.

    What the baseline's own members do stands beside the limits: a picture, never a verdict.
    """

    kind: Literal["overall", "group", "class"]
    name: str
    task: str | None
    metric: str
    n: int | None
    baseline: float
    compressed: float
    shift: float  # or the excess over all others
    low: float
    high: float
    p: float  # corrected within the family, or in the lead for everything
    matched: float  # median absolute change between equally many baseline and compressed members
    noise_floor: float  # 95 % of the changes between two such sets of baseline members are smaller
    churn: float  # share of predictions that became wrong or right
    column: str | None = None  # of a group in the lead: its group column, or columns
    label: str | None = None  # of a class: its name, where the class itself is a code

    @property
    def key(self) -> tuple[str, str, str | None]:
        """Whom it speaks of, in every scope."""
        return self.kind, self.name, self.task

    @property
    def gains(self) -> tuple[float, float, float]:
        """Shift and limits on the scale on which more is better."""
        if registered(self.metric).better == "lower":
            return -self.shift, -self.high, -self.low
        return self.shift, self.low, self.high

    @property
    def gain(self) -> float:
        return self.gains[0]

    @property
    def is_loss(self) -> bool:
        """Whether the limits lie on the harmful side of 0."""
        return self.gains[2] < 0

    @property
    def is_gain(self) -> bool:
        """Whether the limits lie on the good side of 0."""
        return self.gains[1] > 0


@dataclass(frozen=True)
class ColumnChange:
    """Whether the change differs between the groups of one column, or between classes."""

    kind: Kind
    name: str
    task: str | None
    p: float
    differs: bool | None  # None: not known
    reason: str | None
    within_p: float = float("nan")  # the same among examples of one class


@dataclass(frozen=True)
class ScopeFinding:
    """Everything that one scope says about one variant.

    `shifts` and `excesses` hold every row of the confirmatory families that has limits (none of
    missing values), those of intersections behind, and the larger first. Who loses, gains and pays
    is found once: sentences ask for it again and again, of up to thousands of groups.
    """

    variant: str
    scope: Scope
    alpha: float
    overall: Change | None
    columns: tuple[ColumnChange, ...]
    shifts: tuple[Change, ...]
    excesses: tuple[Change, ...]
    reason: str | None = None  # why this scope cannot be had at all

    @property
    def only_changes(self) -> bool:
        """Without labels: how often predictions changed is known, and no loss."""
        change = self.overall
        return change is not None and missing(change.shift) and not missing(change.compressed)

    @cached_property
    def loses(self) -> tuple[Change, ...]:
        """Whose simultaneous limits lie below 0."""
        return tuple(payer for payer in self.shifts if payer.is_loss)

    @cached_property
    def gains(self) -> tuple[Change, ...]:
        """Whose simultaneous limits lie above 0."""
        return tuple(payer for payer in self.shifts if payer.is_gain)

    @cached_property
    def pays_more(self) -> tuple[Change, ...]:
        """Who loses, and loses more than all others in its column, after correction.

        Whoever merely gained less than the others does not pay.
        """
        falls = {payer.key for payer in self.shifts if payer.gain < 0}
        return tuple(
            p for p in self.excesses if p.p <= self.alpha and p.gain < 0 and p.key in falls
        )

    @cached_property
    def gained_less(self) -> tuple[Change, ...]:
        """Who gained, or stayed as it was, and is shown to fall behind the rest all the same."""
        falls = {payer.key for payer in self.shifts if payer.gain < 0}
        stays = {payer.key for payer in self.shifts} - falls
        return tuple(
            p for p in self.excesses if p.p <= self.alpha and p.gain < 0 and p.key in stays
        )

    @cached_property
    def most(self) -> Change | None:
        """Who loses most: the largest shown loss among those shown to lose more than the rest."""
        paying = {payer.key for payer in self.pays_more}
        return min((p for p in self.loses if p.key in paying), key=lambda p: p.gain, default=None)

    def apart(self, column: ColumnChange) -> tuple[Change, ...]:
        """Whose change is shown to differ from the rest of this column, the clearest first."""
        own = [
            p
            for p in self.excesses
            if p.p <= self.alpha
            and (p.kind, p.task) == (column.kind, column.task)
            and (p.kind == "class" or p.column == column.name)
        ]
        return tuple(sorted(own, key=lambda p: (p.p, -abs(p.shift))))


def verdict(result: AuditResult, variant: str, scope: Scope, alpha: float) -> ScopeFinding:
    """What the rows of one scope say, with the limits of their families."""
    # Of group columns their tests; of classes the least corrected p of their excesses.
    columns = []
    within = {
        (str(row["group"]), text(row["task"])): real(row["p_adjusted"])
        for row in rows_of(result, variant, "heterogeneity_within_classes", "grouping", scope)
    }
    for row in rows_of(result, variant, "heterogeneity", "grouping", scope):
        name, task, p = str(row["group"]), text(row["task"]), real(row["p_adjusted"])
        differs = None if missing(p) else p <= alpha
        reason = None if differs is not None else Status.of(row["status"]).reason or UNTESTED
        same_class = within.get((name, task), float("nan"))
        columns.append(ColumnChange("group", name, task, p, differs, reason, same_class))
    tested: dict[str | None, list[float]] = {}  # p of the classes of every task
    for row in rows_of(result, variant, "recall", "class", scope):
        if row_ok(row) and not missing(row["excess_p_adjusted"]):
            tested.setdefault(text(row["task"]), []).append(real(row["excess_p_adjusted"]))
    for whose, found in tested.items():
        p = min(found)
        columns.append(ColumnChange("class", "classes", whose, p, p <= alpha, None))
    overall = _overall(result, variant, scope)
    status = Status.of(None if overall is None else overall["status"])
    return ScopeFinding(
        variant=variant,
        scope=scope,
        alpha=alpha,
        overall=None if overall is None else _change(overall, "overall", *_OVERALL),
        columns=tuple(columns),
        shifts=_changes(result, variant, scope, _SHIFT),
        excesses=_changes(result, variant, scope, _EXCESS),
        reason=None if status.ok else status.reason or UNTESTED,
    )


def _overall(result: AuditResult, variant: str, scope: Scope = "model") -> Row | None:
    """The main number of everybody: of the single task, the mean over tasks, or the first task."""
    rows = rows_of(result, variant, result.primary, "overall", scope)
    means = (row for row in rows if missing(row["task"]))
    first = (row for row in rows if result.tasks and row["task"] == result.tasks[0])
    return next(means, next(first, None))


def lead_verdict(result: AuditResult, family: ScopeFinding) -> ScopeFinding:
    """The same with limits and p that hold for all families and variants at once.

    An audit of version 0.1.0 has none of these; then those of the families stand in.
    """
    frame = result.lead
    rows = frame[(frame["variant"] == family.variant) & (frame["scope"] == family.scope)]
    if not len(rows):
        return family
    found: LeadRows = {}
    least: dict[tuple[str, str | None, str | None], float] = {}  # p of a column's excesses
    for row in records(rows):
        by, task = str(row["by"]), text(row["task"])
        name = text(row["class"] if by == "class" else row["group"])
        found[(str(row["quantity"]), by, name, task)] = row
        if row["quantity"] == "excess" and not missing(row["p_lead"]):
            key = by, text(row["column"]) if by == "group" else "classes", task
            least[key] = min(least.get(key, 1.0), real(row["p_lead"]))
    # A column has the least p of its groups' excesses, so that the two never disagree.
    columns = []
    for column in family.columns:
        p = least.get((column.kind, column.name, column.task))
        if p is not None and column.differs is not None:
            column = replace(column, p=p, differs=p <= family.alpha)
        columns.append(column)
    overall = () if family.overall is None else (family.overall,)
    return replace(
        family,
        overall=next(iter((*_with_lead(overall, "shift", found), *overall)), None),
        shifts=_with_lead(family.shifts, "shift", found),
        excesses=_with_lead(family.excesses, "excess", found),
        columns=tuple(columns),
    )


# Rows of the lead by quantity, kind, name and task.
LeadRows: TypeAlias = dict[tuple[str, str, str | None, str | None], dict[str, Any]]


def _with_lead(changes: tuple[Change, ...], quantity: str, found: LeadRows) -> tuple[Change, ...]:
    """The changes that stand in the lead, with its limits and p."""
    made = []
    for change in changes:
        name = None if change.kind == "overall" else change.name
        own = found.get((quantity, change.kind, name, change.task))
        if own is not None:
            low, high, p = (real(own[key]) for key in ("low", "high", "p_lead"))
            made.append(replace(change, low=low, high=high, p=p, column=text(own["column"])))
    return tuple(made)


_OVERALL = ("shift", "ci_low", "ci_high", "p_value")
_SHIFT = ("shift", "sim_low", "sim_high", "p_adjusted")
_EXCESS = ("excess_shift", "excess_sim_low", "excess_sim_high", "excess_p_adjusted")


def _changes(
    result: AuditResult, variant: str, scope: Scope, columns: tuple[str, str, str, str]
) -> tuple[Change, ...]:
    """Every judged row of the confirmatory families by these four columns.

    The larger shift first; intersections behind the columns that they are made of.
    """
    found: list[Change] = []
    for metric, kind in lead_families():
        found += [
            _change(row, kind, *columns)
            for row in rows_of(result, variant, metric, kind, scope)
            if row_ok(row) and not missing(row[columns[0]])
            and not missing(row["family"])  # not of missing values
        ]  # fmt: skip
    found.sort(key=lambda c: -abs(c.shift))
    found.sort(key=lambda c: c.kind == "group" and len(split_group(c.name)) > 1)
    return tuple(found)


def _change(
    row: Row,
    kind: Literal["overall", "group", "class"],
    shift: str,
    low: str,
    high: str,
    p: str,
) -> Change:
    return Change(
        kind=kind,
        name="" if kind == "overall" else str(row[kind]),
        task=text(row["task"]),
        metric=str(row["metric"]),
        n=whole(row["n"]),
        baseline=real(row["baseline"]),
        compressed=real(row["compressed"]),
        shift=real(row[shift]),
        low=real(row[low]),
        high=real(row[high]),
        p=real(row[p]),
        matched=real(row["matched"]),
        noise_floor=real(row["noise_floor"]),
        churn=real(row["churn"]),
    )


# What these data cannot show: losses that may have been missed, and groups that are too small.


@dataclass(frozen=True)
class Blind:
    """A class or group with too few examples to show a loss that would matter."""

    kind: Kind
    name: str
    task: str | None
    n: int | None
    detectable: float  # least loss found with 80 % power; NaN where no loss would be
    reference: float
    n_needed: float
    label: str | None = None


@dataclass(frozen=True)
class Small:
    """A class or group that is too small, or a number that cannot be estimated, and why."""

    kind: Kind | None
    name: str
    n: int | None
    reason: str
    label: str | None = None


@dataclass(frozen=True)
class Open:
    """A class or group where a loss beyond the margin is not ruled out."""

    kind: Kind
    name: str
    task: str | None
    n: int | None
    largest: float  # the largest loss that the data do not rule out
    label: str | None = None


@dataclass(frozen=True)
class Parts:
    """How many classes and how many groups something is about, and what they are called."""

    classes: int
    groups: int

    @classmethod
    def of(cls, parts: Iterable[Change | Open]) -> Parts:
        """The classes and groups among these."""
        kinds = [part.kind for part in parts]
        return cls(kinds.count("class"), kinds.count("group"))

    @property
    def number(self) -> int:
        return self.classes + self.groups

    @property
    def one(self) -> str:
        """One of them, in a sentence.

        >>> Parts(10, 6).one, Parts(10, 0).one, Parts(0, 6).one
        ('class or group', 'class', 'group')
        """
        if bool(self.classes) == bool(self.groups):
            return "class or group"
        return "group" if self.groups else "class"

    @property
    def many(self) -> str:
        """All of them, counted.

        >>> Parts(10, 6).many, Parts(1, 0).many
        ('16 classes and groups', '1 class')
        """
        plural = {"class or group": "classes and groups", "class": "classes", "group": "groups"}
        return f"{self.number:,} {self.one if self.number == 1 else plural[self.one]}"

    def share(self, some: int) -> str:
        """So many of them.

        >>> [Parts(5, 6).share(n) for n in (0, 4, 11)]
        ['none of 11 classes and groups', '4 of 11 classes and groups', 'all 11 classes and groups']
        """
        if some == self.number > 1:
            return f"all {self.many}"
        return f"{some:,} of {self.many}" if some else f"none of {self.many}"


@dataclass(frozen=True)
class RuledOut:
    """For how many classes and groups a loss beyond the margin is ruled out, or shown, or open."""

    margin: float
    number: int
    parts: Parts
    shown: int
    open: tuple[Open, ...]  # the largest possible loss first
    largest: float  # the largest loss that is not ruled out anywhere; NaN where it is not known

    @property
    def of(self) -> int:
        """How many classes and groups were tested."""
        return self.parts.number

    @property
    def whom(self) -> str:
        """For how many, in words."""
        return self.parts.share(self.number)


def margin_of(result: AuditResult) -> float:
    """The loss that matters, as a fraction; version 0.1.0 called it the reference shift."""
    options = result.provenance.options
    held = options.get("margin", options.get("reference_shift", 0.02))
    return float("nan") if held is None else float(held)


def ruled_out(result: AuditResult, model: ScopeFinding) -> RuledOut | None:
    """By the one-sided limits of each family; None where the audit has none.

    A loss beyond the margin is shown where the limits of the lead (`model`) lie below it.
    """
    number, margin = 0, margin_of(result)
    sizes: dict[Kind, int] = {"group": 0, "class": 0}
    beyond = {payer.key for payer in model.shifts if payer.gains[2] < -margin}
    left: list[Open] = []
    for metric, kind in lead_families():
        reach = {
            (text(row["task"]), str(row[kind])): real(row.get("largest_loss"))
            for row in power_of(result, model.variant, metric, kind)
        }
        for row in rows_of(result, model.variant, metric, kind):
            if not row_ok(row) or missing(row["family"]) or missing(row["loss_ruled_out"]):
                continue
            sizes[kind] += 1
            if row["loss_ruled_out"]:
                number += 1
                continue
            task, name = text(row["task"]), str(row[kind])
            largest = reach.get((task, name), float("nan"))
            left.append(Open(kind, name, task, whole(row["n"]), largest))
    if not any(sizes.values()):
        return None
    left.sort(key=lambda o: 0.0 if missing(o.largest) else -o.largest)
    still = tuple(o for o in left if (o.kind, o.name, o.task) not in beyond)
    largest = left[0].largest if left else float("nan")
    parts = Parts(sizes["class"], sizes["group"])
    return RuledOut(margin, number, parts, len(left) - len(still), still, largest)


def blind(result: AuditResult, variant: str) -> tuple[tuple[Blind, ...], int]:
    """Rows where a loss of the reference size could have been missed, and was not found.

    The second value is how many classes and groups were looked at.
    """
    reference = float(result.power["reference_shift"].iloc[0]) if len(result.power) else 0.0
    found: list[Blind] = []
    watched = 0
    for metric, kind in lead_families():
        # Whoever was too small to be tested is listed elsewhere.
        rows = rows_of(result, variant, metric, kind)
        small = {(text(r["task"]), str(r[kind])) for r in rows if not row_ok(r)}
        power = power_of(result, variant, metric, kind)
        tested = [r for r in power if (text(r["task"]), str(r[kind])) not in small]
        watched += len(tested)
        # Told are those with limits beside 0, and those where a loss of that size is ruled out.
        lower = registered(metric).better == "lower"
        worst, best = ("sim_high", "sim_low") if lower else ("sim_low", "sim_high")
        sign = -1 if lower else 1
        settled = {
            (text(r["task"]), str(r[kind]))
            for r in rows
            if sign * real(r[best]) < 0
            or sign * real(r[worst]) >= -abs(reference)
            or (not missing(r["loss_ruled_out"]) and r["loss_ruled_out"])
        }
        for row in tested:
            task, name = text(row["task"]), str(row[kind])
            detectable = abs(real(row["min_detectable_shift"]))
            matters = abs(real(row["reference_shift"]))
            if missing(matters):  # no loss was said to matter
                continue
            if (task, name) in settled or (not missing(detectable) and detectable <= matters):
                continue
            needed = real(row["n_needed"])
            found.append(Blind(kind, name, task, whole(row["n"]), detectable, matters, needed))
    return tuple(sorted(found, key=lambda b: b.n if b.n is not None else -1)), watched


def small(result: AuditResult, variant: str) -> tuple[Small, ...]:
    """Classes and groups of the confirmatory families that got no verdict, each once."""
    found: dict[tuple[str, str], Small] = {}
    for metric, kind in lead_families():
        for row in rows_of(result, variant, metric, kind):
            if row_ok(row):
                continue
            name, reason = str(row[kind]), Status.of(row["status"]).reason or UNTESTED
            found.setdefault((kind, name), Small(kind, name, whole(row["n"]), reason))
    return tuple(found.values())


@dataclass(frozen=True)
class Allowed:
    """The excess of a group, as observed and corrected for wrong group labels."""

    name: str
    task: str | None
    low: float
    high: float


@dataclass(frozen=True)
class MemberCount:
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
    members: MemberCount
    model: ScopeFinding  # these models, as they are; with the limits of the lead
    method: ScopeFinding | None  # beyond retraining; None for one pair
    families: tuple[ScopeFinding, ...]  # both scopes with the limits of their families, for tables
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
    unit: Unit = Unit()  # noqa: RUF009
    # Where predictions stand beside outcomes: the share that changed, right or wrong.
    predictions_changed: float = float("nan")

    @property
    def verdicts(self) -> tuple[ScopeFinding, ...]:
        """The scopes that are available: these models, and the method where there are members."""
        if self.method is None or self.method.reason is not None:
            return (self.model,)
        return (self.model, self.method)


def unit_of_audit(result: AuditResult) -> Unit:
    """In what the main number of an audit is written."""
    if result.outcome is None:
        return Unit()
    name = result.outcome.name
    if result.outcome.denominator is not None:
        name += f" per {result.outcome.denominator}"
    return Unit(name, share=result.outcome.binary)


def findings(result: AuditResult) -> tuple[Finding, ...]:
    """One finding per compressed variant, in the order given."""
    return tuple(find(result, variant) for variant in result.variants)


FEWEST_FOR_LEAD = 4  # members a side: with three the tables speak of the method, the lead does not


def find(result: AuditResult, variant: str | None = None) -> Finding:
    """The finding about one variant (the first one by default)."""
    from fairweight.auditing.compare.estimate import members_of as values_of  # with pandas
    from fairweight.tables.companions import leaks  # with pyarrow

    name = variant_of(result, variant)
    options = result.provenance.options
    alpha = float(options.get("alpha", 0.05))
    overall = _overall(result, name) or {"n_seeds_baseline": 1, "n_seeds_compressed": 1}
    sides = whole(overall["n_seeds_baseline"]) or 1, whole(overall["n_seeds_compressed"]) or 1
    members = MemberCount(*sides, result.pairing.get(name), members_of(result))

    families = [verdict(result, name, "model", alpha)]
    model, method = lead_verdict(result, families[0]), None
    if any(key[0] == name and key[3] == "method" for key in result.places):
        family = verdict(result, name, "method", alpha)
        families += [] if family.reason is not None else [family]
        method = lead_verdict(result, family)
        fewest = min(sides)
        if method.reason is None and fewest < FEWEST_FOR_LEAD:
            method = replace(method, reason=f"{fewest} members a side")
    unseen, n_watched = blind(result, name)
    # Groups whose excess is harmful, with its range if some group labels are wrong.
    frame = result.group_error
    if len(frame):
        frame = frame[(frame["variant"] == name) & (frame["corrected_low"] < 0)]
        frame = frame.sort_values("corrected_low", kind="stable")
    # Classes are shown by their names where they have any.
    names = dict(options.get("class_names") or {})
    model = _named_scope(model, names)
    method = None if method is None else _named_scope(method, names)
    certain = ruled_out(result, model)
    if certain is not None:
        certain = replace(certain, open=_named(certain.open, names))
    return Finding(
        variant=name,
        baseline=result.baseline,
        n_examples=result.n_examples,
        n_classes=len(result.classes),
        alpha=alpha,
        correction=str(options.get("correction", "holm")),
        members=members,
        model=model,
        method=method,
        families=tuple(_named_scope(family, names) for family in families),
        one_rate=bool(len(result.lead)),
        ruled_out=certain,
        blind=_named(unseen, names),
        n_watched=n_watched,
        small=_named(small(result, name), names),
        clustered=bool(result.results["n_clusters"].notna().any()),
        label_error=float(options.get("group_error") or 0.0),
        allowed=tuple(
            Allowed(str(r["group"]), text(r["task"]), r["corrected_low"], r["corrected_high"])
            for r in records(frame)
        ),
        leak=leaks(result.variants_table, (name,)).get(name),
        runs=tuple(
            values_of(result.overall_per_seed, side, result.primary)
            for side in (result.baseline, name)
        ),
        unit=unit_of_audit(result),
        predictions_changed=_predictions_changed(result, name, model),
    )


def _predictions_changed(result: AuditResult, name: str, model: ScopeFinding) -> float:
    """The share of predictions that changed beside outcomes; NaN where outcomes alone are known."""
    if result.outcome is None:
        return math.nan
    rows = rows_of(result, name, "flips", "overall", "model")
    means = [row for row in rows if missing(row["task"])] or rows[:1]
    shares = [real(row["compressed"]) for row in means]
    churn = math.nan if model.overall is None else model.overall.churn
    if not shares or (result.outcome.binary and not shares[0] > churn + 1e-12):
        return math.nan  # of outcomes that are 0 or 1 a flip may be one of the outcome
    return shares[0]


Named = TypeVar("Named", Change, Blind, Open, Small)


def _named(parts: tuple[Named, ...], names: Mapping[str, str]) -> tuple[Named, ...]:
    """The same with the names of classes."""
    if not names:
        return parts
    return tuple(
        replace(part, label=names.get(part.name)) if part.kind == "class" else part
        for part in parts
    )


def _named_scope(scope: ScopeFinding, names: Mapping[str, str]) -> ScopeFinding:
    return replace(
        scope, shifts=_named(scope.shifts, names), excesses=_named(scope.excesses, names)
    )


# Variants side by side: who loses most in each, the clearest loss first.


@dataclass(frozen=True)
class Standing:
    """One variant in the ranking, read in one scope."""

    place: int  # among the variants as they were given, from 1
    finding: Finding
    verdict: ScopeFinding

    @property
    def loses_overall(self) -> bool:
        """Whether accuracy is shown to fall."""
        change = self.verdict.overall
        return change is not None and not missing(change.high) and change.is_loss

    @property
    def overall(self) -> float:
        """The gain overall (a loss is negative); 0 where it is not known."""
        change = self.verdict.overall
        return 0.0 if change is None or missing(change.shift) else change.gain

    @property
    def order(self) -> tuple[int, float]:
        """Where it stands among others: first how clearly somebody loses, then how much."""
        verdict = self.verdict
        if verdict.most is not None:
            return 0, verdict.most.gain
        if self.loses_overall or verdict.loses:
            return 1, self.overall
        if verdict.pays_more:
            return 2, verdict.pays_more[0].gain
        return 3, self.overall


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
    return tuple(sorted(standings, key=lambda standing: standing.order))
