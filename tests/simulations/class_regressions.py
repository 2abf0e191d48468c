"""How often regressions over classes find what is not there, and what is."""

from __future__ import annotations

import numpy as np

from fairweight.auditing.explain.class_regression import explain_classes

from ..auditing.explain.made_class_rows import TECHNIQUES, made_class_rows
from .measured import Figures, Share, share

TABLES = 100
LEVEL = 0.05
TESTS = {
    "ols-hac": "p_value",
    "ols-cluster": "p_value",
    "wild bootstrap": "p_wild",
    "ols-two-way": "p_value",
    "glm-cluster": "p_value",
}
WORLDS: dict[str, dict[str, float]] = {
    "every row by itself": {},
    "each root has its own luck with each class": {"root_noise": 0.05},
    "some classes are harder for all roots": {"class_noise": 0.05},
    "both": {"root_noise": 0.05, "class_noise": 0.05},
}
PLANTED = {"root_noise": 0.05, "class_noise": 0.05, "imbalance": 1.0, "entropy": -0.04}


def rejections(truth: dict[str, float], tables: int = TABLES) -> dict[str, Share]:
    """Share of 5 % tests of imbalance and entropy that reject, two-sided.

    Four data sets with ten classes each, one architecture, three seeds (12 lineage roots), three
    techniques, both treatments, three sparsities: 2,160 rows.
    """
    found: dict[str, list[np.ndarray]] = {name: [] for name in TESTS}
    for number in range(tables):
        rows = made_class_rows(
            datasets=("fashionmnist", "kmnist", "mnist", "svhn"),
            models=("lenet",),
            techniques=TECHNIQUES[:3],
            sparsities=(0.3, 0.6, 0.9),
            classes=10,
            random_state=number,
            **truth,
        )
        made = explain_classes(rows, n_boot=399, random_state=number).coefficients
        tested = made[made["term"].isin(("imbalance", "class_entropy"))]
        for name, column in TESTS.items():
            fit = "ols-cluster" if column == "p_wild" else name
            found[name].append((tested.loc[tested["fit"] == fit, column] <= LEVEL).to_numpy())
    return {name: share(values) for name, values in found.items()}


def class_regression() -> Figures:
    rows = [(world, *rejections(truth).values()) for world, truth in WORLDS.items()]
    rows.append(("both, with slopes of 1 and −.04", *rejections(PLANTED).values()))
    return Figures(
        "class-regression",
        ("what rows share", *(f"`{name}`" if "-" in name else name for name in TESTS)),
        rows,
        note=f"{TABLES} tables each, two tests at 5 % in each; seeds 0 to {TABLES - 1}.",
    )
