"""Claims of papers, judged: whether a run is in the paper's regime, and what its intervals say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from pathlib import Path
from typing import Any

import pandas as pd

from fairweight.auditing import schema
from fairweight.base.wording import real
from fairweight.specs.claims import Claim, Claims, Direction, Part, Regime, Where
from fairweight.studies.authors import authors_numbers
from fairweight.studies.estimates import (
    LEVEL,
    NO_ROW,
    RESULTS,
    ClaimedValue,
    Matched,
    NotReachedError,
    NotThereError,
    Stored,
    chosen,
    dense_estimate,
    in_scope,
    lines,
    matched,
    paired_estimate,
    stored_estimate,
    table_of,
)
from fairweight.studies.stages import BASELINE

# From an interval to a verdict.

REPRODUCES = "reproduces"
WEAKER = "weaker than claimed"
DOES_NOT = "does not reproduce"
CANNOT_TELL = "cannot tell"
NOT_REACHED = "regime not reached"
VERDICTS = (REPRODUCES, WEAKER, DOES_NOT, CANNOT_TELL, NOT_REACHED)


def verdict(
    direction: Direction, low: float, high: float, smallest: float, says: float | None = None
) -> str:
    """The verdict on a difference from no effect.

    A claim of a change reproduces where the interval excludes 0 in its direction and contains or
    exceeds the number that the paper states (else the smallest effect that matters); below that it
    is weaker than claimed. It does not reproduce where the interval excludes the smallest effect.
    A claim of no change reproduces where the interval lies inside ± the smallest effect, and does
    not where it lies outside.

    >>> verdict("up", 0.01, 0.09, 0.05), verdict("up", 0.01, 0.04, 0.05)
    ('reproduces', 'weaker than claimed')
    >>> verdict("down", -0.59, -0.53, 0.4, says=-0.75)  # "to less than 25 %": .44 [.41, .47]
    'weaker than claimed'
    >>> verdict("up", -0.02, 0.04, 0.05), verdict("down", -0.02, 0.04, 0.01)
    ('does not reproduce', 'cannot tell')
    >>> verdict("none", -0.02, 0.04, 0.05), verdict("none", 0.01, 0.04, 0.03)
    ('reproduces', 'cannot tell')
    >>> verdict("none", 0.04, 0.06, 0.03)
    'does not reproduce'
    """
    if isnan(low) or isnan(high):
        return CANNOT_TELL
    if direction in ("down", "not-down"):
        low, high = -high, -low
        says = None if says is None else -says
    if direction in ("up", "down"):
        if low > 0:
            return REPRODUCES if high >= (smallest if says is None else says) else WEAKER
        return DOES_NOT if high < smallest else CANNOT_TELL
    if direction == "none":
        if -smallest < low and high < smallest:
            return REPRODUCES
        return DOES_NOT if low > smallest or high < -smallest else CANNOT_TELL
    if high < smallest:
        return REPRODUCES
    return DOES_NOT if low > smallest else CANNOT_TELL


def of_all_lines(part: Part, verdicts: Sequence[str]) -> str:
    """The verdict on a part from those on its lines.

    Lines out of the paper's regime say nothing, unless all are. Reproducing in all lines at once
    needs no correction; `some` has corrected limits.
    """
    reached = [one for one in verdicts if one != NOT_REACHED]
    if not reached:
        return NOT_REACHED if verdicts else CANNOT_TELL
    seen = sum(one in (REPRODUCES, WEAKER) for one in reached)
    against, whole = reached.count(DOES_NOT), reached.count(REPRODUCES)
    n, half = len(reached), len(reached) / 2
    if {"all": seen == n, "most": seen > half, "some": seen > 0}[part.needs]:
        large = {"all": whole == n, "most": whole > half, "some": whole > 0}[part.needs]
        return REPRODUCES if large else WEAKER
    fails = {"all": against > 0, "most": against > half, "some": against == n}[part.needs]
    return DOES_NOT if fails else CANNOT_TELL


def of_all_parts(verdicts: Sequence[str]) -> str:
    """The verdict on a claim from those on its parts, all of which must hold.

    >>> of_all_parts(["reproduces", "weaker than claimed"])
    'weaker than claimed'
    >>> of_all_parts(["reproduces", "cannot tell", "does not reproduce"])
    'does not reproduce'
    """
    for worst in (DOES_NOT, NOT_REACHED, CANNOT_TELL, WEAKER):
        if worst in verdicts:
            return worst
    return REPRODUCES


# Whether the models are in the regime that the paper speaks of.

NEAR_MAJORITY = 0.02  # of accuracy: above always answering the most frequent class
HALF = 0.5  # of the paper's recall or TCB
COLLAPSED = 0.05  # a class is hardly predicted: under this share of its frequency
UNSEEN = 0.05  # recall of a down-sampled class before compression


@dataclass(frozen=True)
class ClassRates:
    """Labels, predictions and recall of every class, before and after compression."""

    n: dict[str, float]
    recall: dict[str, float]  # of the dense models
    predicted: dict[str, float]  # by the dense models, over how often the class is there
    predicted_after: dict[str, float]  # by the compressed ones

    @property
    def rarer(self) -> str:
        return min(self.n, key=self.n.__getitem__)

    @property
    def above_majority(self) -> float:
        """Dense accuracy less that of always predicting the most frequent class."""
        total = sum(self.n.values())
        right = sum(self.n[one] * self.recall[one] for one in self.n)
        return (right - max(self.n.values())) / total

    @property
    def collapsed(self) -> bool:
        """Whether the compressed models predict (almost) a single class."""
        return sum(share >= COLLAPSED for share in self.predicted_after.values()) <= 1


def class_rates(table: pd.DataFrame, variant: str, task: str | None) -> ClassRates | None:
    """Of one task and variant, from rows of results by class; None where there are none.

    All variants have the same dense side, so that any row has that of the baseline.
    """
    rows = table[(table["by"] == "class") & table["metric"].isin(("recall", "selection_rate"))]
    rows = rows[rows["task"].isna() if task is None else rows["task"] == task]
    if variant != BASELINE:
        rows = rows[rows["variant"] == variant]
    rows = rows.drop_duplicates(["metric", "class"])
    recall = rows[rows["metric"] == "recall"].set_index("class")
    rate = rows[rows["metric"] == "selection_rate"].set_index("class")
    if len(recall) < 2 or set(recall.index) != set(rate.index):
        return None
    n = {str(one): real(count) for one, count in recall["n"].items()}
    total = sum(n.values())
    shares = {one: count / total for one, count in n.items()}
    return ClassRates(
        n,
        {str(one): real(value) for one, value in recall["baseline"].items()},
        {str(one): real(value) / shares[str(one)] for one, value in rate["baseline"].items()},
        {str(one): real(value) / shares[str(one)] for one, value in rate["compressed"].items()},
    )


def out_of_regime(part: Part, where: Where, regimes: Sequence[Regime], stored: Stored) -> str:
    """Why these models are not in the paper's regime; empty if they are.

    Of a mean over attributes more than half of them must be in it.
    """
    folder = (part.level.folder if part.level else None) or str(part.folder)
    try:
        table = stored.table(folder, RESULTS)
    except NotThereError:
        return ""
    task, variant = where.get("task"), where.get("variant")
    name = variant.partition("+")[0] if isinstance(variant, str) else BASELINE
    own = [one for one in regimes if one.folder == folder and one.task in (None, task)]
    named = [one for one in own if one.task is not None] or own
    regime = named[0] if named else Regime(folder=folder)
    if part.total is not None and name != BASELINE:
        rows = chosen(table, {"metric": "accuracy", "variant": name})
        loss = -real(in_scope(rows, "shift")["shift"]) if len(rows) else nan
        if loss < part.total:
            return f"accuracy falls by {100 * loss:.1f} points, {100 * part.total:g} are needed"
    tasks: list[str | None] = [task] if isinstance(task, str) else [None]
    if tasks == [None] and "task" in table:
        tasks = [str(one) for one in table["task"].dropna().unique()] or [None]
    found = [_task_out_of_regime(one, name, regime, table, where) for one in tasks]
    reasons = [reason for reason in found if reason]
    if len(reasons) <= len(tasks) / 2:
        return ""
    if len(tasks) == 1:
        return reasons[0]
    return (
        f"in {len(reasons)} of {len(tasks)} attributes the models are near a constant, or collapsed"
    )


def _task_out_of_regime(
    task: str | None,
    variant: str,
    regime: Regime,
    table: pd.DataFrame,
    where: Where,
) -> str:
    rates = class_rates(table, variant, task)
    if rates is None:
        return ""
    rare = rates.rarer
    if regime.tcb is not None and rates.predicted[rare] < HALF * regime.tcb:
        return (
            "the dense models are near a constant: they predict "
            f"{rare} {rates.predicted[rare]:.2f} times as often as it is there, the paper's "
            f"{regime.tcb:g} times"
        )
    if regime.recall is not None and rates.recall[rare] < HALF * regime.recall:
        return (
            f"the dense models are near a constant: they recall {100 * rates.recall[rare]:.0f} % "
            f"of {rare}, the paper's {100 * regime.recall:.0f} %"
        )
    if regime.tcb is None and rates.above_majority < NEAR_MAJORITY:
        return (
            "the dense models are near a constant: their accuracy is "
            f"{100 * rates.above_majority:.1f} points above always answering the largest class"
        )
    for one in regime.down_sampled:
        if where.get("class") == one and rates.recall.get(one, 1.0) < UNSEEN:
            return f"the dense models recall {100 * rates.recall[one]:.0f} % of {one} already"
    if rates.collapsed and variant != BASELINE:
        return "the compressed models answer one class only"
    return ""


# All claims of a study judged.

NOT_RUN = "the run is not made yet"


@dataclass(frozen=True)
class ClaimLine:
    """One line of a part: its keys, the run's estimate, the claim verdict and notes."""

    name: str
    estimate: ClaimedValue
    verdict: str
    notes: tuple[str, ...] = ()
    control: ClaimedValue | None = None  # the same quantity, trained as long, nothing removed
    difficulty: ClaimedValue | None = None  # the same quantity, dense against dense


