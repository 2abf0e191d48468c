"""Populations of random models, and audits of them with known seeds and parents."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import fairweight as fw

Matrix = NDArray[Any]


@dataclass(frozen=True)
class Population:
    """Labels, predictions (examples, members) of two variants, and one or more group columns."""

    label: Matrix
    dense: Matrix
    small: Matrix
    groups: dict[str, Matrix]

    @property
    def right(self) -> tuple[Matrix, Matrix]:
        """Whether each member is right, (members, examples) of 0 and 1, for both sides."""
        return tuple(
            (side == self.label[:, None]).astype(float).T for side in (self.dense, self.small)
        )

    def of(self, dense: list[int], small: list[int]) -> Population:
        """Some members of both sides, in this order."""
        return replace(self, dense=self.dense[:, dense], small=self.small[:, small])

    def examples(self, rows: Any) -> Population:
        """Some examples, in this order; an example may come twice."""
        return Population(
            self.label[rows],
            self.dense[rows],
            self.small[rows],
            {name: column[rows] for name, column in self.groups.items()},
        )


def population(
    seed: int = 0,
    n: int = 90,
    members: tuple[int, int] = (5, 5),
    classes: str = "abc",
    errors: tuple[float, float] = (0.15, 0.3),
) -> Population:
    """Members that err on hard examples together and a little each on its own; one column."""
    rng = np.random.default_rng(seed)
    names = np.array(list(classes))
    label = rng.choice(names, n)
    label[: len(names)] = names
    hard = rng.random(n)

    def member(rate: float) -> Matrix:
        wrong = 0.5 * hard + 0.5 * rng.random(n) > 1 - rate - rng.normal(0, 0.03)
        return np.where(wrong, rng.choice(names, n), label)

    dense, small = (
        np.stack([member(rate) for _ in range(count)], axis=1)
        for rate, count in zip(errors, members, strict=True)
    )
    return Population(label, dense, small, {"site": rng.choice(["x", "y", "z"], n)})


def with_sex(found: Population, seed: int = 0) -> Population:
    """The same with a second column, of two levels."""
    sex = np.random.default_rng(seed).choice(["F", "M"], len(found.label))
    return replace(found, groups={**found.groups, "sex": sex})


def audit(found: Population, **options: Any) -> fw.Audit:
    """Members are seeds 0, 1, … of both sides: equal numbers are paired by seed."""
    return fw.audit(
        found.label,
        {"dense": found.dense, "small": found.small},
        sensitive_features=found.groups or None,
        **{"n_boot": 50, **options},
    )


def audit_with_seeds(
    found: Population,
    dense: list[int],
    small: list[int],
    parents: list[str | None] | None = None,
    **options: Any,
) -> fw.Audit:
    """The same from a long table, with these seeds and (of the small members) these parents."""
    members = [
        *(("dense", seed, found.dense[:, i]) for i, seed in enumerate(dense)),
        *(("small", seed, found.small[:, i]) for i, seed in enumerate(small)),
    ]
    table = pd.concat(
        [
            pd.DataFrame(
                {
                    "example_id": np.arange(len(found.label)),
                    "variant": variant,
                    "seed": seed,
                    "label": found.label,
                    "prediction": prediction,
                    **found.groups,
                }
            )
            for variant, seed, prediction in members
        ]
    )
    variants = None
    if parents is not None:
        variants = pd.DataFrame(
            {
                "variant": [variant for variant, _, _ in members],
                "seed": [seed for _, seed, _ in members],
                "parent": [*[None] * len(dense), *parents],
            }
        )
    return fw.audit_table(
        table,
        baseline="dense",
        groups=list(found.groups),
        variants=variants,
        **{"n_boot": 50, **options},
    )


@cache
def paired_population() -> tuple[Population, fw.Audit]:
    made = with_sex(population(0, n=90, members=(5, 5)))
    return made, audit(made)


@cache
def independent_population() -> tuple[Population, fw.Audit]:
    made = population(1, n=80, members=(3, 6))
    return made, audit(made)
