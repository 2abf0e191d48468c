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
from fairweight.report.sentences import by_how_much, named
from fairweight.report.verdict import Payer

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
    first = standings[0]
    if first.verdict.pays_more:
        said = _pays(first, n_variants)
    elif first.loses_overall or first.verdict.loses:
        said = _uniform(first)
    else:
        said = _nobody(standings, n_variants)
    if n_variants > 1:
        return f"{said}{_variants(standings, n_variants)}."
    return f"{said}{_ruled_out(first)}."


def _pays(standing: Standing, n_variants: int) -> str:
    """Who loses most, or does worse than the rest where no loss of its own is shown."""
    verdict, where = standing.verdict, f" in {_variant(standing)}"
    payer, change = verdict.most, verdict.overall
    if payer is not None:
        size = points_interval(payer.shift, payer.low, payer.high)
        said = f"{_begun(payer)} loses most: {size}{where}"
        if change is not None and not missing(change.shift):
            said += f", against {points(change.shift).removesuffix(' points')} overall"
    else:
        payer = verdict.pays_more[0]
        said = f"{_begun(payer)} does worse than the rest, by {by_how_much(payer)}{where}"
        said += "; a loss of its own is not shown"
    more = len(verdict.pays_more) - 1
    if more > 0 and n_variants == 1:
        others = "other class or group does" if more == 1 else "other classes and groups do"
        said += f"; {count(more)} {others} worse than the rest"
    return said


def _begun(payer: Payer) -> str:
    """A name at the beginning of a sentence."""
    name = named(payer, _NAME)
    return f"C{name[1:]}" if payer.kind == "class" else name


def _uniform(standing: Standing) -> str:
    """A loss without anybody who is shown to lose more than the rest."""
    change, where = standing.verdict.overall, f" in {_variant(standing)}"
    if change is not None and standing.loses_overall:
        found = points_interval(change.shift, change.low, change.high)
        return f"Overall {found}{where}; no class or group is shown to lose more than the rest"
    losing = standing.verdict.loses
    if len(losing) > 1:
        said = f"{count(len(losing))} classes and groups lose{where}"
    else:
        found = points_interval(losing[0].shift, losing[0].low, losing[0].high)
        said = f"{_begun(losing[0])} loses{where}: {found}"
    return f"{said}; nobody is shown to lose more than the rest"


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
    left = found.of - found.number
    if not left or missing(found.largest):
        return said
    others = "which" if left == found.of else "the other one" if left == 1 else "the others"
    return f"{said}, {others} may lose up to {size_in_points(found.largest)}"


def _variants(standings: Sequence[Standing], n_variants: int) -> str:
    """In how many variants somebody loses, loses more than the rest, or a loss is ruled out."""
    losing = sum(1 for s in standings if s.loses_overall or s.verdict.loses)
    paying = sum(1 for s in standings if s.verdict.pays_more)
    said = ""
    if losing:
        said = f"; a loss is shown in {count(losing)} of {count(n_variants)} variants"
        said += f", and in {count(paying)} somebody does worse than the rest" if paying else ""
    elif paying:
        said = f"; in {count(paying)} of {count(n_variants)} variants somebody does"
    certain = [s.finding.ruled_out for s in standings if s.verdict.scope == "model"]
    every = [found for found in certain if found is not None and found.number == found.of]
    if every:
        said += (
            f"; in {count(len(every))} a loss beyond {100 * every[0].margin:g} points is ruled out "
            "for every class and group"
        )
    return said


def _variant(standing: Standing) -> str:
    return shown(standing.finding.variant, _NAME)


def _lowered(sentence: str) -> str:
    """A sentence behind a colon; names stay as they are.

    >>> _lowered("Class 8 loses most."), _lowered("Sex=f loses most.")
    ('class 8 loses most.', 'Sex=f loses most.')
    """
    ours = sentence.startswith(("Class ", "No loss ", "Overall "))
    return sentence[0].lower() + sentence[1:] if ours else sentence
