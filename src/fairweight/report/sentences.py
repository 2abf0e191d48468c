"""A finding in words: the same sentences for the terminal, the page and the notebook.

They speak of association, never of cause; of a loss only where simultaneous limits exclude 0; and
of what the data cannot tell as plainly as of what they can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from fairweight.report.finding import Blind, Column, Finding, Payer, Small
from fairweight.report.numbers import (
    count,
    missing,
    p_value,
    percent,
    points,
    points_interval,
    shown,
)

Topic = Literal[
    "pair", "accuracy", "groups", "loses", "pays more", "labels", "gains", "cannot tell", "scope"
]
TOPICS: tuple[Topic, ...] = get_args(Topic)

ONE_PAIR = (
    "This speaks about these models, not about the method that made them: retraining alone moves "
    "classes too (in the trials behind these rules, 93 % of pairs of retrained dense models also "
    "differed significantly in some class), so one pair is no evidence about a method."
)
INDEPENDENT = (
    "Examples assumed independent: if several come from one person, writer or scene, name that "
    "column as the cluster."
)


@dataclass(frozen=True)
class Sentence:
    """One statement and what it is about."""

    topic: Topic
    text: str


def sentences(finding: Finding, *, limit: int = 5) -> tuple[Sentence, ...]:
    """The ten-second summary; lists longer than `limit` say how many they leave out."""
    said = [Sentence("pair", pair(finding)), Sentence("accuracy", accuracy(finding))]
    said += [Sentence("groups", line) for line in columns(finding)]
    said += [Sentence("loses", line) for line in loses(finding, limit)]
    said += [Sentence("pays more", line) for line in pays_more(finding, limit)]
    said += [Sentence("labels", line) for line in wrong_labels(finding)]
    if finding.gains:
        said.append(Sentence("gains", gains(finding, limit)))
    said += [Sentence("cannot tell", line) for line in cannot_tell(finding, limit)]
    said += [Sentence("scope", line) for line in scope(finding)]
    return tuple(said)


def confidence(finding: Finding) -> str:
    """The level of the intervals.

    >>> f"{100 * (1 - 0.05):g} %"
    '95 %'
    """
    return f"{100 * (1 - finding.alpha):g} %"


def pair(finding: Finding) -> str:
    """What was compared with what, on how many examples."""
    return (
        f"{shown(finding.variant)} against {shown(finding.baseline)} on "
        f"{count(finding.n_examples)} examples, {count(finding.n_classes)} classes."
    )


def accuracy(finding: Finding) -> str:
    """Accuracy before and after with the shift and its interval."""
    change = finding.overall
    if change is None or missing(change.shift):
        return "Accuracy cannot be estimated."
    digits = 1 if round(change.baseline, 3) != round(change.compressed, 3) else 2
    return (
        f"Accuracy {percent(change.baseline, digits)} → {percent(change.compressed, digits)}: "
        f"{points_interval(change.shift, change.low, change.high)}."
    )


def columns(finding: Finding) -> list[str]:
    """Whether groups pay differently, one line per group column."""
    return [_column(column) for column in finding.columns] or ["No group column was given."]


def _column(column: Column) -> str:
    name = shown(column.name) + (f" ({shown(column.task)})" if column.task is not None else "")
    if column.differs is None:
        return f"Whether groups of {name} pay differently cannot be told ({column.reason})."
    if column.differs:
        return f"Groups of {name} pay differently ({p_value(column.p)})."
    return f"No evidence that groups of {name} pay differently ({p_value(column.p)})."


def named(item: Payer | Blind, limit: int = 80) -> str:
    """The name of a class or group in a sentence.

    >>> from fairweight.report.finding import Blind
    >>> named(Blind("class", "7", "digit", 40, 0.1, 0.02, 900.0))
    'class 7 (digit)'
    """
    name = shown(item.name, limit)
    body = f"class {name}" if item.kind == "class" else name
    return body + (f" ({shown(item.task)})" if item.task is not None else "")


def described(payer: Payer) -> str:
    """The shift, its interval and the number of examples."""
    return f"{points_interval(payer.shift, payer.low, payer.high)}, n = {count(payer.n)}"


def _and_more(total: int, limit: int) -> list[str]:
    return [f"… and {count(total - limit)} more."] if total > limit else []


def loses(finding: Finding, limit: int = 5) -> list[str]:
    """Who loses: simultaneous limits below 0, accuracy of groups and recall of classes."""
    if not finding.loses:
        return [
            "No class or group whose simultaneous "
            f"{confidence(finding)} limits exclude 0 on the harmful side."
        ]
    lines = [f"{named(payer)}: {described(payer)}." for payer in finding.loses[:limit]]
    return lines + _and_more(len(finding.loses), limit)


def pays_more(finding: Finding, limit: int = 5) -> list[str]:
    """Who pays more than all others in the same column: the excess over their shift."""
    if not finding.pays_more:
        return ["No evidence that any one class or group pays more than the others."]
    lines = [
        f"{named(payer)}: {described(payer)}, against the others; {p_value(payer.p)} corrected."
        for payer in finding.pays_more[:limit]
    ]
    return lines + _and_more(len(finding.pays_more), limit)


def wrong_labels(finding: Finding, limit: int = 3) -> list[str]:
    """What a declared share of wrong group labels may hide of an excess."""
    if not finding.label_error:
        return []
    if not finding.allowed:
        return ["No group has a harmful excess that wrong group labels could hide a part of."]
    some = "; ".join(
        f"{shown(a.name)} {points(a.low)} to {points(a.high)}" for a in finding.allowed[:limit]
    )
    wrong = percent(finding.label_error, 0)
    return [f"If {wrong} of the group labels are wrong, the excess is: {some}."]


def gains(finding: Finding, limit: int = 5) -> str:
    """Who gains, in one line."""
    some = "; ".join(f"{named(p)} {described(p)}" for p in finding.gains[:limit])
    more = len(finding.gains) - limit
    return some + (f"; … and {count(more)} more." if more > 0 else ".")


def cannot_tell(finding: Finding, limit: int = 5) -> list[str]:
    """Where a loss could have gone unseen, how many examples it would take, who is too small."""
    lines = []
    if finding.blind:
        reference = 100 * finding.blind[0].reference
        some = "; ".join(_blind(b) for b in finding.blind[:limit])
        more = len(finding.blind) - limit
        lines.append(
            f"A loss of {reference:g} points could have gone unseen in {count(len(finding.blind))} "
            f"of {count(finding.n_watched)} classes and groups: {some}"
            + (f"; … and {count(more)} more." if more > 0 else ".")
        )
    if finding.small:
        some = "; ".join(_small(small) for small in finding.small[:limit])
        more = len(finding.small) - limit
        lines.append(
            f"Without a verdict: {some}" + (f"; … and {count(more)} more." if more > 0 else ".")
        )
    return lines


def _blind(blind: Blind) -> str:
    known = math.isfinite(blind.n_needed)
    needed = f", about {count(round(blind.n_needed))} needed" if known else ""
    return f"{named(blind)} (n = {count(blind.n)}{needed})"


def _small(small: Small) -> str:
    """A class or group without a verdict and why.

    >>> from fairweight.report.finding import Small
    >>> _small(Small("group", "sex=x", 3, "n < 10")), _small(Small("class", "7", 0, "no examples"))
    ('sex=x (n = 3 < 10)', 'class 7 (no examples)')
    """
    name = ("class " if small.kind == "class" else "") + shown(small.name, 80)
    too_few = small.n is not None and small.reason.startswith("n < ")
    why = f"n = {count(small.n)} {small.reason[2:]}" if too_few else shown(small.reason)
    return f"{name} ({why})"


def scope(finding: Finding) -> list[str]:
    """What the numbers do not show."""
    return [ONE_PAIR] if finding.clustered else [ONE_PAIR, INDEPENDENT]


def reading(finding: Finding) -> str:
    """How to read the intervals of the two lists."""
    return (
        f"Limits under “loses” hold for the whole family of classes or groups at once "
        f"({confidence(finding)}); those under “pays more” are {confidence(finding)} intervals of "
        "one row, its p-value corrected by Holm's method. Shifts are compressed minus baseline: "
        "associations in these data, not causes."
    )
