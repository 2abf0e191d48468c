"""Exemplar scores of large populations, beside one look at their answers."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.lines import Line
from benchmarks.measure import Settings, interleaved, processor_seconds

TITLE = "Exemplars"
SETTING = (
    "30 + 30 members, 1,000,000 examples. Scores: the Taxicab distance, modal and unanimous "
    "exemplars and ties of every example. Ten classes, answers at random, which is the most work: "
    "beside summing the two uint8 arrays with numpy, one thread, processor time, in turns. "
    "1,000 classes: no array of examples × classes may be made, so memory is compared with "
    "half of one of bytes. Agreeing: members err on three tenths of the examples, as trained "
    "models do. Memory is what is held at a time beyond the answers themselves."
)
EXAMPLES, MEMBERS, FEW, MANY = 1_000_000, 30, 10, 1_000
TARGET, LIMIT_MB = 2.5, 1000.0


def run(settings: Settings) -> list[Line]:
    rows = settings.rows_or(EXAMPLES)
    first, second = random_answers(rows)
    few, many = trained_answers(rows, FEW), trained_answers(rows, MANY)
    taken = interleaved(
        {
            "sums": lambda: first.sum() + second.sum(),
            "scores": lambda: scores(first, second),
            "few": lambda: scores(*few),
            "many": lambda: scores(*many),
        },
        2 * settings.rounds + 1,
        processor_seconds,
    )
    half = rows * MANY / 2 / 2**20
    return [
        Line("10 classes: scores", taken["scores"], "sums of both arrays", taken["sums"],
             target=TARGET),
        Line("10 classes: memory", extra_mb(first, second), "limit", LIMIT_MB, "MB", target=1.0),
        Line("10 classes, agreeing: scores", taken["few"], "at random", taken["scores"]),
        Line("1,000 classes: scores", taken["many"], "10 classes, agreeing", taken["few"]),
        Line("1,000 classes: memory", extra_mb(*many), "half of examples × classes", half, "MB",
             target=1.0),
    ]  # fmt: skip


def extra_mb(first: NDArray[Any], second: NDArray[Any]) -> float:
    """The most memory that scoring holds at a time, beyond the answers."""
    tracemalloc.start()
    try:
        scores(first, second)
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def scores(first: NDArray[Any], second: NDArray[Any]) -> object:
    from fairweight.auditing.exemplars.votes import TieRule, disagreement

    return disagreement(first, second, TieRule(), np.random.default_rng(0))


def random_answers(rows: int) -> list[NDArray[np.uint8]]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, FEW, (MEMBERS, rows), dtype=np.uint8) for _ in range(2)]


def trained_answers(rows: int, classes: int) -> list[NDArray[Any]]:
    """Members that agree on seven tenths, and elsewhere err in one of eight ways."""
    rng = np.random.default_rng(0)
    kind = np.uint8 if classes < 2**8 - 1 else np.uint16
    label = rng.integers(0, classes, rows)
    hard = np.flatnonzero(rng.random(rows) < 0.3)
    sides = []
    for _ in range(2):
        side = np.empty((MEMBERS, rows), dtype=kind)
        for member in side:
            member[:] = label
            wrong = hard[rng.random(len(hard)) < 0.4]
            member[wrong] = (label[wrong] + rng.integers(1, 9, len(wrong))) % classes
        sides.append(side)
    return sides
