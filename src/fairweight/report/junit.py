"""JUnit XML, which CI servers show as tests: of an audit, and of a gate's verdict.

Of an audit there is one test per class and group of every variant: a shown loss is a failure; who
has too few examples is skipped, with how many it takes. Of a verdict there is one per endpoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

from fairweight.base.wording import shown
from fairweight.report.finding import Blind, findings
from fairweight.report.gate import endpoint_name, endpoints, interval
from fairweight.report.numbers import count
from fairweight.report.sentences import name_of, needed, shift_and_n

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult


@dataclass(frozen=True)
class Case:
    """One test."""

    name: str
    outcome: Literal["passed", "failure", "error", "skipped"]
    said: str
    type: str | None = None


def to_junit(result: AuditResult) -> str:
    """A test suite per variant, about these models."""
    suites: dict[str, list[Case]] = {}
    for finding in findings(result):
        cases = suites[finding.variant] = []
        unseen: dict[tuple[str, str, str | None], Blind] = {
            (b.kind, b.name, b.task): b for b in finding.blind
        }
        for change in finding.model.shifts:
            name, said = f"{change.metric} of {name_of(change)}", shift_and_n(change)
            blind = unseen.get(change.key)
            if change.is_loss:
                cases.append(Case(name, "failure", f"loses {said}", "loss"))
            elif blind is not None:
                few = f"too few examples to find a {100 * blind.reference:g}-point loss reliably"
                cases.append(Case(name, "skipped", f"{said}: {few}{needed(blind)}"))
            else:
                cases.append(Case(name, "passed", said))
        for small in finding.small:
            word = "class " if small.kind == "class" else ""
            why = f"not tested: {shown(small.reason)}, n = {count(small.n)}"
            cases.append(Case(f"{word}{shown(small.name)}", "skipped", why))
    return _xml("fairweight audit", suites)


def verdict_to_junit(verdict: Verdict) -> str:
    """A test suite per variant; `fail` is a failure, `cannot tell` an error.

    What was not decided is not a failed assertion, yet no server may show it as passed.
    """
    outcomes: dict[str, Literal["failure", "error"]] = {"fail": "failure", "cannot tell": "error"}
    suites = {
        variant: [
            Case(
                f"rule {row['rule']}: {endpoint_name(row)}",
                outcomes.get(row["decision"], "passed"),
                f"{interval(row)}, n = {count(row['n'])}; {shown(row['reason'])}",
                row["decision"],
            )
            for row in endpoints(verdict, variant)
        ]
        for variant in verdict.variants
    }
    return _xml("fairweight gate", suites)


def _xml(name: str, suites: dict[str, list[Case]]) -> str:
    """Test cases by variant as JUnit writes them."""
    root = ElementTree.Element("testsuites", name=name)
    for variant, cases in suites.items():
        outcomes = [case.outcome for case in cases]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=shown(variant),
            tests=str(len(cases)),
            failures=str(outcomes.count("failure")),
            errors=str(outcomes.count("error")),
            skipped=str(outcomes.count("skipped")),
        )
        for case in cases:
            place = {"classname": f"fairweight.{shown(variant)}", "name": case.name}
            element = ElementTree.SubElement(suite, "testcase", place)
            if case.outcome == "passed":
                ElementTree.SubElement(element, "system-out").text = case.said
            else:
                kind = {} if case.type is None else {"type": case.type}
                ElementTree.SubElement(element, case.outcome, {**kind, "message": case.said})
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'
