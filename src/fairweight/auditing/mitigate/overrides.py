"""Overrides: fixed labels for the examples of which the dense model is least sure.

Iofinova et al. 2023, section 4.2: where the dense model already amplifies bias, the most uncertain
examples of the dense model get a label that ships with the compressed model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.auditing.mitigate.apply_overrides import apply_overrides
from fairweight.auditing.mitigate.confidence import confidence, in_task
from fairweight.auditing.mitigate.curves import columns_of, draws_of_units, stepwise
from fairweight.auditing.mitigate.mitigation import NewVariant
from fairweight.auditing.prediction_matrix import Answer, Answers
from fairweight.errors import InputError
from fairweight.tables.annotation_store import APPLICATION, AnnotationStore
from fairweight.tables.annotations import NEEDED, Annotation, human_labels, read_csv
from fairweight.tables.canonical import canonical
from fairweight.tables.connection import Workspace, quote
from fairweight.tables.sources import open_source

KIND = "overrides"


@dataclass(frozen=True)
class OverrideTable:
    """Labels that replace predictions, by task ("" where there is one) and example."""

    budget: float  # share of each task's examples
    labels: str  # dense, or human
    overrides: Mapping[str, Mapping[str, str]]

    @property
    def suffix(self) -> str:
        """What is added to the name of a variant.

        >>> OverrideTable(0.1, "dense", {}).suffix, OverrideTable(0.025, "dense", {}).suffix
        ('+overrides-10', '+overrides-2.5')
        """
        return f"+overrides-{100 * self.budget:.6g}"

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "kind": KIND,
            "budget": self.budget,
            "labels": self.labels,
            "overrides": {task: dict(own) for task, own in self.overrides.items()},
        }

    @classmethod
    def from_json(cls, held: dict[str, Any]) -> OverrideTable:
        return cls(float(held["budget"]), str(held["labels"]), held["overrides"])


def uncertain_order(answers: Answers) -> NDArray[np.intp]:
    """Examples by the dense model's confidence, the least sure first; equals in their order."""
    return np.argsort(confidence(answers, answers.baseline, of_mean=True), kind="stable")


def n_within(budget: float, n: int) -> int:
    """How many of n examples a budget allows.

    >>> n_within(0.05, 100), n_within(0.05, 110), n_within(0.29, 100)
    (5, 5, 29)
    """
    return int(np.floor(budget * n + 1e-9))


def dense_labels(answers: Answers) -> Answer:
    """The dense members' most frequent answer; of equally frequent ones the first member's."""
    votes = answers.of(answers.baseline)
    number = np.array([(votes == vote).sum(axis=0) for vote in votes])
    chosen = np.argmax(number, axis=0)
    found: Answer = votes[chosen, np.arange(answers.n_examples)]
    return found


def human_codes(answers: Answers, labels: Mapping[str, str]) -> tuple[Answer, NDArray[np.bool_]]:
    """Labels of annotators as codes, and which examples have one."""
    assert answers.example_id is not None
    names = [canonical(name) or "" for name in answers.example_id]
    known = np.array([name in labels for name in names])
    where = in_task(answers.task)
    if not known.any():
        raise InputError(
            f"--labels holds no label for any of these {answers.n_examples:,} examples{where}; it "
            "is for other examples."
        )
    place = {name: i for i, name in enumerate(answers.classes)}
    strange = next((labels[n] for n in names if n in labels and labels[n] not in place), None)
    if strange is not None:
        raise InputError(
            f"--labels holds '{strange}'{where}, which is no class of these predictions; use "
            f"{', '.join(answers.classes[:10])}."
        )
    codes = np.array([place[labels[name]] if name in labels else 0 for name in names])
    return codes.astype(answers.label.dtype), known


def dense_amplification(answers: Answers, min_group: int = 10) -> dict[str, float]:
    """Worst-case bias amplification of the dense model by column, the mean over its members."""
    columns = columns_of(answers, min_group)
    nobody = np.ones(answers.n_examples, dtype=np.int64)
    drawn = draws_of_units(answers, 0, 0)
    found: dict[str, list[float]] = {}
    for own in answers.of(answers.baseline):
        ((curve, _),) = stepwise(answers, columns, own, own, [own], nobody, 1, drawn)
        for name, values in curve.amplification.items():
            found.setdefault(name, []).append(float(values[0, 0]))
    return {name: float(np.mean(values)) for name, values in found.items()}


def amplified_tasks(
    tasks: Sequence[Answers], column: str | None = None, min_group: int = 10
) -> tuple[str | None, ...]:
    """The tasks in which the dense model's bias amplification is above 0 (in some column)."""
    return tuple(
        answers.task
        for answers in tasks
        if any(
            value > 0
            for name, value in dense_amplification(answers, min_group).items()
            if column in (None, name)
        )
    )


