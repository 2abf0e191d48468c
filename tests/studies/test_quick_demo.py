"""The quick demo's tables: computed from digits and seed."""

from __future__ import annotations

import functools

import pandas as pd
import pytest

from fairweight.errors import InputError
from fairweight.studies.demo import DemoTables, predictions


@functools.cache
def small_demo(seed: int) -> DemoTables:
    return predictions(seed, sparsities=(0.0, 0.9, 1.0), hidden=32, epochs=20)


def test_columns_and_rows() -> None:
    demo = small_demo(0)
    assert list(demo.predictions) == [
        "example_id", "variant", "seed", "label", "prediction", "score",
    ]  # fmt: skip
    assert list(demo.examples) == ["example_id", "slant", "ink", "image"]
    assert list(demo.train) == ["label", "slant", "ink"]
    # 1,797 digits: 898 to train on, 899 to predict, by each of five variants.
    assert (len(demo.train), len(demo.examples), len(demo.predictions)) == (898, 899, 5 * 899)
    assert list(demo.predictions["variant"].unique()) == [
        "dense", "pruned-0", "pruned-90", "pruned-100", "int8",
    ]  # fmt: skip


def test_variants_share_examples_and_labels() -> None:
    demo = small_demo(0)
    wide = demo.predictions.pivot(index="example_id", columns="variant", values="label")
    assert set(wide.index) == set(demo.examples["example_id"])
    assert demo.examples["example_id"].is_unique
    assert wide.eq(wide["dense"], axis=0).all(axis=None)


def test_scores_are_probabilities_of_the_predicted_class() -> None:
    # The largest of ten probabilities lies between a tenth and one.
    assert small_demo(0).predictions["score"].between(0.1, 1.0).all()


def test_every_group_is_present_and_known() -> None:
    demo = small_demo(0)
    for table in (demo.examples, demo.train):
        assert set(table["slant"]) == {"right", "upright", "left"}
        assert set(table["ink"]) == {"light", "medium", "heavy"}


def test_the_dense_model_learns_and_pruning_hurts() -> None:
    table = small_demo(0).predictions
    accuracy = (table["label"] == table["prediction"]).groupby(table["variant"]).mean()
    assert accuracy["dense"] > 0.9
    assert accuracy["pruned-90"] < accuracy["dense"]
    # Without weights every image gets the same answer, which is right for one class in ten.
    assert table.loc[table["variant"] == "pruned-100", "prediction"].nunique() == 1
    assert accuracy["pruned-100"] < 0.15


def test_no_sparsity_changes_nothing() -> None:
    table = small_demo(0).predictions.set_index(["variant", "example_id"])
    pd.testing.assert_frame_equal(table.loc["pruned-0"], table.loc["dense"])


def test_the_same_seed_gives_the_same_tables() -> None:
    again = predictions(0, sparsities=(0.0, 0.9, 1.0), hidden=32, epochs=20)
    for name in ("predictions", "examples", "train"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(small_demo(0), name))


def test_another_seed_gives_other_numbers() -> None:
    first, second = small_demo(0), small_demo(1)
    assert set(first.examples["example_id"]) != set(second.examples["example_id"])
    both = first.predictions.merge(
        second.predictions, on=["example_id", "variant"], suffixes=("_first", "_second")
    )
    dense = both[both["variant"] == "dense"]
    assert len(dense) > 300
    assert (dense["score_first"] != dense["score_second"]).mean() > 0.9


@pytest.mark.parametrize(
    ("option", "value"), [("seed", -1), ("seed", 2**32), ("hidden", 0), ("epochs", 0)]
)
def test_options_outside_their_range_are_refused(option: str, value: int) -> None:
    with pytest.raises(InputError, match=f"{option} is {value}, but it must be from"):
        predictions(**{option: value})
