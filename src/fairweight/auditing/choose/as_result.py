"""A choice in the shape of an audit's result, which figures read: its tables, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fairweight.auditing.result import RESULT_COLUMNS, AuditResult, Provenance

if TYPE_CHECKING:
    from fairweight.auditing.choose.chosen import Choice


def as_result(choice: Choice) -> AuditResult:
    """The tables of a choice as explanations of an audit without rows."""
    import pandas as pd

    from fairweight import __version__

    nothing = pd.DataFrame()
    names = [str(name) for name in choice.tables["choice"]["variant"]]
    return AuditResult(
        baseline=choice.baseline,
        variants=tuple(name for name in names if name != choice.baseline),
        classes=(),
        positive=None,
        tasks=(),
        groupings=(),
        n_examples=choice.n_examples,
        results=pd.DataFrame(columns=list(RESULT_COLUMNS)),
        per_seed=nothing,
        confusion=nothing,
        reliability=nothing,
        data=nothing,
        power=nothing,
        concentration=nothing,
        group_error=nothing,
        notes=choice.notes,
        provenance=Provenance(
            version=__version__,
            command=None,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            inputs=(),
            options={},
        ),
        explanations=choice.tables,
    )
