"""How precise a study's estimates will be, predicted from a pilot before the study starts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan, log, nan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from fairweight.specs.claims import Claims, PaperLevel, Part, Where
from fairweight.studies.claims import at_level
from fairweight.studies.estimates import (
    PER_SEED,
    RESULTS,
    Matched,
    NotReachedError,
    NotThereError,
    Stored,
    chosen,
    lines,
    losses,
    stored_estimate,
    table_of,
)
from fairweight.studies.stages import BASELINE

SHARED = 0.5  # assumed share of changes that members have in common, where one member is known
SHARP_ENOUGH = 0.5  # of the smallest effect that matters


def expected_half_width(
    members: int, *, n: float = nan, churn: float = nan, spread: float = nan
) -> float:
    """The half-width of a 95 % interval for `members` on a side, from a pilot's figures.

    Over examples: a pilot's member differs from its dense model on a share `churn` of `n` examples,
    and of these changes members share about half, so the variance of the mean change is
    churn / n × (½ + ½ / members). Over members: `spread` is the standard deviation of the quantity
    over dense members. What is not given (NaN) is left out.

    >>> round(expected_half_width(5, n=4000, churn=0.05), 5)  # 1.96 √(.05 / 4000 × .6)
    0.00537
    >>> round(expected_half_width(5, spread=0.004), 5)  # 2.776 × .004 / √5
    0.00497
    """
    over_examples = (
        0.0 if isnan(churn) else 1.959964**2 * churn / n * (SHARED + (1 - SHARED) / members)
    )
    over_members = (
        0.0 if isnan(spread) else float(stdtrit(members - 1, 0.975)) ** 2 * spread**2 / members
    )
    found = sqrt(over_examples + over_members)
    return found if found > 0 else nan


@dataclass(frozen=True)
class PilotWidth:
    """The width that a pilot predicts for a line's interval, and the largest that still decides it.

    Of ratios and odds both are differences of logarithms.
    """

    claim: str
    line: str
    half_width: float
    needed: float
    reason: str = ""

    @property
    def sharp(self) -> bool:
        return self.half_width < self.needed


def piloted(claims: Claims, results: Path) -> list[PilotWidth]:
    """The half-width to expect for every claim that the data allow, from a pilot's results.

    A pilot has one member of each variant or more. Its levels need not be the paper's: the variant
    of the family whose loss is nearest stands for each.
    """
    stored = Stored(results)
    made = []
    for claim in claims.claim:
        for part in (claim, *claim.also):
            if part.unjudged is not None:
                continue
            least = -part.smallest if part.direction.endswith("down") else part.smallest
            needed = SHARP_ENOUGH * abs(_scaled(part, part.null + least))
            try:
                for line in list(lines(part, stored)) or [{}]:
                    width = _pilot_width(part, line, claims.members, stored)
                    name = ", ".join(str(value) for value in line.values())
                    made.append(PilotWidth(claim.id, name, width, needed))
            except (NotThereError, NotReachedError) as error:
                made.append(PilotWidth(claim.id, "", nan, needed, str(error)))
    return made


def _pilot_width(part: Part, line: dict[str, Any], members: int, stored: Stored) -> float:
    """From the spread of a pilot's members where it has several, and its interval over examples.

    A difference over members has their spread alone; of a single pilot member the intervals over
    examples of both sides stand in for it, as if they were independent.
    """
    where: dict[str, Any] = {**part.where, **line}
    folder = str(part.folder)
    if part.level is not None:
        where = at_level(where, _nearest(part.level, folder, where, stored))
    sides = [(folder, where)]
    if part.against is not None:
        other = dict(where)
        for old, new in part.against.replace.items():
            other = {
                key: value.replace(old, new) if isinstance(value, str) else value
                for key, value in other.items()
            }
        place = part.against.folder or folder
        if part.against.level is not None:
            other = at_level(other, _nearest(part.against.level, place, where, stored))
        sides.append((place, {**other, **part.against.where}))
    over_members = expected_half_width(members, spread=_pilot_spread(part, sides, stored))
    if part.against is not None and not isnan(over_members):
        return over_members
    squares = 0.0 if isnan(over_members) else over_members**2
    for place, rows in sides:
        squares += _pilot_row(part, place, rows, stored) ** 2 * (SHARED + (1 - SHARED) / members)
    return sqrt(squares)


def _scaled(part: Part, value: float) -> float:
    """On the scale on which intervals are symmetric: of ratios that of logarithms."""
    return log(value) if part.null == 1 and value > 0 else value - part.null


def _pilot_spread(part: Part, sides: list[tuple[str, dict[str, Any]]], stored: Stored) -> float:
    """The standard deviation of the quantity over a pilot's members; NaN where it has one.

    Of a shift it is that of a member's difference from its own dense model.
    """
    asked = list(sides)
    if part.against is None:
        if table_of(part) != RESULTS:
            return nan
        folder, where = sides[0]
        if part.value == "baseline":
            asked = [(folder, {**where, "variant": BASELINE})]
        elif part.value in (None, "shift", "excess_shift"):
            asked = [(folder, where), (folder, {**where, "variant": BASELINE})]
    try:
        name = part.table if part.against is not None and part.table else PER_SEED
        column = part.value if part.against is not None and part.value else "value"
        found = []
        for folder, where in asked:
            free = () if part.mean_over is None else (part.mean_over,)
            rows = chosen(stored.table(folder, name), where, free=free)
            found.append(rows.groupby(rows[part.pair_by].astype(str))[column].mean())
    except NotThereError:
        return nan
    values = [np.log(one) if part.ratio else one for one in found]
    differences = values[0] if len(values) == 1 else (values[0] - values[1]).dropna()
    return float(differences.std(ddof=1)) if len(differences) > 1 else nan


def _nearest(level: PaperLevel, folder: str, where: Where, stored: Stored) -> Matched:
    """The variant of a family whose loss is nearest to a level, however far it is."""
    task = where.get("task")
    found = losses(level, folder, task if isinstance(task, str) else None, stored)
    if not found:
        raise NotThereError(f"these results have no variant {level.family}")
    paper = level.loss[0] if level.between is None else level.between[1]
    name = min(found, key=lambda one: abs(found[one] - paper))
    return Matched(name, found[name])


def _pilot_row(part: Part, folder: str, where: Where, stored: Stored) -> float:
    """Half of the pilot's interval over examples, of dense members theirs."""
    table = RESULTS if part.against is not None else table_of(part)
    rows = dict(where)
    value = part.value
    if part.against is not None:
        dense = rows.get("variant") == BASELINE
        value = "baseline" if dense else "compressed"
        if dense:
            del rows["variant"]
    one = replace(
        part, folder=folder, table=table, value=value, against=None, mean_over=None, ratio=False,
        null=0.0, corrected=False, needs="all", says=None,
    )  # fmt: skip
    found = stored_estimate(one, rows, stored)
    if isnan(found.low) or isnan(found.high):
        raise NotThereError(found.reason or "no interval")
    if part.ratio or part.null == 1:
        scale = replace(part, null=1.0) if part.ratio else part
        return (_scaled(scale, found.high) - _scaled(scale, found.low)) / 2
    return (found.high - found.low) / 2
