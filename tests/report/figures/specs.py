"""What the tests of figures share: a specification, and what is in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pandas as pd

from fairweight.auditing.result import AuditResult
from fairweight.auditing.schema import column_names
from fairweight.report.figures import draw


def spec_of(id: str, audit: AuditResult, variant: str | None = None) -> dict[str, Any]:
    drawing = draw(id, audit, variant)
    assert drawing.spec is not None, drawing.reason
    return drawing.spec


def parts(spec: Any) -> Iterator[dict[str, Any]]:
    """Every dictionary anywhere in a specification, data left out."""
    if isinstance(spec, list):
        for held in spec:
            yield from parts(held)
    elif isinstance(spec, dict):
        yield spec
        for key, held in spec.items():
            if key != "values":
                yield from parts(held)


def values_in(spec: Any) -> list[dict[str, Any]]:
    return [v for part in parts(spec) for v in part.get("values", []) if isinstance(v, dict)]


def cell(spec: dict[str, Any], row: str, column: str) -> dict[str, Any]:
    (found,) = [c for c in values_in(spec) if (c.get("row"), c.get("column")) == (row, column)]
    return found


def changed(audit: AuditResult, table: str, where: dict[str, Any], **values: Any) -> AuditResult:
    """The audit with other values in the rows of a table that match."""
    frame = audit.explanations[table].copy()
    here = pd.Series(True, index=frame.index)
    for column, wanted in where.items():
        here &= frame[column] == wanted
    assert here.any()
    for column, value in values.items():
        frame.loc[here, column] = value
    return replace(audit, explanations={**audit.explanations, table: frame})


def override_rows(variant: str) -> pd.DataFrame:
    rows = [
        {"variant": variant, "source": source, "metric": metric, "group": group, "budget": budget,
         "value": 0.05 - budget / 10, "low": 0.01, "high": 0.09, "random": 0.05, "status": "ok",
         "random_low": 0.02, "random_high": 0.08}
        for source in ("dense", "human")
        for metric, group in (("accuracy", None), ("bias_amplification", "sex"))
        for budget in (0.0, 0.1, 0.2)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(column_names("override_curves")))


def with_tables(audit: AuditResult, **tables: pd.DataFrame) -> AuditResult:
    return replace(audit, explanations={**audit.explanations, **tables})