def override_table(
    tasks: Sequence[Answers],
    budget: float,
    labels: Mapping[str | None, Mapping[str, str]] | None = None,
) -> OverrideTable:
    """The overrides of these tasks' least sure examples.

    Parameters
    ----------
    labels
        Task → example → label, from annotation; dense labels by default. Examples among the least
        sure that nobody labelled get no override.
    """
    if not 0 <= budget <= 1:
        raise InputError(f"--budget {budget:g} is no share of the examples; give 0 to 1.")
    found: dict[str, dict[str, str]] = {}
    for answers in tasks:
        assert answers.example_id is not None
        first = uncertain_order(answers)[: n_within(budget, answers.n_examples)]
        if labels is None:
            codes, known = dense_labels(answers), np.ones(answers.n_examples, dtype=np.bool_)
        else:
            codes, known = human_codes(answers, labels.get(answers.task, {}))
        names = np.array([*answers.classes, ""], dtype=object)
        found[answers.task or ""] = {
            str(answers.example_id[i]): str(names[codes[i]])
            for i in first
            if known[i] and codes[i] < len(answers.classes)
        }
    return OverrideTable(budget, "dense" if labels is None else "human", found)


def check_overrides(table: OverrideTable, tasks: Sequence[Answers]) -> list[str]:
    """Raise where no override is for these examples; notes on those that are for others."""
    ids = {a.task or "": {str(name) for name in _ids(a)} for a in tasks}
    notes = []
    for task, own in table.overrides.items():
        held = len(own.keys() & ids.get(task, set()))
        where = f" of the task '{task}'" if task else ""
        if own and not held:
            raise InputError(
                f"The override table is for other examples: none of its {len(own):,} overrides"
                f"{where} names an example of these predictions."
            )
        if held < len(own):
            notes.append(
                f"{len(own) - held:,} of {len(own):,} overrides{where} are for examples that are "
                "not in these predictions."
            )
    return notes


def apply_override_table(table: OverrideTable, answers: Answers, variant: str) -> NewVariant:
    """The answers of a variant's members with the overrides in place.

    Scores of two classes stay the model's own: an override says what, not how surely. With more
    classes the score is that of the override's class, where the model gives one.
    """
    place = {name: i for i, name in enumerate(answers.classes)}
    own = table.overrides.get(answers.task or "", {})
    prediction = answers.of(variant).copy()
    score = None if answers.score is None else answers.score[answers.rows(variant)].copy()
    vectors = None
    if answers.scores is not None and answers.n_label_classes > 2:
        vectors = answers.scores[answers.rows(variant)]
    for i, name in enumerate(_ids(answers)):
        label = apply_overrides(name, None, {"": own})
        if label is None:
            continue
        if label not in place:
            raise InputError(
                f"The override table holds '{label}', which is no class of these predictions."
            )
        prediction[:, i] = place[label]
        if score is not None and vectors is not None and label in answers.score_classes:
            score[:, i] = vectors[:, i, answers.score_classes.index(label)]
    return NewVariant(variant + table.suffix, variant, prediction, score)


def _ids(answers: Answers) -> list[Any]:
    if answers.example_id is None:
        raise InputError("Counts do not say which example is which; overrides need tables.")
    return [name.item() if hasattr(name, "item") else name for name in answers.example_id]


# Labels that people gave, and the list of examples that they should look at.


def read_labels(path: str, id: str, tasks: Sequence[Answers]) -> dict[str | None, dict[str, str]]:
    """Task → example → label, from annotations or a table (an identity, `label`, maybe `task`)."""
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
    parts = []
    for answers in tasks:
        sure = confidence(answers, answers.baseline, of_mean=True)
        first = uncertain_order(answers)[: n_within(budget, answers.n_examples)]
        dense = [answers.classes[code] if code < len(answers.classes) else None
                 for code in dense_labels(answers)[first]]  # fmt: skip
        frame = pd.DataFrame(
            {
                "example_id": [] if answers.example_id is None else answers.example_id[first],
                "rank": range(1, len(first) + 1),
                "confidence": sure[first].round(6),
                "dense_prediction": dense,
                "label": None,
            }
        )
        if answers.task is not None:
            frame.insert(1, "task", answers.task)
        parts.append(frame)
    text: str = pd.concat(parts, ignore_index=True).to_csv(index=False, lineterminator="\n")
    return text


# Labels from annotations: `annotations.csv`, or the database that `fairweight view` writes.


def read_annotations(path: str) -> list[Annotation] | None:
    """What people said, or None for a file of another kind."""
    file = Path(path)
    try:
        with file.open("rb") as stream:
            head = stream.read(4096)
    except OSError:
        return None  # a pattern, or a file that the reader of tables complains about
    if head.startswith(b"SQLite format 3\0") and head[68:72] == APPLICATION.to_bytes(4, "big"):
        with AnnotationStore(file, read_only=True) as store:
            audits = store.audits()
            if len(audits) > 1:
                raise InputError(
                    f"--labels {file} holds annotations of {len(audits)} audits "
                    f"({', '.join(audits[:5])}); export those of one as annotations.csv in "
                    "`fairweight view`, and give that file."
                )
            return store.current(audits[0]) if audits else []
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
            f"--labels {path} holds no label that most annotators agree on; judge examples with "
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
            f"{used:,} of {given:,} labels are used: the others are of examples that are not in "
            "the table, or not among the least sure ones of the budget; --budget 1 takes all."
        )
    return told
