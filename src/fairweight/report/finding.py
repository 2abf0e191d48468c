"""What an audit found, per variant: what each scope says, and what stays unknown.

Structure only; `report.sentences` puts it into words for terminal, page and notebook alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairweight.report.members import RETRAINED, members_of
from fairweight.report.numbers import text, whole
from fairweight.report.rows import at_task, of_scope, records, select, variant_of
from fairweight.report.unseen import Blind, RuledOut, Small, blind, ruled_out, small
from fairweight.report.verdict import Verdict, lead_verdict, verdict
from fairweight.tables.leaks import leaks

if TYPE_CHECKING:
    from fairweight.auditing.compare.per_seed import Members as RunValues
    from fairweight.auditing.result import AuditResult


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
    from fairweight.auditing.compare.per_seed import members_of as values_of

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
