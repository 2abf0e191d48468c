"""A verdict as JSON, for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fairweight.report.machine import records

if TYPE_CHECKING:
    from fairweight.auditing.decide.gate import Verdict
    from fairweight.specs.policy import Policy

SCHEMA = 1


def to_json(verdict: Verdict, policy: Policy) -> str:
    """The outcome, the policy that was asked, and every endpoint."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "outcome": verdict.outcome,
        "exit_code": verdict.exit_code,
        "require": verdict.require,
        "variants_tried": len(verdict.variants),
        "variants": verdict.variants,
        "passing": [name for name, outcome in verdict.variants.items() if outcome == "pass"],
        "look": None if verdict.look is None else asdict(verdict.look),
        "notes": list(verdict.notes),
        "policy": asdict(policy),
        "endpoints": records(verdict.rows),
    }
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
