"""Populations of the demo: one split, members that differ, children that name their parents."""

from __future__ import annotations

import functools

import numpy as np
import pandas as pd
import pytest

from fairweight.errors import InputError
from fairweight.studies.digit_tables import DemoTables, load
from fairweight.studies.population_demo import Recipe, family, populations
from fairweight.tables.parents import parents

SMALL = Recipe(hidden=16, epochs=3)
MEMBERS = 3


@functools.cache
def small_populations() -> DemoTables:
    return populations(SMALL, members=MEMBERS, workers=2)


def answers(variant: str, column: str = "prediction") -> pd.DataFrame:
    """A row per example, a column per seed."""
    table = small_populations().predictions
    rows = table[table["variant"] == variant]
    return rows.pivot(index="example_id", columns="seed", values=column)


def test_every_member_predicts_the_same_examples() -> None:
    table = small_populations().predictions
    members = table.groupby(["variant", "seed"], sort=False)
    assert list(members.groups) == [
        (variant, seed) for variant in ("dense", "pruned-80", "int8") for seed in range(MEMBERS)
    ]
    held_out = list(small_populations().examples["example_id"])
    assert all(list(rows["example_id"]) == held_out for _, rows in members)
    assert (table.groupby("example_id")["label"].nunique() == 1).all()


def test_members_are_different_models_of_one_split() -> None:
    scores = answers("dense", "score")
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (scores[one] != scores[other]).mean() > 0.9
    digits = load(SMALL.seed)
    assert set(scores.index) == {f"digit-{row:04d}" for row in digits.test}
    assert set(digits.train).isdisjoint(digits.test)


def test_children_resemble_their_own_parent_most() -> None:
    dense, int8 = answers("dense", "score"), answers("int8", "score")
    for child in range(MEMBERS):
        distance = (dense.sub(int8[child], axis=0)).abs().mean()
        assert distance.idxmin() == child


def test_the_variants_table_names_parents_and_sizes() -> None:
    table = small_populations().variants
    assert table is not None
    assert parents(table) == {
        (variant, str(i)): ("dense", str(i))
        for variant in ("pruned-80", "int8")
        for i in range(MEMBERS)
    }
    # 64 × 16 + 16 × 10 weights and 16 + 10 biases; pruning takes 80 % of 1,184 weights: 947.
    assert set(table["n_params"]) == {1184 + 26}
    nonzero = table.groupby("variant")["n_nonzero"].max()
    assert nonzero["pruned-80"] <= 1210 - 947 < nonzero["dense"] <= 1210
    assert dict(table.groupby("variant")["sparsity"].first()) == {
        "dense": 0.0, "int8": 0.0, "pruned-80": 0.8
    }  # fmt: skip


def test_numbers_do_not_depend_on_processes() -> None:
    """A member is the same alone and in this process as among others in two."""
    table = small_populations().predictions
    among = table[(table["variant"] == "dense") & (table["seed"] == 2)]["score"]
    alone = family(SMALL, 2).answers[0].probabilities
    np.testing.assert_array_equal(alone.max(axis=1), among)


def test_neighbouring_seeds_share_no_model() -> None:
    first, second = (family(Recipe(seed, hidden=16, epochs=1), 1 - seed) for seed in (0, 1))
    assert not np.array_equal(first.answers[0].probabilities, second.answers[0].probabilities)


def test_progress_counts_families() -> None:
    told: list[tuple[int, int]] = []
    tiny = Recipe(hidden=2, epochs=1)
    populations(tiny, members=2, workers=1, progress=lambda *seen: told.append(seen))
    assert told == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("recipe", "members", "sentence"),
    [
        (Recipe(seed=-1), 2, "seed is -1, but it must be from 0"),
        (Recipe(hidden=0), 2, "hidden is 0"),
        (Recipe(epochs=0), 2, "epochs is 0"),
        (Recipe(), 0, "members is 0, but it must be from 1"),
        (Recipe(sparsity=80, hidden=2, epochs=1), 1, "sparsity is 80.*a number from 0 to 1"),
    ],
)
def test_options_outside_their_range_are_refused(
    recipe: Recipe, members: int, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        populations(recipe, members=members, workers=1)