@dataclass(frozen=True)
class JudgedPart:
    part: Part
    lines: tuple[ClaimLine, ...]
    verdict: str


@dataclass(frozen=True)
class Judged:
    """A claim with its parts, and what the authors' own numbers say."""

    claim: Claim
    parts: tuple[JudgedPart, ...]
    verdict: str
    authors: tuple[ClaimLine, ...] = ()
    authors_verdict: str = ""  # empty where there are no such numbers
    before: bool = False  # whether it was written before the run began

    @property
    def lines(self) -> tuple[ClaimLine, ...]:
        return tuple(line for part in self.parts for line in part.lines)


def judged(claims: Claims, results: Path | None) -> list[Judged]:
    """Judge every claim: from the authors' numbers, and from the published results of a study.

    Without results only the first.
    """
    stored = None if results is None else Stored(results)
    return [_judge(claim, claims, stored) for claim in claims.claim]


def _judge(claim: Claim, claims: Claims, stored: Stored | None) -> Judged:
    parts = tuple(_judge_part(part, claims, stored) for part in (claim, *claim.also))
    authors = tuple(
        ClaimLine(name, found, _told(claim, found)) for name, found in authors_numbers(claim)
    )
    told = [one.verdict for one in authors if not one.estimate.reason]
    began = None if stored is None or claim.folder is None else stored.began(claim.folder)
    return Judged(
        claim,
        parts,
        of_all_parts([one.verdict for one in parts]),
        authors,
        of_all_lines(replace(claim, needs="all", corrected=False), told) if told else "",
        began is not None and claims.written_at(claim) < began,
    )


