"""Curves of overrides beside the same numbers by plain counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.lines import Line
from benchmarks.measure import Settings, interleaved, processor_seconds

TITLE = "Override curves"
SETTING = (
    "20,000 examples, 40 attributes, two group columns, one dense and one compressed model: "
    "accuracy, bias amplification and worst-group shift at 20 budgets and 0, with human and with "
    "dense labels, 200 bootstrap draws, and a random choice of equal size (20 draws). Beside it "
    "numpy computes accuracy and the share of positive predictions by group at the same budgets, "
    "for both kinds of labels, once and without draws or intervals. Processor time."
)
ROWS, ATTRIBUTES = 20_000, 40
LIMIT = 2.0


def run(settings: Settings) -> list[Line]:
    from fairweight.auditing.mitigate.override_curves import override_curves

    tasks = [made_answers(settings.rows_or(ROWS), seed) for seed in range(ATTRIBUTES)]
    draws = min(settings.n_boot, 200)
    taken = interleaved(
        {
            "curves": lambda: override_curves(tasks, ["small"], n_boot=draws),
            "few": lambda: override_curves(tasks, ["small"], n_boot=20),
            "one": lambda: override_curves(tasks[:1], ["small"], n_boot=draws),
            "numpy": lambda: [counted_by_numpy(answers) for answers in tasks],
        },
        settings.rounds,
        processor_seconds,
    )
    return [
        Line("curves of 40 attributes", taken["curves"], "limit", LIMIT, target=1.0),
        Line("curves of 40 attributes", taken["curves"], "numpy, no intervals", taken["numpy"]),
        Line("the same with 20 draws", taken["few"], "with 200", taken["curves"]),
        Line("one attribute", taken["one"], "forty", taken["curves"]),
    ]


def made_answers(rows: int, seed: int) -> Any:
    from dataclasses import replace

    from fairweight.auditing.counts.cube import CubeMember, GroupColumn
    from fairweight.auditing.prediction_matrix import Answers

    rng = np.random.default_rng(seed)
    sex, age = rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    label = (rng.random(rows) < 0.2 + 0.2 * sex).astype(np.uint8)
    dense = 2.0 * label - 1 + rng.normal(size=rows) + 0.3 * sex
    small = dense + 0.7 * rng.normal(size=rows) + 0.3 * sex
    logits = np.stack([dense, small])
    made = Answers(
        label=label,
        prediction=(logits > 0).astype(np.uint8),
        members=(CubeMember("dense", "0"), CubeMember("small", "0")),
        classes=("0", "1"),
        n_label_classes=2,
        baseline="dense",
        variants=("small",),
        example_id=np.arange(rows),
        columns=(
            GroupColumn("sex", ("f", "m"), sex.astype(np.int32)),
            GroupColumn("age", ("old", "young"), age.astype(np.int32)),
        ),
        groupings=("sex", "age"),
        score=(1 / (1 + np.exp(-2 * logits))).astype(np.float32),
        positive=1,
    )
    return replace(made, task=f"attribute {seed}")


def counted_by_numpy(answers: Any) -> list[Any]:
    order = np.argsort(np.abs(answers.score[0] - 0.5), kind="stable")
    found = []
    for other in (answers.prediction[0], answers.label):
        for budget in range(21):
            answer = answers.prediction[1].copy()
            first = order[: len(order) * budget // 100]
            answer[first] = other[first]
            found.append((answer == answers.label).mean())
            for column in answers.columns:
                found.append(np.bincount(column.code, answer))
    return found
