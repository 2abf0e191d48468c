"""The demo's populations: members that differ, children that name their parents and are files."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairweight.errors import InputError
from fairweight.specs.training import Training
from fairweight.studies import population_demo
from fairweight.studies.demo import DemoTables, load
from fairweight.studies.population_demo import FamilyRecipe, populations
from fairweight.tables.companions import parents

BRIEF = Training(epochs=3, batch_size=64, optimizer="adam", lr=0.01)
SMALL = FamilyRecipe(
    1, members=2, training=BRIEF, finetuning=replace(BRIEF, epochs=1), sparsities=(0.5,)
)
VARIANTS = ["dense", "pruned-50", "int8"]


def here(jobs: list[Any], workers: int, progress: Any = None) -> list[Any]:
    """Jobs in this process, but pickled on both ways as if they went to another."""
    return [pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(job))())) for job in jobs]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[DemoTables, Path]:
    models = tmp_path_factory.mktemp("population")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(population_demo, "in_processes", here)
        return populations(SMALL, models), models


def scores(tables: DemoTables, variant: str) -> pd.DataFrame:
    """A row per example, a column per seed."""
    rows = tables.predictions[tables.predictions["variant"] == variant]
    return rows.pivot(index="example_id", columns="seed", values="score")


def test_every_member_predicts_the_same_held_out_examples(made: tuple[DemoTables, Path]) -> None:
    tables, _ = made
    members = tables.predictions.groupby(["variant", "seed"], sort=False)
    # Seeds of neighbouring demos are apart: two members of seed 1 are 2 and 3.
    assert set(members.groups) == {(variant, seed) for variant in VARIANTS for seed in (2, 3)}
    assert list(tables.predictions["variant"].unique()) == VARIANTS
    held_out = list(load(1).test.example_id)
    assert all(list(rows["example_id"]) == held_out for _, rows in members)
    assert list(tables.examples["example_id"]) == held_out
    assert set(load(1).train.example_id).isdisjoint(held_out)


def test_members_differ_and_children_resemble_their_own_parent_most(
    made: tuple[DemoTables, Path],
) -> None:
    dense, int8 = scores(made[0], "dense"), scores(made[0], "int8")
    assert (dense[2] != dense[3]).mean() > 0.9
    for child in (2, 3):
        assert dense.sub(int8[child], axis=0).abs().mean().idxmin() == child
        assert (dense[child] != int8[child]).mean() > 0.9  # it is another model all the same


def test_the_variants_table_names_parents_and_what_was_measured(
    made: tuple[DemoTables, Path],
) -> None:
    table = made[0].variants
    assert table is not None
    assert parents(table) == {
        (variant, str(seed)): ("dense", str(seed)) for variant in VARIANTS[1:] for seed in (2, 3)
    }
    by_variant = table.groupby("variant").first()
    # 54 + 864 + 64 × 120 + 120 × 84 + 840 = 19,518 weights and 236 biases; half of them go.
    assert set(by_variant["n_params"]) == {19_754}
    assert by_variant["n_nonzero"]["pruned-50"] <= 19_754 - 19_518 // 2
    assert by_variant["sparsity"]["pruned-50"] == pytest.approx(0.5, abs=1e-4)
    assert by_variant["engine"]["int8"] == "onnxruntime"
    assert by_variant["size_bytes"]["int8"] < 0.5 * by_variant["size_bytes"]["dense"]


def test_the_models_are_files_that_give_the_same_answers(made: tuple[DemoTables, Path]) -> None:
    """Of int8, the file itself: ONNX Runtime on the bytes that are there."""
    from fairweight import lab

    tables, models = made
    held_out = load(1).test
    batch = (held_out.images, held_out.labels, held_out.example_id)
    paths = {"dense": models / "dense/3", "int8": models / "int8/3.onnx"}
    again = lab.predict({name: {3: path} for name, path in paths.items()}, [batch]).to_pandas()
    for variant in paths:
        own = again.loc[again["variant"] == variant, "score"]
        np.testing.assert_allclose(own, scores(tables, variant)[3], rtol=1e-5)


def test_training_teaches(made: tuple[DemoTables, Path]) -> None:
    table = made[0].predictions
    right = (table["label"] == table["prediction"]).groupby(table["variant"]).mean()
    assert right["dense"] > 0.5
    assert abs(right["int8"] - right["dense"]) < 0.05


@pytest.mark.parametrize(
    ("recipe", "sentence"),
    [
        (FamilyRecipe(seed=-1), "seed is -1, but it must be from 0"),
        (FamilyRecipe(members=0), "members is 0, but it must be from 1"),
    ],
)
def test_options_outside_their_range_are_refused(
    recipe: FamilyRecipe, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        populations(recipe, tmp_path)
