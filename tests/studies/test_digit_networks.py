"""The demo's models: compressed exactly as said."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairweight.errors import InputError
from fairweight.studies.demo import Network, fit, prune, quantise, softmax


def random_network(seed: int, *, sizes: tuple[int, ...] = (6, 5, 4)) -> Network:
    rng = np.random.default_rng(seed)
    shapes = list(itertools.pairwise(sizes))
    return Network(
        tuple(rng.normal(size=shape) for shape in shapes),
        tuple(rng.normal(size=shape[1]) for shape in shapes),
    )


def zeros(network: Network) -> int:
    return sum(int((weight == 0).sum()) for weight in network.weights)


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


def test_training_takes_the_steps_of_scikit_learn() -> None:
    from sklearn.datasets import load_digits
    from sklearn.neural_network import MLPClassifier

    pixels, labels = load_digits(return_X_y=True)
    pixels, labels = pixels[:300] / 16, labels[:300]
    peer = MLPClassifier(
        (16,), alpha=0.01, batch_size=64, learning_rate_init=0.002,
        random_state=np.random.RandomState(3),
    )  # fmt: skip
    for _ in range(3):
        peer.partial_fit(pixels, labels, classes=np.arange(10))
    own = fit(pixels, labels, seed=3, hidden=16, epochs=3)
    for theirs, ours in zip((*peer.coefs_, *peer.intercepts_), own.parameters, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
