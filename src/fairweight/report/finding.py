"""What an audit found, per variant: who loses, who pays more than the others, what stays unknown.

Structure only; `report.sentences` puts it into words for terminal, page and notebook alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fairweight.report.numbers import missing, real, text
from fairweight.report.rows import at_task, is_ok, records, select, variant_of

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult

Kind = Literal["group", "class"]

# The confirmatory families: decided before the data are seen, in both a higher value is better.
CONFIRMATORY: tuple[tuple[str, Kind], ...] = (("accuracy", "group"), ("recall", "class"))


@dataclass(frozen=True)
class Change:
    """A metric before and after, with the pointwise interval of its shift."""

    metric: str
    task: str | None
    baseline: float
    compressed: float
    shift: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Payer:
    """A class or group whose shift (or excess over all others) is beyond chance."""

    kind: Kind
    name: str
    task: str | None
    metric: str
    n: int | None
    shift: float
    low: float
    high: float
    p: float  # corrected within the family
    n_family: int | None


@dataclass(frozen=True)
class Column:
    """Whether the groups of one column pay differently."""

    name: str
    task: str | None
    p: float
    differs: bool | None  # None: cannot be told
    reason: str | None


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
class Allowed:
    """The excess of a group, as observed and corrected for wrong group labels."""

    name: str
    task: str | None
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """Everything the summary of one variant says."""

    variant: str
    baseline: str
    n_examples: int
    n_classes: int
    alpha: float
    overall: Change | None
    columns: tuple[Column, ...]
    loses: tuple[Payer, ...]
    gains: tuple[Payer, ...]
    pays_more: tuple[Payer, ...]
    blind: tuple[Blind, ...]
    n_watched: int  # classes and groups whose power is known
    small: tuple[Small, ...]
    clustered: bool
    label_error: float = 0.0  # declared share of wrong group labels
    allowed: tuple[Allowed, ...] = ()  # excess allowing for it, the most harmed first


def findings(result: AuditResult) -> tuple[Finding, ...]:
    """One finding per compressed variant, in the order given."""
    return tuple(find(result, variant) for variant in result.variants)


def find(result: AuditResult, variant: str | None = None) -> Finding:
    """The finding about one variant (the first one by default), scope `model`."""
    name = variant_of(result, variant)
    alpha = float(result.provenance.options.get("alpha", 0.05))
    loses, gains = _losers(result, name)
    pays_more = _pays_more(result, name, alpha)
    blind, n_watched = _blind(result, name)
    return Finding(
        variant=name,
        baseline=result.baseline,
        n_examples=result.n_examples,
        n_classes=len(result.classes),
        alpha=alpha,
        overall=_overall(result, name),
        columns=_columns(result, name, alpha),
        loses=_in_order(loses, result),
        gains=_in_order(gains, result),
        pays_more=_in_order(pays_more, result),
        blind=blind,
        n_watched=n_watched,
        small=_small(result, name),
        clustered=bool(result.results["n_clusters"].notna().any()),
        label_error=float(result.provenance.options.get("group_error") or 0.0),
        allowed=_allowed(result, name),
    )


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


def _whole(value: Any) -> int | None:
    return None if missing(value) else int(value)


def _overall(result: AuditResult, variant: str) -> Change | None:
    rows = at_task(select(result, variant, "accuracy", "overall"), result, None)
    for row in records(rows):
        return Change(
            metric="accuracy",
            task=text(row["task"]),
            baseline=real(row["baseline"]),
            compressed=real(row["compressed"]),
            shift=real(row["shift"]),
            low=real(row["ci_low"]),
            high=real(row["ci_high"]),
            p=real(row["p_value"]),
        )
    return None


def _columns(result: AuditResult, variant: str, alpha: float) -> tuple[Column, ...]:
    found = []
    for row in records(select(result, variant, "heterogeneity", "grouping")):
        p = real(row["p_adjusted"])
        status = text(row["status"]) or "ok"
        known = not missing(p)
        found.append(
            Column(
                name=str(row["group"]),
                task=text(row["task"]),
                p=p,
                differs=bool(p <= alpha) if known else None,
                reason=None if known else _reason(status),
            )
        )
    return tuple(found)


def _reason(status: str) -> str:
    """The reason behind a status.

    >>> _reason("not_estimable: one level"), _reason("small_group: n < 10"), _reason("ok")
    ('one level', 'n < 10', 'no test was made')
    """
    return status.partition(": ")[2] or "no test was made"


def _payer(row: dict[str, Any], kind: Kind, shift: str, low: str, high: str, p: str) -> Payer:
    return Payer(
        kind=kind,
        name=str(row[kind]),
        task=text(row["task"]),
        metric=str(row["metric"]),
        n=_whole(row["n"]),
        shift=real(row[shift]),
        low=real(row[low]),
        high=real(row[high]),
        p=real(row[p]),
        n_family=_whole(row["n_family"]),
    )


def _in_order(payers: list[Payer], result: AuditResult) -> tuple[Payer, ...]:
    """The larger shift first; intersections behind the columns that they are made of."""
    crossed = [
        (f"{columns[0]}=", [f" & {column}=" for column in columns[1:]])
        for columns in (grouping.split("*") for grouping in result.groupings)
        if len(columns) > 1
    ]

    def place(payer: Payer) -> tuple[bool, float]:
        inside = payer.kind == "group" and any(
            payer.name.startswith(first) and all(part in payer.name for part in rest)
            for first, rest in crossed
        )
        return inside, -abs(payer.shift)

    return tuple(sorted(payers, key=place))


def _losers(result: AuditResult, variant: str) -> tuple[list[Payer], list[Payer]]:
    """Who loses and who gains: the simultaneous interval lies on one side of 0."""
    loses: list[Payer] = []
    gains: list[Payer] = []
    for metric, kind in CONFIRMATORY:
        rows = select(result, variant, metric, kind)
        rows = rows[is_ok(rows) & rows["family"].notna()]  # not the level of missing values
        for side, keep in ((loses, rows["sim_high"] < 0), (gains, rows["sim_low"] > 0)):
            side += [
                _payer(row, kind, "shift", "sim_low", "sim_high", "p_adjusted")
                for row in records(rows[keep])
            ]
    return loses, gains


def _pays_more(result: AuditResult, variant: str, alpha: float) -> list[Payer]:
    """Whose shift is below that of all others in its column (Holm within the family)."""
    import numpy as np

    from fairweight.auditing.intervals.correction import holm

    found: list[Payer] = []
    for metric, kind in CONFIRMATORY:
        rows = select(result, variant, metric, kind)
        rows = rows[is_ok(rows) & rows["excess_p"].notna() & rows["family"].notna()]
        for _, family in rows.groupby(["task", "family"], dropna=False, sort=False):
            corrected = np.asarray(holm(family["excess_p"].to_numpy(dtype=float)))
            family = family.assign(excess_holm=corrected)
            harmed = family[(corrected <= alpha) & (family["excess_shift"] < 0)]
            found += [
                _payer(row, kind, "excess_shift", "excess_low", "excess_high", "excess_holm")
                for row in records(harmed)
            ]
    return found


def _blind(result: AuditResult, variant: str) -> tuple[tuple[Blind, ...], int]:
    """Rows where a loss of the reference size could have been missed, and was not found."""
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
                    n=_whole(row["n"]),
                    detectable=detectable,
                    reference=reference,
                    n_needed=real(row["n_needed"]),
                )
            )
    return tuple(sorted(found, key=lambda b: b.n if b.n is not None else -1)), watched


def _settled(rows: pd.DataFrame, kind: Kind, reference: float) -> set[tuple[str | None, str]]:
    """Rows that are told: limits beside 0, or above a loss of the reference size."""
    found = rows[(rows["sim_high"] < 0) | (rows["sim_low"] >= -abs(reference))]
    return {(text(task), str(name)) for task, name in zip(found["task"], found[kind], strict=True)}


def _small(result: AuditResult, variant: str) -> tuple[Small, ...]:
    """Classes and groups of the confirmatory families that got no verdict, each once."""
    found: dict[tuple[str, str], Small] = {}
    for metric, kind in CONFIRMATORY:
        rows = select(result, variant, metric, kind)
        for row in records(rows[~is_ok(rows)]):
            name = str(row[kind])
            found.setdefault(
                (kind, name), Small(kind, name, _whole(row["n"]), _reason(str(row["status"])))
            )
    return tuple(found.values())