def _told(part: Part, found: ClaimedValue) -> str:
    if found.reason:
        return CANNOT_TELL
    says = None if part.says is None else part.says - part.null
    return verdict(
        part.direction, found.low - part.null, found.high - part.null, part.smallest, says
    )


def _judge_part(part: Part, claims: Claims, stored: Stored | None) -> JudgedPart:
    if part.unjudged is not None or stored is None:
        reason = part.unjudged or NOT_RUN
        return JudgedPart(
            part, (ClaimLine("", ClaimedValue(reason=reason), CANNOT_TELL),), CANNOT_TELL
        )
    try:
        asked = list(lines(part, stored))
    except NotThereError as error:
        return JudgedPart(
            part, (ClaimLine("", ClaimedValue(reason=str(error)), CANNOT_TELL),), CANNOT_TELL
        )
    levels = range(len(part.level.loss)) if part.level is not None and part.level.loss else (0,)
    n_lines = len(asked) * len(levels)
    made = tuple(
        _judge_line(part, line, number, n_lines, claims.regime, stored)
        for number in levels
        for line in asked
    )
    if not made:
        made = (ClaimLine("", ClaimedValue(reason=NO_ROW), CANNOT_TELL),)
    return JudgedPart(part, made, of_all_lines(part, [line.verdict for line in made]))


