"""From what and how the numbers were made, line by line: enough to make them again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairweight.report.numbers import count

if TYPE_CHECKING:
    from fairweight.auditing.result import AuditResult

_PAIRING = {
    "parent": "by parent (each compressed member with the dense model that it was made from)",
    "seed": "by seed (equal seeds on both sides; parents are not known)",
    "independent": "independent (no pairs are known)",
    "single": "one model on each side",
}


@dataclass(frozen=True)
class Line:
    """One fact about the origin of an audit; what is typed or compared is set as code."""

    key: str
    values: tuple[str, ...]
    code: bool = False


def provenance_lines(result: AuditResult) -> list[Line]:
    """Version, time, command, inputs, random state, options and pairing."""
    origin = result.provenance
    command = origin.command or "none: called from Python"
    options = {k: v for k, v in origin.options.items() if k != "random_state"}
    lines = [
        Line("fairweight", (origin.version,)),
        Line("made", (origin.created,)),
        Line("command", (command,), origin.command is not None),
        Line("inputs", tuple(_input(given) for given in origin.inputs) or ("—",), True),
        Line("random state", (str(origin.options.get("random_state", "—")),)),
        Line("options", (", ".join(f"{k} = {v}" for k, v in options.items()) or "—",)),
    ]
    pairs = tuple(f"{variant}: {_PAIRING.get(how, how)}" for variant, how in result.pairing.items())
    if pairs:
        lines.append(Line("members paired", pairs))
    return lines


def _input(given: dict[str, object]) -> str:
    """A file with its rows and checksum.

    >>> _input({"name": "a.csv", "sha256": "ab12", "rows": 1200})
    'a.csv, 1,200 rows, sha256 ab12'
    """
    facts = [str(given.get("name", "—"))]
    facts += [f"{count(value)} rows" for key, value in given.items() if key == "rows" and value]
    facts += [
        f"{key} {value}"
        for key, value in given.items()
        if key not in ("name", "rows") and value is not None
    ]
    return ", ".join(facts)
