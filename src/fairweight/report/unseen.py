"""What an audit cannot tell: losses that could have gone unseen, and who is too small."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairweight.report.numbers import missing, real, text, whole
from fairweight.report.rows import is_ok, records, select
from fairweight.report.verdict import CONFIRMATORY, Kind, Verdict, reason_of

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.result import AuditResult


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
                (kind, name), Small(kind, name, whole(row["n"]), reason_of(str(row["status"])))
            )
    return tuple(found.values())
