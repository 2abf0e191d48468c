"""Claims judged, as people read them: a summary in words, and a Markdown table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fairweight.base.wording import NOTHING, shown
from fairweight.report.numbers import MINUS, number
from fairweight.specs.claims import Claim, Claims
from fairweight.studies.claims import (
    CANNOT_TELL,
    DOES_NOT,
    REPRODUCES,
    SMALLER,
    ClaimedValue,
    Judged,
)

HOW = (
    "A claim of a change *reproduces* where the 95 % interval excludes no effect in the claimed "
    "direction, and *does not* where it excludes the smallest effect that matters (both: it is "
    "there, smaller than what matters). A claim of no change reproduces where the interval "
    "excludes the smallest effect that matters, and does not where there is a change that may be "
    "as large. All else *cannot be told at this scale*."
)
SCOPES = (
    "Intervals are of the *method* (models are a sample too) where at least four models were "
    "trained on each side, else of these *models* (other examples); differences between two "
    "compressed variants or settings are over paired *members* (Student's t, the same examples), "
    "and so are dense models whose compressed copies are undefined."
)
_IN = {"all": "in all lines", "most": "in most lines", "some": "in some line"}
_SCOPES = {"model": "models", "method": "method", "members": "members", "": ""}


def summary(found: Sequence[Judged]) -> str:
    """How many claims there are, and how they came out.

    Many looks are not one: the sentence says that nothing was corrected for them, and what chance
    alone would do.
    """
    n, lines = len(found), [line for one in found for line in one.lines]
    counted = Counter(one.verdict for one in found)
    held = counted[REPRODUCES] + counted[SMALLER]
    small = f" ({counted[SMALLER]} of them smaller than what matters)" if counted[SMALLER] else ""
    together = sum(len(one.lines) for one in found if one.claim.corrected)
    apart = " but for " + _many(together, "line") + " marked *together*" if together else ""
    return (
        f"{_many(n, 'claim')} in {_many(len(lines), 'line')}: {held} reproduce{small}, "
        f"{counted[DOES_NOT]} do not, {counted[CANNOT_TELL]} cannot be told at this scale. Every "
        f"line is judged on its own, not corrected for their number{apart}: of lines without any "
        "effect about one in forty would reproduce a change by chance."
    )


def markdown(claims: Claims, found: Sequence[Judged]) -> str:
    """The section of a results page."""
    head = [
        f"{_cell(claims.paper)}. The claims were written down {_cell(claims.written)}.",
        "",
        summary(found),
        "",
        f"{HOW} {SCOPES}",
        "",
        "| the paper says | judged by | it would take | this run | verdict |",
        "|---|---|---|---|---|",
    ]
    return "\n".join(head + [row for one in found for row in _rows(one)]) + "\n"


def needed(claim: Claim) -> str:
    """What the claim says of the quantity, with the smallest effect that matters.

    A ratio or another quantity whose value of no effect is not 0 is compared with that value.
    """
    least, null = _given(claim.smallest), claim.null
    if claim.direction == "none":
        return f"within {least} of {_given(null)}"
    upwards = claim.direction.endswith("up")
    if null != 0:
        word = "above" if upwards else "below"
        limit = _given(null + claim.smallest if upwards else null - claim.smallest)
        told = f"{word} {_given(null)} ({limit} matters)"
    else:
        told = f"{'up' if upwards else 'down'} ({least} matters)"
    return f"not {told}" if claim.direction.startswith("not-") else told


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


def _rows(one: Judged) -> list[str]:
    claim = one.claim
    together = " *together*" if claim.corrected else ""
    says = f"{_cell(claim.statement)} ({_cell(claim.place)}) `{claim.id}`"
    judged_by = f"{_cell(claim.quantity)}{together}"
    takes = f"{needed(claim)}: {_cell(claim.why)}"
    if len(one.lines) == 1 and not one.lines[0][0]:
        _, estimate, verdict = one.lines[0]
        return [
            f"| {says} | {judged_by} | {takes} | {told(estimate)} | {_full(verdict, estimate)} |"
        ]
    rows = [f"| {says} | {judged_by} | {takes}; {_IN[claim.needs]} | | {of_lines(one)} |"]
    return rows + [
        f"| | {_cell(line)} | | {told(estimate)} | {_full(verdict, estimate, bold=False)} |"
        for line, estimate, verdict in one.lines
    ]


def of_lines(one: Judged) -> str:
    """The verdict on a claim of several lines, and how they came out.

    One line against a claim about all of them is not the same as every line against it.
    """
    counted = Counter(verdict for _, _, verdict in one.lines)
    held = counted[REPRODUCES] + counted[SMALLER]
    parts = [(held, "reproduce"), (counted[DOES_NOT], "do not"), (counted[CANNOT_TELL], "unclear")]
    told = ", ".join(f"{n} {word}" for n, word in parts if n)
    return f"**{one.verdict}** (lines: {told})"


def _full(verdict: str, estimate: ClaimedValue, *, bold: bool = True) -> str:
    mark = "**" if bold else ""
    reason = f": {_cell(estimate.reason)}" if estimate.reason else ""
    return f"{mark}{verdict}{mark}{reason}"


def _given(value: float) -> str:
    """A number as it was written down."""
    return f"{value:g}".replace("-", MINUS)


def _cell(text: str) -> str:
    return shown(text).replace("|", "\\|")


def _many(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
