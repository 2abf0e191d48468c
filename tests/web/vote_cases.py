"""Random small answers, and what they say in the plainest way: one row per example."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from fairweight.auditing.exemplars.exemplars import Exemplars, find
from fairweight.auditing.prediction_matrix import Answers, from_arrays
from fairweight.web.votes.index import VoteIndex, open_index
from fairweight.web.votes.writer import write_index


@cache
def random_answers(seed: int) -> Answers:
    """Up to 40 examples, 2 to 4 classes, 3 variants of one or several members, some abstentions."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 41))
    two = bool(rng.integers(2))
    names = ["no", "yes"] if two else ["ant", "bee", "cat", "dog"][: int(rng.integers(3, 5))]
    label = rng.integers(len(names), size=n)
    label[: len(names)] = np.arange(len(names))[:n]  # every class occurs
    one_pair = rng.random() < 0.3
    given = {}
    for variant in ("dense", "small", "tiny"):
        members = 1 if one_pair else int(rng.integers(1, 5))
        right = rng.random((n, members)) < 0.6
        given[variant] = np.array(names)[
            np.where(right, label[:, None], rng.integers(len(names), size=(n, members)))
        ]
    score = None
    if rng.random() < 0.8:
        score = {
            name: rng.random(values.shape).astype(np.float32) for name, values in given.items()
        }
        for values in score.values():
            values[rng.random(values.shape) < 0.1] = np.nan
    answers = from_arrays(
        np.array(names)[label],
        given,
        groups={
            "sex": rng.choice(["f", "m"], size=n).tolist(),
            "age": [None if rng.random() < 0.2 else "old" for _ in range(n)],
        },
        numbers={"size": rng.random(n)},
        score=score,
        ids=[f"e{i:03}" for i in rng.permutation(1000)[:n]],
    )
    return _sorted(answers, rng)


def _sorted(answers: Answers, rng: np.random.Generator) -> Answers:
    """In the order of their identities, as tables are read, and with a few abstentions."""
    assert answers.example_id is not None
    order = np.argsort(answers.example_id)
    prediction = answers.prediction.copy()
    prediction[rng.random(prediction.shape) < 0.05] = len(answers.classes)
    return replace(
        answers,
        label=answers.label[order],
        prediction=prediction[:, order],
        example_id=answers.example_id[order],
        columns=tuple(replace(c, code=c.code[order]) for c in answers.columns),
        numbers={name: values[order] for name, values in answers.numbers.items()},
        score=None if answers.score is None else answers.score[:, order],
    )


_FOUND: dict[int, Exemplars] = {}


def found_in(answers: Answers) -> Exemplars:
    """The exemplars as `fairweight exemplars` finds them; random answers are looked at once."""
    if id(answers) not in _FOUND:  # `random_answers` keeps them, so an id stays theirs
        _FOUND[id(answers)] = find(answers)
    return _FOUND[id(answers)]


def as_index(answers: Answers, folder: Path) -> VoteIndex:
    write_index([answers], folder / "index")
    return open_index(folder / "index")


def as_frame(answers: Answers) -> pd.DataFrame:
    """One row per example; columns `answer VARIANT SEED`, `modal VARIANT`, `kind VARIANT`, …"""
    names = (*answers.classes, None)
    frame = pd.DataFrame({"id": answers.example_id, "label": [names[c] for c in answers.label]})
    for column in answers.columns:
        frame[column.name] = [column.values[code] for code in column.code]
    for row, member in enumerate(answers.members):
        key = f"{member.variant} {member.seed}"
        codes = answers.prediction[row]
        frame[f"answer {key}"] = pd.Series([names[c] for c in codes], dtype=object)
        frame[f"score {key}"] = np.nan if answers.score is None else answers.score[row]
    found = found_in(answers)
    for variant in (answers.baseline, *answers.variants):
        given = answers.of(variant)
        modal = [_first_modal(column) for column in given.T.tolist()]
        frame[f"modal {variant}"] = pd.Series([names[c] for c in modal], dtype=object)
        scores = frame[[f"score {variant} {seed}" for seed in range(len(given))]]
        frame[f"mean {variant}"] = scores.astype(np.float64).mean(axis=1)
    for (variant, kind, percentile), mask in found.masks.items():
        name = kind if percentile is None else f"{kind}-{percentile:g}"
        frame[f"kind {variant} {name}"] = mask
    return frame


def _first_modal(codes: list[int]) -> int:
    counted = Counter(codes)
    return min(code for code in counted if counted[code] == max(counted.values()))
