"""An audit as JUnit XML without a policy: one test per class and group of every variant.

A shown loss is a failure; who has too few examples is skipped, with how many it takes. The margins
of a policy are the gate's business: `report.gate.junit`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

from fairweight.base.wording import missing, shown
from fairweight.report.finding import Finding, findings
from fairweight.report.gate import endpoint_name, endpoints, interval
from fairweight.report.numbers import count, points_interval
from fairweight.report.sentences import named

if TYPE_CHECKING:
    from fairweight.auditing.gate.verdict import Verdict
    from fairweight.auditing.result import AuditResult


@dataclass(frozen=True)
class Case:
    """One test."""

    name: str
    outcome: Literal["passed", "failure", "skipped"]
    said: str


def to_junit(result: AuditResult) -> str:
    """A test suite per variant, about these models."""
    root = ElementTree.Element("testsuites", name="fairweight audit")
    for finding in findings(result):
        cases = list(_cases(finding))
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=shown(finding.variant),
            tests=str(len(cases)),
            failures=str(sum(case.outcome == "failure" for case in cases)),
            errors="0",
            skipped=str(sum(case.outcome == "skipped" for case in cases)),
        )
        for case in cases:
            element = ElementTree.SubElement(
                suite, "testcase", classname=f"fairweight.{shown(finding.variant)}", name=case.name
            )
            if case.outcome == "passed":
                ElementTree.SubElement(element, "system-out").text = case.said
            else:
                told = ElementTree.SubElement(element, case.outcome, message=case.said)
                if case.outcome == "failure":
                    told.set("type", "loss")
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _cases(finding: Finding) -> Iterator[Case]:
    unseen = {(b.kind, b.name, b.task): b for b in finding.blind}
    for payer in finding.model.shifts:
        name = f"{payer.metric} of {named(payer)}"
        said = f"{points_interval(payer.shift, payer.low, payer.high)}, n = {count(payer.n)}"
        blind = unseen.get(payer.key)
        if payer.high < 0:
            yield Case(name, "failure", f"loses {said}")
        elif blind is not None:
            needed = "" if missing(blind.n_needed) else f"; about {count(round(blind.n_needed))}"
            yield Case(
                name,
                "skipped",
                f"{said}: too few examples to find a {100 * blind.reference:g}-point loss "
                f"reliably{f'{needed} needed' if needed else ''}",
            )
        else:
            yield Case(name, "passed", said)
    for small in finding.small:
        word = "class " if small.kind == "class" else ""
        why = f"not tested: {shown(small.reason)}, n = {count(small.n)}"
        yield Case(f"{word}{shown(small.name)}", "skipped", why)


# A verdict as JUnit XML, which CI servers show as tests: one per endpoint.

# What was not decided is not a failed assertion, yet no server may show it as passed.
TAGS = {"fail": "failure", "cannot tell": "error"}


def verdict_to_junit(verdict: Verdict) -> str:
    """A test suite per variant; `fail` is a failure, `cannot tell` an error."""
    root = ElementTree.Element("testsuites", name="fairweight gate")
    for variant in verdict.variants:
        rows = endpoints(verdict, variant)
        decisions = [row["decision"] for row in rows]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=shown(variant),
            tests=str(len(rows)),
            failures=str(decisions.count("fail")),
            errors=str(decisions.count("cannot tell")),
        )
        for row in rows:
            name = f"rule {row['rule']}: {endpoint_name(row)}"
            case = ElementTree.SubElement(
                suite, "testcase", classname=f"fairweight.{shown(variant)}", name=name
            )
            told = f"{interval(row)}, n = {count(row['n'])}; {shown(row['reason'])}"
            if row["decision"] in TAGS:
                kind, decision = TAGS[row["decision"]], row["decision"]
                ElementTree.SubElement(case, kind, type=decision, message=told)
            else:
                ElementTree.SubElement(case, "system-out").text = told
    ElementTree.indent(root)
    body = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'
