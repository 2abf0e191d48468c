"""Answers on some of the rows, and two parts that share no example and no cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairweight.auditing.answers import Answers
from fairweight.auditing.counts.cube import GroupColumn
from fairweight.auditing.streams import stream
from fairweight.errors import InputError


def some_rows(answers: Answers, keep: NDArray[np.bool_]) -> Answers:
    """The answers on the rows where `keep` is true."""
    cluster, names = answers.cluster, answers.cluster_names
    if cluster is not None:
        used, cluster = np.unique(cluster[keep], return_inverse=True)
        names = tuple(names[i] for i in used) if names else ()
    return replace(
        answers,
        label=answers.label[keep],
        prediction=answers.prediction[:, keep],
        example_id=None if answers.example_id is None else answers.example_id[keep],
        columns=tuple(GroupColumn(c.name, c.values, c.code[keep]) for c in answers.columns),
        numbers={name: values[keep] for name, values in answers.numbers.items()},
        texts={name: values[keep] for name, values in answers.texts.items()},
        cluster=None if cluster is None else cluster.astype(np.int64),
        cluster_names=names,
        weight=None if answers.weight is None else answers.weight[keep],
        score=None if answers.score is None else answers.score[:, keep],
        scores=None if answers.scores is None else answers.scores[:, keep],
    )


def same_examples(tasks: Sequence[Answers]) -> bool:
    """Whether all tasks speak of the same examples, in the same order."""
    ids = [np.asarray(answers.example_id) for answers in tasks]
    return all(np.array_equal(own, ids[0]) for own in ids)


def two_parts(tasks: Sequence[Answers], random_state: int) -> tuple[list[Answers], list[Answers]]:
    """One half of the examples (of the clusters) to choose on, the other to judge on."""
    first = tasks[0]
    unit = np.arange(first.n_examples) if first.cluster is None else first.cluster
    n_units = int(unit.max()) + 1
    if n_units < 2:
        raise InputError(
            "There is one cluster only, which cannot be divided into rows to choose on and rows to "
            "judge on; give a validation table (--validation)."
        )
    chosen = np.zeros(n_units, dtype=np.bool_)
    order = stream(random_state, "choose and judge").permutation(n_units)
    chosen[order[: n_units // 2]] = True
    keep = chosen[unit]
    return [some_rows(a, keep) for a in tasks], [some_rows(a, ~keep) for a in tasks]
