"""The demo's data: computed from digits and seed, compressed exactly as said."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairweight.errors import InputError
from fairweight.studies.quick_demo import (
    DemoTables,
    Network,
    levels,
    predictions,
    prune,
    quantise,
    softmax,
    terciles,
    tilt,
)


@functools.cache
def small_demo(seed: int) -> DemoTables:
    return predictions(seed, sparsities=(0.0, 0.9, 1.0), hidden=32, epochs=20)


def random_network(seed: int, *, sizes: tuple[int, ...] = (6, 5, 4)) -> Network:
    rng = np.random.default_rng(seed)
    shapes = list(itertools.pairwise(sizes))
    return Network(
        tuple(rng.normal(size=shape) for shape in shapes),
        tuple(rng.normal(size=shape[1]) for shape in shapes),
    )


def zeros(network: Network) -> int:
    return sum(int((weight == 0).sum()) for weight in network.weights)


# --- tables ---------------------------------------------------------------------------------------


def test_columns_and_rows() -> None:
    demo = small_demo(0)
    assert list(demo.predictions) == [
        "example_id", "variant", "seed", "label", "prediction", "score",
    ]  # fmt: skip
    assert list(demo.examples) == ["example_id", "slant", "ink"]
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


# --- pruning --------------------------------------------------------------------------------------


@given(seed=st.integers(0, 100), sparsity=st.floats(0, 1))
def test_the_sparsity_asked_for_is_reached(seed: int, sparsity: float) -> None:
    assert zeros(prune(random_network(seed), sparsity)) == round(sparsity * 50)  # 6×5 + 5×4


@pytest.mark.parametrize(("sparsity", "expected"), [(0.0, 0), (0.5, 25), (1.0, 50)])
def test_exact_counts_at_the_ends(sparsity: float, expected: int) -> None:
    assert zeros(prune(random_network(0), sparsity)) == expected


@given(seed=st.integers(0, 100), shares=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_nothing_grows_back_and_the_rest_is_untouched(
    seed: int, shares: tuple[float, float]
) -> None:
    network = random_network(seed)
    denser, sparser = (prune(network, share) for share in sorted(shares))
    for original, more, fewer in zip(network.weights, denser.weights, sparser.weights, strict=True):
        assert not np.any((more == 0) & (fewer != 0))
        assert np.array_equal(more[more != 0], original[more != 0])


def test_pruning_is_global_and_ties_fall_in_order() -> None:
    # Magnitudes 1 1 1 1 | 3 1, one pool: of the five equal ones the two earliest go.
    network = Network(
        (np.array([[1.0, -1.0], [1.0, -1.0]]), np.array([[3.0], [1.0]])), (np.zeros(2), np.ones(1))
    )
    pruned = prune(network, 2 / 6)
    assert pruned.weights[0].tolist() == [[0.0, 0.0], [1.0, -1.0]]
    assert pruned.weights[1].tolist() == [[3.0], [1.0]]
    assert prune(network, 5 / 6).weights[1].tolist() == [[3.0], [0.0]]
    assert pruned.biases[1].tolist() == [1.0]
    assert zeros(network) == 0  # the dense model keeps its weights


@pytest.mark.parametrize("sparsity", [-0.1, 1.5, 90, float("nan")])
def test_a_sparsity_outside_its_range_is_refused(sparsity: float) -> None:
    with pytest.raises(InputError, match="give a number from 0 to 1"):
        prune(random_network(0), sparsity)


# --- eight bits -----------------------------------------------------------------------------------


def test_int8_arithmetic_by_hand() -> None:
    # Steps: weights 1.27/127 = .01, inputs 2.55/255 = .01. Input 1.004 is 100 steps, 2.0 is 200.
    # Sums: 100·127 + 200·(-50) + bias .1/.0001 = 12,700 − 10,000 + 1,000 = 3,700 → 0.37.
    network = Network((np.array([[1.27], [-0.5]]),), (np.array([0.1]),))
    small = quantise(network, calibration=np.array([[2.55, 0.0]]))
    assert small.biases[0].tolist() == [1000]
    assert small.logits(np.array([[1.004, 2.0]])) == pytest.approx(np.array([[0.37]]))


def test_int8_cuts_inputs_at_the_calibrated_range() -> None:
    network = Network((np.array([[1.27]]),), (np.array([0.0]),))
    small = quantise(network, calibration=np.array([[2.55]]))
    assert small.logits(np.array([[99.0]])) == pytest.approx(small.logits(np.array([[2.55]])))


@given(seed=st.integers(0, 100))
def test_int8_stays_within_its_rounding_error(seed: int) -> None:
    network = random_network(seed, sizes=(6, 4))
    pixels = np.random.default_rng(seed).random((20, 6))
    small = quantise(network, calibration=pixels)
    step_w, step_x = small.weight_scales[0], small.input_scales[0]
    # Each product is off by at most |x|·step_w/2 + |w|·step_x/2 + step_w·step_x/4; six products
    # and a bias that is rounded to half a unit of the sums.
    largest = np.abs(network.weights[0]).max()
    product = pixels.max() * step_w / 2 + largest * step_x / 2 + step_w * step_x / 4
    error = np.abs(small.logits(pixels) - network.logits(pixels)).max()
    assert 0 < error <= 6 * product + step_w * step_x / 2


def test_int8_of_a_network_without_weights_answers_with_its_biases() -> None:
    network = prune(random_network(0, sizes=(3, 2)), 1.0)
    small = quantise(network, calibration=np.zeros((1, 3)))
    assert small.logits(np.ones((1, 3))) == pytest.approx(np.rint(network.biases[0])[None, :])


def test_softmax_survives_large_logits() -> None:
    assert softmax(np.array([[1e4, 1e4, -1e4]])).tolist() == [[0.5, 0.5, 0.0]]


# --- strokes --------------------------------------------------------------------------------------


def test_tilt_by_hand() -> None:
    # Pixels (row, column): (0, 3) (1, 2) (1, 1) (2, 0). Means: row 1, column 1.5.
    # Σ (row−1)(column−1.5) = (−1)(1.5) + 0 + 0 + (1)(−1.5) = −3;  Σ (row−1)² = 1 + 0 + 0 + 1 = 2.
    image = np.array([[0, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 0]], dtype=float)
    assert tilt(image[None]).tolist() == [-1.5]
    assert tilt(image[None, :, ::-1]).tolist() == [1.5]  # the mirror image leans the other way


def test_tilt_is_the_slope_of_least_squares() -> None:
    images = np.random.default_rng(0).random((5, 8, 8))
    expected = [np.polyfit(*np.nonzero(image > 0.5), deg=1)[0] for image in images]
    assert tilt(images) == pytest.approx(np.array(expected), abs=1e-12)


def test_tilt_is_undefined_without_two_rows() -> None:
    flat = np.zeros((1, 3, 3))
    flat[0, 1] = 1.0
    assert np.isnan(tilt(np.concatenate([flat, np.zeros((1, 3, 3))]))).all()


def test_terciles_part_the_values_evenly() -> None:
    values = np.arange(9.0)
    names = levels(values, cuts=terciles(values), names=("low", "middle", "high"))
    assert names == ["low"] * 3 + ["middle"] * 3 + ["high"] * 3
