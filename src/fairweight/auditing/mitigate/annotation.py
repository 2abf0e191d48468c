"""Labels that people gave, and the list of examples that they should look at."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from fairweight.auditing.answers import Answers
from fairweight.auditing.mitigate.confidence import mean_confidence
from fairweight.auditing.mitigate.overrides import dense_labels, n_within, uncertain_order
from fairweight.errors import InputError
from fairweight.tables.canonical import canonical


def read_labels(path: str, id: str, tasks: Sequence[Answers]) -> dict[str | None, dict[str, str]]:
    """Task → example → label, from annotations or a table (an identity, `label`, maybe `task`)."""
    from fairweight.auditing.mitigate.people import labels_by_task, read_annotations
    from fairweight.tables.connection import Workspace
    from fairweight.tables.sources import open_source
    from fairweight.tables.sql import quote

    if (said := read_annotations(path)) is not None:
        return labels_by_task(said, path, tasks)
    several = tasks[0].task is not None
    wanted = [id, "label", *(["task"] if several else [])]
    with closing(Workspace()) as workspace:
        table = open_source(workspace, path)
        for name in wanted:
            if name not in table.columns:
                raise InputError(
                    f"--labels {table.shown} has no column '{name}'; it needs {', '.join(wanted)}."
                )
        rows = workspace.connection.execute(
            f"SELECT {', '.join(quote(name) for name in wanted)} FROM {quote(table.view)}"
        ).fetchall()
    found: dict[str | None, dict[str, str]] = {}
    for example, label, *task in rows:
        text = canonical(label)
        if text is None:
            continue  # not looked at yet
        own = found.setdefault(canonical(task[0]) if task else None, {})
        key = canonical(example) or ""
        if own.get(key, text) != text:
            raise InputError(
                f"--labels gives the example '{key}' two labels, '{own[key]}' and '{text}'; give "
                "it one."
            )
        own[key] = text
    if not found:
        raise InputError(
            f"--labels {table.shown} holds no label: its column 'label' is empty; fill in the rows "
            "that people looked at."
        )
    return found


def to_annotate(tasks: Sequence[Answers], budget: float) -> str:
    """CSV of the least sure examples in their order, with an empty column `label` to fill in."""
    import pandas as pd

    parts = []
    for answers in tasks:
        first = uncertain_order(answers)[: n_within(budget, answers.n_examples)]
        dense = [answers.classes[code] if code < len(answers.classes) else None
                 for code in dense_labels(answers)[first]]  # fmt: skip
        frame = pd.DataFrame(
            {
                "example_id": [] if answers.example_id is None else answers.example_id[first],
                "rank": range(1, len(first) + 1),
                "confidence": mean_confidence(answers, answers.baseline)[first].round(6),
                "dense_prediction": dense,
                "label": None,
            }
        )
        if answers.task is not None:
            frame.insert(1, "task", answers.task)
        parts.append(frame)
    text: str = pd.concat(parts, ignore_index=True).to_csv(index=False, lineterminator="\n")
    return text
