"""The finding in one sentence, over all variants.

A loss is spoken of where simultaneous limits exclude 0, as everywhere; where nobody is shown to
lose, what could have gone unseen stands in the same sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairweight.report.finding import Finding
from fairweight.report.members import worded
from fairweight.report.numbers import count, missing, points, points_interval, shown
from fairweight.report.ranking import Standing, ranked
from fairweight.report.sentences import named

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

PER_VARIANT = (
    "Limits hold for all classes or all groups of one variant at once; they are not corrected for "
    "the number of variants."
)
_NAME = 60


def headline(found: Sequence[Finding]) -> str:
    """What happened to whom, in these models."""
    return _said(ranked(found), len(found))


def beyond_retraining(found: Sequence[Finding]) -> str | None:
    """The same of the method; None where no variant has enough members to tell."""
    standings = ranked(found, "method")
    if not standings:
        return None
    said = _said(standings, len(standings))
    begin = worded("Beyond retraining (the method)", found[0].members.kind)
    return f"{begin}: {_lowered(said)}"


def facts(result: AuditResult, found: Sequence[Finding]) -> str:
    """On what the finding rests."""
    parts = [f"{count(result.n_examples)} examples", f"{count(len(result.classes))} classes"]
    if result.tasks:
        parts.append(f"{count(len(result.tasks))} tasks")
    columns = [shown(name, 40) for name in result.groupings]
    parts.append("groups: " + ", ".join(columns) if columns else "no group column")
    number = len(found)
    against = f"against {shown(result.baseline, _NAME)}"
    parts.append(f"{count(number)} variant{'' if number == 1 else 's'} {against}")
    sizes = {(f.members.baseline, f.members.compressed) for f in found if f.members.population}
    if len(sizes) == 1:
        dense, compressed = sizes.pop()
        parts.append(f"{count(compressed)} members of each, {count(dense)} of the baseline")
    elif sizes:
        parts.append("populations of several members")
    return "; ".join(parts) + "."


def _said(standings: Sequence[Standing], n_variants: int) -> str:
    losing = [s for s in standings if s.verdict.loses]
    if not losing:
        return _nobody(standings, n_variants)
    first = losing[0]
    payer = first.verdict.loses[0]
    change = first.verdict.overall
    everyone = "" if change is None or missing(change.shift) else _overall(change.shift)
    who = named(payer, _NAME)
    who = who.replace("class ", "Class ", 1) if payer.kind == "class" else who
    return (
        f"{who} loses most: {points_interval(payer.shift, payer.low, payer.high)} in "
        f"{_variant(first)}{everyone}; {_how_many(standings, losing, n_variants)}."
    )


def _overall(shift: float) -> str:
    return f", against {points(shift).removesuffix(' points')} overall"


def _how_many(standings: Sequence[Standing], losing: Sequence[Standing], n_variants: int) -> str:
    if n_variants == 1:
        verdict = losing[0].verdict
        n, more = len(verdict.loses), len(verdict.pays_more)
        pays = f", and {count(more)} pay{'s' if more == 1 else ''} more than the others"
        lose = "loses" if n == 1 else "lose"
        said = f"{count(n)} of {count(len(verdict.shifts))} classes and groups {lose}"
        return said + (pays if more else "")
    more = sum(1 for s in standings if s.verdict.pays_more)
    said = f"some class or group loses in {count(len(losing))} of {count(n_variants)} variants"
    return said + (f", and in {count(more)} someone pays more than the others" if more else "")


def _nobody(standings: Sequence[Standing], n_variants: int) -> str:
    where = _variant(standings[0]) if n_variants == 1 else f"any of {count(n_variants)} variants"
    said = f"No class or group is shown to lose in {where}"
    paying = [s for s in standings if s.verdict.pays_more]
    if paying:
        payer = paying[0].verdict.pays_more[0]
        which = "" if n_variants == 1 else f" in {_variant(paying[0])}"
        said += (
            f"; yet {named(payer, _NAME)} pays more than the others{which}: "
            f"{points_interval(payer.shift, payer.low, payer.high)}"
        )
    unseen = [s.finding for s in standings if s.finding.blind]
    if unseen:
        most = max(unseen, key=lambda finding: len(finding.blind))
        up_to = "" if n_variants == 1 else "up to "
        said += (
            f"; a loss of {100 * most.blind[0].reference:g} points could have gone unseen in "
            f"{up_to}{count(len(most.blind))} of {count(most.n_watched)} classes and groups"
        )
    return said + "."


def _variant(standing: Standing) -> str:
    return shown(standing.finding.variant, _NAME)


def _lowered(sentence: str) -> str:
    """A sentence behind a colon; names stay as they are.

    >>> _lowered("Class 8 loses most."), _lowered("Sex=f loses most.")
    ('class 8 loses most.', 'Sex=f loses most.')
    """
    ours = sentence.startswith(("Class ", "No class "))
    return sentence[0].lower() + sentence[1:] if ours else sentence
