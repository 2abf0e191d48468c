"""What every mitigation ends with: the re-audit, its files and its sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fairweight.cli import options as o

if TYPE_CHECKING:
    import pandas as pd

    from fairweight.auditing.answers import Answers
    from fairweight.auditing.audited import Progress
    from fairweight.auditing.mitigate.new_variant import NewVariant


@dataclass(frozen=True)
class Made:
    """A mitigation, before it is judged."""

    kind: str  # thresholds, overrides or cascade
    rule: Mapping[str, Any]  # as JSON
    tasks: Sequence[Answers]  # the rows on which it is judged
    variants: Sequence[Sequence[NewVariant]]  # by task
    explanations: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    notes: Sequence[str] = ()
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # further ones, as text


def judge_and_write(
    made: Made, context: typer.Context, values: dict[str, Any], progress: Progress
) -> tuple[Any, pd.DataFrame]:
    """Audit the new variants, write everything, and return the result and its changes."""
    import json
    from dataclasses import replace

    from fairweight.auditing.mitigate.new_variant import (
        prediction_table,
        training_rows,
        variants_with,
    )
    from fairweight.auditing.mitigate.reaudit import reaudit
    from fairweight.report.save import save
    from fairweight.report.tables import write_frames
    from fairweight.tables.write import atomic_directory

    first = made.tasks[0]
    pairs = [(new.name, new.origin) for new in made.variants[0]]
    table = prediction_table(made.tasks, made.variants)
    models = variants_with(first.variants_table, pairs, made.measured)
    again = reaudit(
        table,
        pairs,
        baseline=first.baseline,
        groups=first.groupings,
        positive=values["positive"],
        train=training_rows(made.tasks),
        variants=models,
        options={
            name: values[name]
            for name in ("alpha", "members", "n_boot", "min_group", "random_state")
        },
        command=o.shell_command(context),
        explanations=made.explanations,
        progress=progress,
    )
    result = replace(again.result, notes=tuple(dict.fromkeys((*again.result.notes, *made.notes))))
    progress("writing the report", 1, 1)
    target = atomic_directory(
        values["out"], completion=("predictions.parquet",), overwrite=values["overwrite"]
    )
    with target as folder:
        rule = json.dumps(made.rule, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / f"{made.kind}.json").write_text(rule + "\n", encoding="utf-8")
        for name, text in made.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        write_frames({**made.explanations, "mitigation": again.mitigation}, folder)
        table.to_parquet(folder / "predictions.parquet", index=False)
        if models is not None:
            models.to_parquet(folder / "variants.parquet", index=False)
        save(result, folder / "audit")
    return result, again.mitigation


def tell(made: Made, result: Any, changes: pd.DataFrame, values: dict[str, Any]) -> None:
    """Print whether it helped, who got worse, and the audit's own summary."""
    from rich.console import Console

    from fairweight.cli.verdict import reader_may_leave
    from fairweight.report.mitigation_sentences import mitigation_sentences
    from fairweight.report.terminal import show

    console = Console()
    with reader_may_leave():
        for sentence in (*mitigation_sentences(changes, made.kind), *made.notes):
            console.print(f"• {sentence}", markup=False, highlight=False)
        out = Path(values["out"])
        show(result, console, report=str(out / "audit" / "report.html"))
        told = f"Rule: {out / made.kind}.json; predictions: {out / 'predictions.parquet'}"
        console.print(told, markup=False, highlight=False, soft_wrap=True)
