"""A verdict as JUnit XML, which CI servers show as tests: one per endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from fairweight.report.gate.words import endpoint_name, endpoints, interval
from fairweight.report.numbers import count, shown

if TYPE_CHECKING:
    from fairweight.auditing.decide.gate import Verdict

# What was not decided is not a failed assertion, yet no server may show it as passed.
TAGS = {"fail": "failure", "cannot tell": "error"}


def to_junit(verdict: Verdict) -> str:
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
