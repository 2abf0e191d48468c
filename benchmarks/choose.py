"""Choosing among many variants beside drawing the same examples with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.lines import Line
from benchmarks.measure import Settings, interleaved, seconds

TITLE = "Choosing"
SETTING = (
    "200 variants, 100,000 examples, 10 classes, a column of 8 groups, 2,000 replicates with one "
    "draw of examples for all variants: accuracy, lowest group accuracy and size as objectives, a "
    "requirement on the worst shift of a group; frontier, probabilities, shrinking. Beside it "
    "numpy draws as many examples and computes the accuracies of all variants and nothing else, "
    "from 20 replicates, multiplied. Wall time, from counted answers."
)
EXAMPLES, VARIANTS, CLASSES, GROUPS = 100_000, 200, 10, 8
LIMIT = 10.0
SAMPLE = 20


def run(settings: Settings) -> list[Line]:
    cube = made_cube(settings.rows_or(EXAMPLES), VARIANTS if settings.full_size else 8)
    right = cube.prediction == cube.label[:, None]
    taken = interleaved(
        {
            "choose": lambda: chosen(cube, settings.n_boot, ["accuracy", "worst_group", "size"]),
            "accuracy": lambda: chosen(cube, settings.n_boot, ["accuracy"]),
            "few": lambda: chosen(cube, max(20, settings.n_boot // 10), ["accuracy"]),
            "numpy": lambda: accuracies_by_numpy(right, SAMPLE),
        },
        settings.rounds,
        seconds,
    )
    peer = taken["numpy"] * settings.n_boot / SAMPLE
    return [
        Line("three objectives", taken["choose"], "limit", LIMIT, target=1.0),
        Line("three objectives", taken["choose"], "numpy, accuracies alone", peer, faster=True),
        Line("accuracy alone", taken["accuracy"], "three objectives", taken["choose"]),
        Line("a tenth of the replicates", taken["few"], "accuracy alone", taken["accuracy"]),
    ]


def made_cube(rows: int, variants: int) -> Any:
    """Answers that err on the same hard examples, as models do; 6 to 12 % of them wrong."""
    from fairweight.auditing.counts.cube import Cube, CubeMember, GroupColumn, compact

    rng = np.random.default_rng(0)
    label = rng.integers(0, CLASSES, rows).astype(np.int32)
    hard = rng.beta(0.3, 5, rows)
    prediction = np.empty((rows, variants), dtype=np.int32)
    for v in range(variants):
        wrong = rng.random(rows) < hard * (1 + v / variants)
        other = (label + rng.integers(1, CLASSES, rows)) % CLASSES
        prediction[:, v] = np.where(wrong, other, label)
    groups = rng.integers(0, GROUPS, rows).astype(np.int32)
    return compact(
        Cube(
            members=tuple(CubeMember(f"v{v}") for v in range(variants)),
            label_classes=tuple(str(c) for c in range(CLASSES)),
            other_classes=(),
            columns=(GroupColumn("group", tuple("abcdefgh"), groups),),
            tasks=(),
            label=label,
            prediction=prediction,
            count=np.ones(rows, dtype=np.int64),
            n_examples=rows,
        )
    )


def chosen(cube: Any, n_boot: int, objectives: list[str]) -> Any:
    import pandas as pd

    from fairweight.auditing.choose.choice import ChoiceData, Wishes, choose, read_wishes
    from fairweight.auditing.choose.terms import Setting
    from fairweight.auditing.compare.comparison import Options

    names = [member.variant for member in cube.members]
    table = pd.DataFrame({"variant": names, "size": np.linspace(2.0, 1.0, len(names))})
    asked = read_wishes(Wishes(objectives, ["worst_group_shift>=-0.5"]), table)
    setting = Setting("v0", ("group",), {None: None}, Options(n_boot=n_boot))
    return choose(ChoiceData(cube, setting, ()), asked, table)


def accuracies_by_numpy(right: Any, n_boot: int) -> Any:
    rng = np.random.default_rng(0)
    n = len(right)
    return [right[rng.integers(0, n, n)].mean(axis=0) for _ in range(n_boot)]
