"""The finding in one sentence, over all variants.

Somebody "loses most" only where they are shown to lose more than the rest: under a uniform drop a
random group has the largest fall. Good news is said too: which loss is ruled out, and for how many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairweight.report.finding import Finding
from fairweight.report.members import worded
from fairweight.report.numbers import (
    count,
    missing,
    points,
    points_interval,
    shown,
    size_in_points,
)
from fairweight.report.ranking import Standing, ranked
from fairweight.report.sentences import named

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

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
    paying = [s for s in standings if s.verdict.most is not None]
    if paying:
        said = _pays(paying[0], n_variants)
    else:
        losing = [s for s in standings if _loses_overall(s) or s.verdict.loses]
        said = _uniform(losing[0], n_variants) if losing else _nobody(standings, n_variants)
    if n_variants > 1:
        return f"{said}{_variants(standings, n_variants)}."
    return f"{said}{_ruled_out(standings[0])}."


def _pays(standing: Standing, n_variants: int) -> str:
    payer, change = standing.verdict.most, standing.verdict.overall
    assert payer is not None
    who = named(payer, _NAME)
    who = who.replace("class ", "Class ", 1) if payer.kind == "class" else who
    everyone = "" if change is None or missing(change.shift) else _overall(change.shift)
    more = len(standing.verdict.pays_more) - 1
    also = f"; {count(more)} more {_lose(more)} more than the rest" if more > 0 else ""
    return (
        f"{who} loses most: {points_interval(payer.shift, payer.low, payer.high)} in "
        f"{_variant(standing)}{everyone}{also if n_variants == 1 else ''}"
    )


def _lose(number: int) -> str:
    return "loses" if number == 1 else "lose"


def _overall(shift: float) -> str:
    return f", against {points(shift).removesuffix(' points')} overall"


def _loses_overall(standing: Standing) -> bool:
    change = standing.verdict.overall
    return change is not None and not missing(change.high) and change.high < 0


def _uniform(standing: Standing, n_variants: int) -> str:
    """A loss without anybody who is shown to lose more than the rest."""
    change, where = standing.verdict.overall, f" in {_variant(standing)}"
    if change is not None and _loses_overall(standing):
        found = points_interval(change.shift, change.low, change.high)
        return f"Overall {found}{where}; no class or group is shown to lose more than the rest"
    number = len(standing.verdict.loses)
    first = min(standing.verdict.loses, key=lambda payer: payer.shift)
    found = points_interval(first.shift, first.low, first.high)
    who = named(first, _NAME) if number == 1 else f"{count(number)} classes and groups"
    detail = f" {found}" if number == 1 else ""
    said = f"{who} {_lose(number)}{detail}{where}, but nobody is shown to lose more than the rest"
    return said.replace("class ", "Class ", 1) if said.startswith("class ") else said


def _nobody(standings: Sequence[Standing], n_variants: int) -> str:
    if n_variants > 1:
        return f"No loss is shown in any of {count(n_variants)} variants"
    change = standings[0].verdict.overall
    if change is None or missing(change.shift):
        return f"No loss is shown in {_variant(standings[0])}"
    found = points_interval(change.shift, change.low, change.high)
    return f"No loss is shown in {_variant(standings[0])}: overall {found}"


def _ruled_out(standing: Standing) -> str:
    found = standing.finding.ruled_out
    if found is None or standing.verdict.scope == "method":
        return ""
    said = f"; a loss beyond {100 * found.margin:g} points is ruled out for {found.whom}"
    if not found.open or missing(found.open[0].largest):
        return said
    others = "the other one" if len(found.open) == 1 else "the others"
    others = "which" if not found.number else others
    return f"{said}, {others} may lose up to {size_in_points(found.open[0].largest)}"


def _variants(standings: Sequence[Standing], n_variants: int) -> str:
    """In how many variants somebody loses, and loses more than the rest."""
    losing = sum(1 for s in standings if _loses_overall(s) or s.verdict.loses)
    paying = sum(1 for s in standings if s.verdict.pays_more)
    if not losing:
        return ""
    said = f"; a loss is shown in {count(losing)} of {count(n_variants)} variants"
    if not paying:
        return said
    return f"{said}, and in {count(paying)} somebody loses more than the rest"


def _variant(standing: Standing) -> str:
    return shown(standing.finding.variant, _NAME)


def _lowered(sentence: str) -> str:
    """A sentence behind a colon; names stay as they are.

    >>> _lowered("Class 8 loses most."), _lowered("Sex=f loses most.")
    ('class 8 loses most.', 'Sex=f loses most.')
    """
    ours = sentence.startswith(("Class ", "No loss ", "Overall "))
    return sentence[0].lower() + sentence[1:] if ours else sentence
