"""A verdict as Markdown, for the summary of a CI job or a pull request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairweight.report.gate.words import (
    confidence_of,
    endpoint_name,
    endpoints,
    headline,
    interval,
    passing,
    standing,
)
from fairweight.report.numbers import count, shown

if TYPE_CHECKING:
    from fairweight.auditing.decide.gate import Verdict

_MARKS = re.compile(r"([\\`*_{}\[\]()<>#!|~&$@])")


def to_markdown(verdict: Verdict) -> str:
    """The outcome, and a table of all endpoints per variant."""
    lines = [f"## Gate: {escaped(headline(verdict))}", ""]
    named = passing(verdict)
    lines += [] if named is None else [escaped(named), ""]
    for variant in verdict.variants:
        lines += [f"**{escaped(standing(verdict, variant))}**", ""]
        lines += [
            f"| | endpoint | n | estimate, {confidence_of(verdict)} interval | reason |",
            "|---|---|---|---|---|",
        ]
        for row in endpoints(verdict, variant):
            cells = (
                row["decision"],
                endpoint_name(row),
                count(row["n"]),
                interval(row),
                row["reason"],
            )
            lines.append(f"| {' | '.join(map(escaped, cells))} |")
        lines.append("")
    lines += [f"> {escaped(note)}" for note in verdict.notes]
    return "\n".join(lines).rstrip() + "\n"


def escaped(words: str) -> str:
    r"""Text that Markdown takes literally, on one line, in a table too.

    >>> escaped("sex=<b> | a\nb")
    'sex=\\<b\\> \\| a\\\\nb'
    """
    return _MARKS.sub(r"\\\1", shown(words))
