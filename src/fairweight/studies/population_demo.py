"""Real populations in a minute: small CNNs of digits trained with several seeds, and children.

Every dense member has pruned children and an int8 one, each written as `fairweight train` and
`fairweight compress` write models. The files are then asked: int8 runs in ONNX Runtime. All members
predict the same held-out examples; a member's seed decides its first weights and the order of its
training, nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairweight.studies.digit_tables import DemoTables, check_whole, load
from fairweight.studies.population_recipe import INT8, INT8_STATIC, PRUNING, Recipe
from fairweight.studies.processes import in_processes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Family:
    """A dense member and its children: what they answer, and what was measured of them."""

    predictions: pd.DataFrame
    measured: tuple[dict[str, Any], ...]  # rows of the variants table


def populations(
    recipe: Recipe,
    models: Path,
    *,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DemoTables:
    """Train dense members on one half of the digits, compress each, and predict the other half.

    Parameters
    ----------
    models
        A folder for the models: `dense/0`, `pruned-80/0`, `int8/0.onnx`, …
    workers
        Processes, by default one per core; the predictions do not depend on them.
    progress
        Called with the number of families that are done, and of all.

    Returns
    -------
    DemoTables
        The variants table names the parents.
    """
    import pandas as pd

    check_whole("members", recipe.members, least=1)
    halves = load(recipe.seed)  # before any process is started: a wrong seed is told at once
    # Not seed + member: members of neighbouring seeds would be the same models.
    seeds = range(recipe.seed * recipe.members, (recipe.seed + 1) * recipe.members)
    jobs = [partial(family, recipe, seed, models) for seed in seeds]
    families = in_processes(jobs, workers or os.cpu_count() or 1, progress)
    return halves.tables(
        pd.concat([made.predictions for made in families], ignore_index=True),
        pd.DataFrame([row for made in families for row in made.measured]),
    )


def family(recipe: Recipe, seed: int, models: Path) -> Family:
    """Train one dense member, compress it, and ask the files that were written."""
    from fairweight.lab.make.compressed import compress_model
    from fairweight.lab.make.trained import train_model
    from fairweight.lab.predict import predict
    from fairweight.lab.timing import torch_threads

    own = str(seed)
    with torch_threads(1):  # models this small are slower on several
        training, finetuning = (
            replace(spec, seed=seed) for spec in (recipe.training, recipe.finetuning)
        )
        dense = train_model(recipe.data, recipe.model, training, models / "dense" / own)
        made = [dense]
        for name, spec in recipe.pruning.items():
            pruned = models / name / own
            made.append(
                compress_model(dense.path, PRUNING, spec, pruned, training=finetuning, variant=name)
            )
        int8 = models / INT8 / f"{own}.onnx"
        made.append(
            compress_model(dense.path, INT8_STATIC, recipe.quantisation, int8, variant=INT8)
        )
        held_out = load(recipe.seed).test
        answers = predict(
            {model.card.variant: {seed: model.path} for model in made},
            [(held_out.images, held_out.labels, held_out.example_id)],
        )
    return Family(answers.to_pandas(), tuple(model.card.measured for model in made))
