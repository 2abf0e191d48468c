"""A mitigated variant: new answers of the members of an old one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answer, Answers
from fairweight.errors import InputError, UnknownNameError
from fairweight.tables.canonical import canonical

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class NewVariant:
    """The answers of one task after a mitigation, member by member."""

    name: str  # int8+thresholds
    origin: str  # int8
    prediction: Answer  # (members, n) into the classes of the answers
    score: NDArray[np.float32] | None = None  # (members, n)


def chosen_variants(
    answers: Answers, wanted: Sequence[str] | None, what: str = "The variant"
) -> tuple[str, ...]:
    """The variants to mitigate: those named, else all compressed ones."""
    if wanted is None:
        if not answers.variants:
            raise InputError("There is no variant but the baseline; give a compressed one too.")
        return answers.variants
    known = (*answers.variants, answers.baseline)
    for name in wanted:
        if name not in known:
            raise UnknownNameError(what, name, known)
    return tuple(dict.fromkeys(wanted))


def prediction_table(
    tasks: Sequence[Answers], made: Sequence[Sequence[NewVariant]]
) -> pd.DataFrame:
    """A long prediction table of the baseline, the origins and the new variants.

    Columns: example_id, task (if there are any), variant, seed, label, prediction, score (if
    there are any), cluster, weight, and the groups. `fairweight audit` reads it as it is.
    """
    import pandas as pd

    return pd.concat(
        [_one_task(answers, own) for answers, own in zip(tasks, made, strict=True)],
        ignore_index=True,
    )


def training_rows(tasks: Sequence[Answers]) -> pd.DataFrame | None:
    """The training table of these answers, with the names of the columns of `prediction_table`."""
    import pandas as pd

    parts = [
        answers.train if answers.task is None else answers.train.assign(task=answers.task)
        for answers in tasks
        if answers.train is not None
    ]
    return pd.concat(parts, ignore_index=True) if parts else None


def variants_with(
    table: pd.DataFrame | None,
    pairs: Sequence[tuple[str, str]],
    measured: Mapping[str, Mapping[str, float]] | None = None,
) -> pd.DataFrame | None:
    """The variants table with a row for every member of a new variant, derived from its origin.

    Parameters
    ----------
    pairs
        New names with their origins. Neither thresholds nor overrides change size or speed, so
        what was measured of the origin holds.
    measured
        New name → column → what holds instead (a cascade's latency).
    """
    if table is None:
        return None
    import pandas as pd

    parts = [table]
    for name, origin in pairs:
        own = table[table["variant"].map(canonical) == origin].assign(variant=name)
        if "parent" in own and own["parent"].notna().any():
            own = own.assign(parent=origin)  # of the same seed
        if "parent_variant" in own and own["parent_variant"].notna().any():
            own = own.assign(parent_variant=origin, parent_seed=own.get("seed"))
        parts.append(own.assign(**dict((measured or {}).get(name, {}))))
    return pd.concat([part for part in parts if len(part)], ignore_index=True)


def _one_task(answers: Answers, made: Sequence[NewVariant]) -> pd.DataFrame:
    import pandas as pd

    names = np.array([*answers.classes, None], dtype=object)
    shared = {"example_id": answers.example_id, "label": names[answers.label]}
    if answers.task is not None:
        shared["task"] = np.full(answers.n_examples, answers.task, dtype=object)
    if answers.cluster is not None:
        shared["cluster"] = np.array(answers.cluster_names, dtype=object)[answers.cluster]
    if answers.weight is not None:
        shared["weight"] = answers.weight
    for column in answers.columns:
        shared[column.name] = np.array(column.values, dtype=object)[column.code]
    frame = pd.DataFrame(shared)
    parts = []
    for variant in dict.fromkeys((answers.baseline, *(new.origin for new in made))):
        span = answers.rows(variant)
        score = None if answers.score is None else answers.score[span]
        parts += _members(frame, answers, variant, variant, answers.of(variant), score, names)
    for new in made:
        parts += _members(frame, answers, new.name, new.origin, new.prediction, new.score, names)
    return pd.concat(parts, ignore_index=True)


def _members(
    frame: pd.DataFrame,
    answers: Answers,
    name: str,
    origin: str,
    prediction: Answer,
    score: NDArray[np.float32] | None,
    names: NDArray[np.object_],
) -> list[pd.DataFrame]:
    made = []
    for row, member in enumerate(answers.members[answers.rows(origin)]):
        part = frame.assign(variant=name, seed=member.seed, prediction=names[prediction[row]])
        if score is not None:
            part = part.assign(score=score[row].astype(np.float64))
        made.append(part)
    return made
