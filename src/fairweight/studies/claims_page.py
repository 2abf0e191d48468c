"""Claims judged, as people read them: a summary in words, and Markdown tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairweight.base.wording import NOTHING, shown
from fairweight.report.numbers import MINUS, number
from fairweight.specs.claims import Claims, Part
from fairweight.studies.claims import (
    CANNOT_TELL,
    DOES_NOT,
    NOT_REACHED,
    NOT_RUN,
    REPRODUCES,
    WEAKER,
    ClaimLine,
    Judged,
    JudgedPart,
)
from fairweight.studies.estimates import ClaimedValue

HOW = (
    "A claim of a change *reproduces* where the 95 % interval lies in the claimed direction and "
    "contains or exceeds the number that the paper states (where it states none, the smallest "
    "effect that matters). It is *weaker than claimed* where the direction holds and the size does "
    "not, and *does not reproduce* where the interval excludes the smallest effect that matters. A "
    "claim of no change reproduces where the interval lies inside ± that effect, and does not "
    "where it lies outside. *Regime not reached* means that these models cannot speak to the "
    "claim: the dense ones are near a constant, the compressed ones answer one class, or no level "
    "loses about as much accuracy as the paper's. All else *cannot be told*."
)
SCOPES = (
    "Intervals are of the *method* (models are a sample too) where at least four models were "
    "trained on each side, else of these *models* (other examples); differences between two "
    "compressed variants, settings or groups are over paired *members* (Student's t, the same "
    "examples)."
)
_IN = {"all": "in all lines", "most": "in most lines", "some": "in some line"}
_SCOPES = {"model": "models", "method": "method", "members": "members", "": ""}
_ORDER = (REPRODUCES, WEAKER, DOES_NOT, CANNOT_TELL, NOT_REACHED)
_COUNTED = {
    REPRODUCES: ("reproduces", "reproduce"),
    WEAKER: ("is weaker than claimed", "are weaker than claimed"),
    DOES_NOT: ("does not reproduce", "do not reproduce"),
    CANNOT_TELL: ("cannot be told", "cannot be told"),
    NOT_REACHED: ("is in a regime that was not reached", "are in a regime that was not reached"),
}
HEADS = (
    "| the paper says | it would take | from the authors' numbers | this run | verdict |",
    "|---|---|---|---|---|",
)


def counted(verdicts: Sequence[str]) -> str:
    """How many of each verdict, in words.

    >>> counted(["reproduces", "cannot tell", "reproduces"])
    '2 reproduce, 1 cannot be told'
    """
    n = Counter(verdicts)
    return ", ".join(f"{n[one]} {_COUNTED[one][n[one] > 1]}" for one in _ORDER if n[one])


def summary(found: Sequence[Judged]) -> str:
    """How many claims there are, and how they came out: from the run, and from the authors.

    Many looks are not one: the sentence says that nothing was corrected for them, and what chance
    alone would do.
    """
    own = [one for one in found if one.claim.twin_of is None]
    twins = len(found) - len(own)
    allowed = [one for one in own if one.claim.unjudged is None]
    told = [f"{_many(len(own), 'claim')}" + (f" ({twins} more follow from them)" * (twins > 0))]
    if allowed and all(line.estimate.reason == NOT_RUN for one in allowed for line in one.lines):
        told.append(f"The run will allow {len(allowed)} of them")
    elif allowed:
        lines = sum(len(one.lines) for one in allowed)
        told.append(
            f"These data allow {len(allowed)} of them, in {_many(lines, 'line')}: "
            f"{counted([one.verdict for one in allowed])}"
        )
    else:
        told.append("These data allow none of them")
    known = [one.authors_verdict for one in own if one.authors_verdict]
    if known:
        told.append(f"From the authors' own numbers {_many(len(known), 'claim')} can be judged: "
                    f"{counted(known)}")  # fmt: skip
    together = sum(len(part.lines) for one in found for part in one.parts if part.part.corrected)
    apart = f" but for {_many(together, 'line')} marked *together*" if together else ""
    told.append(
        f"Every line is judged on its own, not corrected for their number{apart}: of lines without "
        "any effect about one in forty would reproduce a change by chance"
    )
    return ". ".join(told) + "."


def written(claims: Claims, found: Sequence[Judged]) -> str:
    """When the claims were written down, and whether that was before the run."""
    when = claims.written.strftime("%-d %B %Y, %H:%M UTC")
    before = sum(one.before for one in found)
    mark = (
        "before the run, which is not made yet"
        if any(line.estimate.reason == NOT_RUN for one in found for line in one.lines)
        else "before the run began"
        if found and before == len([one for one in found if one.claim.unjudged is None])
        else "after the run"
        if not before
        else f"{before} of them before the run began, the others after it"
    )
    known = f" ({_cell(claims.known)})" if claims.known else ""
    return f"Written down {when}{known}: {mark}."


def markdown(claims: Claims, found: Sequence[Judged]) -> str:
    """All claims of a paper as one section."""
    title = f", *{_cell(claims.title)}*" if claims.title else ""
    head = [
        f"{_cell(claims.paper)}{title}. {written(claims, found)}",
        "",
        summary(found),
        "",
        f"{HOW} {SCOPES}",
        "",
        *table(found),
    ]
    return "\n".join(head) + "\n"


def table(found: Sequence[Judged]) -> list[str]:
    """A row per claim and line, the authors' numbers beside the run's."""
    return [*HEADS, *(row for one in found for row in _rows(one))]


def needed(part: Part) -> str:
    """What the claim says of the quantity, with the smallest effect that matters.

    A ratio or another quantity whose value of no effect is not 0 is compared with that value.
    """
    least, null = _given(part.smallest), part.null
    stated = "" if part.says is None else f"; the paper has {_given(part.says)}"
    if part.direction == "none":
        return f"within {least} of {_given(null)}"
    upwards = part.direction.endswith("up")
    if null != 0:
        word = "above" if upwards else "below"
        limit = _given(null + part.smallest if upwards else null - part.smallest)
        text = f"{word} {_given(null)} ({limit} matters{stated})"
    else:
        text = f"{'up' if upwards else 'down'} ({least} matters{stated})"
    return f"not {text}" if part.direction.startswith("not-") else text


def told(estimate: ClaimedValue) -> str:
    """The estimate with its interval, whom it speaks of, and what retraining alone moves."""
    if estimate.value != estimate.value:
        return NOTHING
    parts = [number(estimate.value)]
    if estimate.low == estimate.low:
        parts.append(f"[{number(estimate.low)}, {number(estimate.high)}]")
    if _SCOPES.get(estimate.scope):
        parts.append(f"({_SCOPES[estimate.scope]})")
    text = " ".join(parts)
    if estimate.floor == estimate.floor:
        text += f"; retraining alone up to {number(estimate.floor)}"
    return text


def of_line(line: ClaimLine) -> str:
    """The estimate of a line with what stands beside it."""
    text = told(line.estimate)
    for name, beside in (("control", line.control), ("dense against dense", line.difficulty)):
        if beside is not None and beside.value == beside.value:
            text += f"; {name} {told(beside)}"
    return text


def of_lines(part: JudgedPart) -> str:
    """The verdict on a part of several lines, and how they came out.

    One line against a claim about all of them is not the same as every line against it.
    """
    return f"**{part.verdict}** (lines: {counted([line.verdict for line in part.lines])})"


def _rows(one: Judged) -> list[str]:
    """The first row is the claim, then a row per line and further part."""
    claim = one.claim
    mark = " *follows from `" + claim.twin_of + "`, not counted*" if claim.twin_of else ""
    run = claim.unjudged is None and one.lines[0].estimate.reason != NOT_RUN
    if run and not one.before:
        mark += " *written after the run*"
    says = f"{_cell(claim.statement)} ({_cell(claim.place)}) `{claim.id}`{mark}"
    authors = "<br>".join(
        f"{_cell(line.name)}: {told(line.estimate)}" if line.name else told(line.estimate)
        for line in one.authors
        if not line.estimate.reason or line.estimate.value == line.estimate.value
    )
    if authors:
        authors += f"<br>**{one.authors_verdict}**" if one.authors_verdict else " (no interval)"
    rows = []
    for number_of, part in enumerate(one.parts):
        together = " *together*" if part.part.corrected else ""
        takes = f"{_cell(part.part.quantity)}{together}: {needed(part.part)}"
        takes += f", {_cell(part.part.why)}"
        first = (says, takes, authors) if number_of == 0 else ("*and*", takes, "")
        if part.part.unjudged is not None:
            rows.append(
                _row(*first, NOTHING, f"not judged by the run: {_cell(part.part.unjudged)}")
            )
            continue
        if len(part.lines) == 1:
            line = part.lines[0]
            told_of = f"{_cell(line.name)}: {of_line(line)}" if line.name else of_line(line)
            rows.append(_row(*first, told_of, _full(line, bold=True)))
            continue
        rows.append(_row(*first, _IN[part.part.needs], of_lines(part)))
        rows += [
            _row("", _cell(line.name), "", of_line(line), _full(line, bold=False))
            for line in part.lines
        ]
    if len(one.parts) > 1 and one.parts[0].lines[0].estimate.reason != NOT_RUN:
        rows.append(_row("", "*both*" if len(one.parts) == 2 else "*all*", "", "",
                         f"**{one.verdict}**"))  # fmt: skip
    return rows


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _full(line: ClaimLine, *, bold: bool) -> str:
    if line.estimate.reason == NOT_RUN:
        return "not run yet"
    mark = "**" if bold else ""
    more = "; ".join(filter(None, (_cell(line.estimate.reason), *line.notes)))
    return f"{mark}{line.verdict}{mark}" + (f": {more}" if more else "")


def _given(value: float) -> str:
    """A number as it was written down."""
    return f"{value:g}".replace("-", MINUS)


def _cell(text: str) -> str:
    return shown(text).replace("|", "\\|")


def _many(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
