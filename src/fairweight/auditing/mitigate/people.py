"""Labels from annotations: `annotations.csv`, or the database that `fairweight view` writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fairweight.auditing.answers import Answers
from fairweight.errors import InputError
from fairweight.tables.annotations.csv_file import NEEDED, read_csv
from fairweight.tables.annotations.human_labels import human_labels
from fairweight.tables.annotations.schema import APPLICATION
from fairweight.tables.annotations.verdict import Annotation
from fairweight.tables.canonical import canonical


def read_annotations(path: str) -> list[Annotation] | None:
    """What people said, or None for a file of another kind."""
    file = Path(path)
    try:
        with file.open("rb") as stream:
            head = stream.read(4096)
    except OSError:
        return None  # a pattern, or a file that the reader of tables complains about
    if head.startswith(b"SQLite format 3\0") and head[68:72] == APPLICATION.to_bytes(4, "big"):
        return _stored(file)
    header = head.partition(b"\n")[0].decode("utf-8", "replace").lstrip("\ufeff")
    columns = [name.strip(' "\r') for name in header.replace(";", ",").split(",")]
    return read_csv(file) if all(name in columns for name in NEEDED) else None


def labels_by_task(
    rows: Sequence[Annotation], path: str, tasks: Sequence[Answers]
) -> dict[str | None, dict[str, str]]:
    """Task → example → the label of most people."""
    several = tasks[0].task is not None
    found: dict[str | None, dict[str, str]] = {}
    for task, own in human_labels(rows).labels.items():
        if bool(task) != several:
            told = f"the task '{task}'" if task else "examples without a task"
            has = "several tasks" if several else "one task without a name"
            raise InputError(
                f"--labels {path} is about {told}, but the predictions have {has}; give the "
                "annotations of these predictions."
            )
        labels = found.setdefault(canonical(task) if several else None, {})
        labels |= {canonical(example) or "": label for example, label in own.items()}
    if not found:
        raise InputError(
            f"--labels {path} holds no label that most annotators stand for; judge examples with "
            "'fine', 'model_harmful' or 'label_wrong' and the right label."
        )
    return found


def people_notes(
    path: str,
    labels: Mapping[str | None, Mapping[str, str]] | None,
    overrides: Mapping[str, Mapping[str, str]],
) -> list[str]:
    """What annotations give no label for, and which labels a budget leaves out, in sentences."""
    told = []
    rows = read_annotations(path)
    if rows is not None:
        held = human_labels(rows)
        people = len({row.annotator for row in rows})
        told.append(
            f"Labels are those of {people} annotator{'s' if people != 1 else ''}; ties "
            f"({held.n_tied:,}) and examples without a label ({held.n_without:,}) give none."
        )
    given = sum(len(own) for own in (labels or {}).values())
    used = sum(len(own) for own in overrides.values())
    if used < given:
        told.append(
            f"Of {given:,} labels {used:,} are used: the others are of examples that are not "
            "asked about or not among the least sure ones of the budget; --budget 1 takes all."
        )
    return told


def _stored(file: Path) -> list[Annotation]:
    from fairweight.tables.annotations.store import AnnotationStore

    with AnnotationStore(file, read_only=True) as store:
        audits = store.audits()
        if len(audits) > 1:
            raise InputError(
                f"--labels {file} holds annotations of {len(audits)} audits "
                f"({', '.join(audits[:5])}); export those of one as annotations.csv in "
                "`fairweight view`, and give that file."
            )
        return store.current(audits[0]) if audits else []