def _judge_line(
    part: Part,
    line: dict[str, Any],
    number: int,
    n_lines: int,
    regimes: Sequence[Regime],
    stored: Stored,
) -> ClaimLine:
    where: dict[str, Any] = {**part.where, **line}
    names = [str(value) for value in line.values()]
    try:
        level = None
        if part.level is not None:
            task = where.get("task")
            level = matched(
                part.level,
                str(part.folder),
                task if isinstance(task, str) else None,
                stored,
                number,
            )
            where = at_level(where, level)
            names.insert(0, level_name(level))
        reason = out_of_regime(part, where, regimes, stored)
        if reason:
            raise NotReachedError(reason)
        found = _estimate(part, where, stored, n_lines)
    except NotReachedError as error:
        if part.level is not None and part.level.loss and len(names) == len(line):
            names.insert(0, f"a loss of {100 * part.level.loss[number]:g} points")
        return ClaimLine(", ".join(names), ClaimedValue(reason=str(error)), NOT_REACHED)
    except NotThereError as error:
        return ClaimLine(", ".join(names), ClaimedValue(reason=str(error)), CANNOT_TELL)
    control = difficulty = None
    if part.control is not None:
        control = _beside(part, {**where, "variant": part.control}, stored, n_lines)
    if part.difficulty is not None:
        difficulty = _beside(replace(part, value=part.difficulty), where, stored, n_lines)
    told = _told(part, found)
    return ClaimLine(
        ", ".join(names), found, told, notes(part, found, told, control), control, difficulty
    )


def at_level(where: Where, level: Matched) -> dict[str, Any]:
    """The rows of a level: its variant stands where `{level}` does, else as the variant."""
    if any(LEVEL in str(value) for value in where.values()):
        return {
            column: value.replace(LEVEL, level.variant) if isinstance(value, str) else value
            for column, value in where.items()
        }
    return {**where, "variant": level.variant}


def level_name(level: Matched) -> str:
    """A level in words: its variant, its loss, and the paper's."""
    own = f"{level.variant} (loses {100 * level.loss:.1f}"
    return f"{own} points)" if level.paper is None else f"{own}, the paper {100 * level.paper:.1f})"


def _estimate(part: Part, where: Where, stored: Stored, n_lines: int) -> ClaimedValue:
    if part.against is not None:
        return paired_estimate(part, where, stored, n_lines)
    found = stored_estimate(part, where, stored)
    if found.reason and part.value == "baseline" and table_of(part) == RESULTS:
        return dense_estimate(part, where, stored)
    return found


def _beside(part: Part, where: Where, stored: Stored, n_lines: int) -> ClaimedValue:
    """What stands beside a line; its reason where there is no such number."""
    try:
        return _estimate(part, where, stored, n_lines)
    except (NotThereError, NotReachedError) as error:
        return ClaimedValue(reason=str(error))


def notes(
    part: Part, found: ClaimedValue, told: str, control: ClaimedValue | None
) -> tuple[str, ...]:
    """Notes on a line that a reader needs beside its verdict."""
    said = []
    if found.scope == "model":
        said.append("about these models, not the method")
    changed = told in (REPRODUCES, WEAKER) and part.direction in ("up", "down")
    if changed and abs(found.value - part.null) <= found.floor:
        said.append("within retraining noise")
    if changed and control is not None and not control.reason:
        low, high = control.low - part.null, control.high - part.null
        if low > 0 if part.direction == "up" else high < 0:
            said.append("the control changes too")
    return tuple(said)


def frame(found: Sequence[Judged]) -> pd.DataFrame:
    """A row per line of every claim."""
    rows = [
        {
            "claim": one.claim.id, "statement": one.claim.statement, "place": one.claim.place,
            "source": source, "quantity": part.quantity, "line": line.name,
            "direction": part.direction, "null": part.null, "smallest": part.smallest,
            "says": nan if part.says is None else part.says, "why": part.why,
            "value": line.estimate.value, "low": line.estimate.low, "high": line.estimate.high,
            "interval": line.estimate.interval, "scope": line.estimate.scope,
            "retraining": line.estimate.floor,
            "control": nan if line.control is None else line.control.value,
            "difficulty": nan if line.difficulty is None else line.difficulty.value,
            "verdict": line.verdict, "reason": line.estimate.reason,
            "notes": "; ".join(line.notes), "twin_of": one.claim.twin_of,
            "written_before": one.before,
            "claim_verdict": one.verdict if source == "run" else one.authors_verdict,
        }
        for one in found
        for source, parts in (
            ("authors", [(one.claim, one.authors)]),
            ("run", [(judged.part, judged.lines) for judged in one.parts]),
        )
        for part, own in parts
        for line in own
    ]  # fmt: skip
    return schema.frame("claims", rows)
