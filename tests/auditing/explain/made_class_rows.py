"""Tables of class rows with a known truth."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from fairweight.auditing.explain.class_rows import quartile

# The levels of the paper's table: 7 data sets, 4 architectures, 2 treatments, 7 techniques.
DATASETS = ("cifar-10", "cifar-100", "emnist", "fashionmnist", "kmnist", "mnist", "svhn")
MODELS = ("alexnet", "lenet", "resnet18", "vgg11")
TREATMENTS = ("finetune", "rewind")
TECHNIQUES = (
    "global_unstructured", "l1_structured", "l1_unstructured", "l2_structured", "linf_structured",
    "random_structured", "random_unstructured",
)  # fmt: skip


def made_class_rows(
    *,
    datasets: tuple[str, ...] = DATASETS[:3],
    models: tuple[str, ...] = MODELS[:2],
    treatments: tuple[str, ...] = TREATMENTS,
    techniques: tuple[str, ...] = TECHNIQUES[:3],
    seeds: int = 3,
    sparsities: tuple[float, ...] = (0.2, 0.5, 0.8),
    classes: int = 4,
    imbalance: float = 0.0,
    entropy: float = 0.0,
    noise: float = 0.03,
    root_noise: float = 0.0,
    class_noise: float = 0.0,
    random_state: int = 0,
) -> pd.DataFrame:
    """A full factorial: accuracy falls with sparsity, and with the planted slopes.

    Parameters
    ----------
    root_noise
        Spread of what each lineage root does to each of its classes, in all its pruned models.
    class_noise
        Spread of what a class of a data set does in the models of all roots.
    """
    rng = np.random.default_rng(random_state)
    own = {
        (dataset, c): (rng.normal(0, 0.05), rng.uniform(2, 6), rng.normal(0, class_noise or 1e-12))
        for dataset in datasets
        for c in range(classes)
    }
    lines: list[dict[str, Any]] = []
    for dataset, model, seed in product(datasets, models, range(seeds)):
        for c in range(classes):
            share, bits, of_class = own[dataset, c]
            start = float(rng.uniform(0.7, 0.95))
            luck = rng.normal(0, root_noise) if root_noise else 0.0
            for treatment, technique, sparsity in product(treatments, techniques, sparsities):
                mean = start - 0.05 * np.exp(sparsity) + imbalance * share + entropy * bits
                lines.append(
                    {
                        "dataset": dataset,
                        "model": model,
                        "weight_treatment": treatment,
                        "pruning_technique": technique,
                        "sparsity": sparsity,
                        "seed": str(seed),
                        "root": f"{dataset}/{model}/{seed}",
                        "class": str(c),
                        "accuracy": mean + luck + of_class + rng.normal(0, noise),
                        "accuracy0": start,
                        "imbalance": share,
                        "class_entropy": bits,
                        "n": 100,
                    }
                )
    rows = pd.DataFrame(lines)
    rows["accuracy"] = rows["accuracy"].clip(0.01, 0.99)
    rows["accuracy0_quartile"] = quartile(rows["accuracy0"].to_numpy())
    return rows
