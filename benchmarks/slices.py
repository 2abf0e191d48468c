"""The search for slices beside counting the same tables with pandas."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.lines import Line
from benchmarks.measure import Settings, interleaved, processor_seconds

TITLE = "Slices that pay"
SETTING = (
    "1,000,000 examples, 20 columns of five levels, one pair of models with 4 % lost and 2 % "
    "gained answers; one pair of levels pays 15 points more. Search over all levels and all pairs "
    "of them (190 tables, 4,850 slices): counts, tests, correction, list and confirmation. Beside "
    "it pandas (groupby over categories) and numpy (bincount over all examples) count the same 190 "
    "tables of examples, lost and gained answers and test nothing. Processor time."
)
ROWS, COLUMNS, LEVELS = 1_000_000, 20, 5
LIMIT = 10.0


def run(settings: Settings) -> list[Line]:
    from fairweight.auditing.explain.slices.search import find_slices

    answers = made_answers(settings.rows_or(ROWS))
    frame = as_frame(answers)
    taken = interleaved(
        {
            "search": lambda: find_slices(answers, "small"),
            "single": lambda: find_slices(answers, "small", pairs=False),
            "pandas": lambda: counted_by_pandas(frame),
            "numpy": lambda: counted_by_numpy(answers),
        },
        settings.rounds,
        processor_seconds,
    )
    pandas, numpy = "pandas, counting alone", "numpy, counting alone"
    return [
        Line("search over levels and pairs", taken["search"], "limit", LIMIT, target=1.0),
        Line("search over levels and pairs", taken["search"], pandas, taken["pandas"],
             faster=True),
        Line("search over levels and pairs", taken["search"], numpy, taken["numpy"], faster=True),
        Line("search over levels", taken["single"], "the whole search", taken["search"]),
    ]  # fmt: skip


def made_answers(rows: int) -> Any:
    from fairweight.auditing.counts.cube import CubeMember, GroupColumn
    from fairweight.auditing.prediction_matrix import Answers

    rng = np.random.default_rng(0)
    codes = [rng.integers(0, LEVELS, rows).astype(np.int32) for _ in range(COLUMNS)]
    pays = (codes[3] == 0) & (codes[7] == 0)
    draw = rng.random(rows)
    lost, gained = draw < 0.04 + 0.15 * pays, draw > 0.98
    levels = tuple(str(level) for level in range(LEVELS))
    return Answers(
        label=np.zeros(rows, dtype=np.uint8),
        prediction=np.stack([gained, lost]).astype(np.uint8),
        members=(CubeMember("dense", "0"), CubeMember("small", "0")),
        classes=("0", "1"),
        n_label_classes=1,
        baseline="dense",
        variants=("small",),
        columns=tuple(GroupColumn(f"c{i}", levels, code) for i, code in enumerate(codes)),
    )


def as_frame(answers: Any) -> Any:
    import pandas as pd

    frame = pd.DataFrame(
        {c.name: pd.Categorical.from_codes(c.code, list(c.values)) for c in answers.columns}
    )
    return frame.assign(gained=answers.prediction[0], lost=answers.prediction[1])


def counted_by_pandas(frame: Any) -> list[Any]:
    names = [name for name in frame if name not in ("lost", "gained")]
    return [
        frame.groupby(list(pair), observed=True)[["lost", "gained"]].agg(["size", "sum"])
        for pair in combinations(names, 2)
    ]


def counted_by_numpy(answers: Any) -> list[Any]:
    gained, lost = answers.prediction.astype(np.float64)
    return [
        [np.bincount(cell), np.bincount(cell, lost), np.bincount(cell, gained)]
        for first, second in combinations(answers.columns, 2)
        for cell in (first.code * len(second.values) + second.code,)
    ]
