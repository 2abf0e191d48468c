from __future__ import annotations

from dataclasses import replace

from fairweight.auditing.result import AuditResult
from fairweight.report.notebook import fragment


def test_the_fragment_says_the_finding_and_escapes_names(hostile: AuditResult) -> None:
    text = fragment(hostile)
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text
    assert "the change differs" in text
    assert "not about the method that made them" in text
    assert len(text) < 12_000


def test_many_variants_are_counted(result: AuditResult) -> None:
    many = replace(result, variants=("int8", "pruned-90") * 4)
    assert "3 more variants: see the report." in fragment(many)


def test_a_bare_audit_has_a_fragment(bare: AuditResult) -> None:
    assert "Accuracy 92.5 %" in fragment(bare)
