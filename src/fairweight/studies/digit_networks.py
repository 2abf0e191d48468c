"""A small classifier of digits in numpy, and compressed copies of it: pruned, and in 8 bits."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.errors import InputError

Floats: TypeAlias = NDArray[np.float64]

# Of training: examples per step, Adam's rate and decays, the penalty on squared weights.
BATCH, RATE, DECAYS, PENALTY = 64, 0.002, (0.9, 0.999), 0.01


class Classifier(Protocol):
    """Anything that scores images: (n, pixels) → (n, classes)."""

    def logits(self, pixels: Floats) -> Floats: ...

    @property
    def parameters(self) -> tuple[NDArray[np.generic], ...]: ...


@dataclass(frozen=True)
class Network:
    """Fully connected layers with ReLU between them."""

    weights: tuple[Floats, ...]  # each (inputs, outputs)
    biases: tuple[Floats, ...]  # each (outputs,)

    @property
    def parameters(self) -> tuple[NDArray[np.generic], ...]:
        return (*self.weights, *self.biases)

    def layer_inputs(self, pixels: Floats) -> list[Floats]:
        """What enters each layer."""
        inputs = [pixels]
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            inputs.append(np.maximum(inputs[-1] @ weight + bias, 0.0))
        return inputs

    def logits(self, pixels: Floats) -> Floats:
        scores: Floats = self.layer_inputs(pixels)[-1] @ self.weights[-1] + self.biases[-1]
        return scores


@dataclass(frozen=True)
class Int8Network:
    """The same layers in integers: 8-bit weights and inputs, 32-bit sums.

    Weights are symmetric, in [-127, 127]. Inputs are never negative (pixels, then ReLU), so they
    take all of [0, 255] with zero at 0. A sum stands for `sum * input_scale * weight_scale`.
    """

    weights: tuple[NDArray[np.int8], ...]
    biases: tuple[NDArray[np.int32], ...]  # in units of the sums
    weight_scales: tuple[float, ...]
    input_scales: tuple[float, ...]

    @property
    def parameters(self) -> tuple[NDArray[np.generic], ...]:
        return (*self.weights, *self.biases)

    def logits(self, pixels: Floats) -> Floats:
        signal = pixels
        last = len(self.weights) - 1
        layers = zip(self.weights, self.biases, self.weight_scales, self.input_scales, strict=True)
        for index, (weight, bias, weight_scale, input_scale) in enumerate(layers):
            steps = np.clip(np.rint(signal / input_scale), 0, 255).astype(np.uint8)
            sums = steps.astype(np.int32) @ weight.astype(np.int32) + bias
            if index < last:
                sums = np.maximum(sums, 0)
            signal = sums.astype(np.float64) * (input_scale * weight_scale)
        return signal


def fit(
    pixels: Floats, labels: NDArray[np.int64], *, seed: int, hidden: int, epochs: int
) -> Network:
    """Train one hidden layer with Adam for a fixed number of epochs.

    The same steps, from the same random numbers, as scikit-learn's `MLPClassifier` takes with
    `partial_fit`; without it, so that the demo needs nothing but numpy.
    """
    rng = np.random.RandomState(seed)  # scikit-learn draws from this one, too
    sizes = (pixels.shape[1], hidden, int(labels.max()) + 1)
    bounds = [np.sqrt(6 / (sizes[k] + sizes[k + 1])) for k in range(2)]  # Glorot, Bengio 2010
    drawn = [
        (rng.uniform(-b, b, (sizes[k], sizes[k + 1])), rng.uniform(-b, b, sizes[k + 1]))
        for k, b in enumerate(bounds)
    ]
    values = [weight for weight, _ in drawn] + [bias for _, bias in drawn]
    first, second = [np.zeros_like(v) for v in values], [np.zeros_like(v) for v in values]
    wanted = np.eye(sizes[-1])[labels]
    step = 0
    with _one_thread():
        for _ in range(epochs):
            order = np.arange(len(pixels))
            rng.shuffle(order)
            for start in range(0, len(order), BATCH):
                batch = order[start : start + BATCH]
                step += 1
                rate = RATE * np.sqrt(1 - DECAYS[1] ** step) / (1 - DECAYS[0] ** step)
                slopes = _slopes(values, pixels[batch], wanted[batch])
                for value, slope, m, v in zip(values, slopes, first, second, strict=True):
                    m += (1 - DECAYS[0]) * (slope - m)
                    v += (1 - DECAYS[1]) * (slope**2 - v)
                    value -= rate * m / (np.sqrt(v) + 1e-8)
    return Network(tuple(values[:2]), tuple(values[2:]))


def _slopes(values: Sequence[Floats], pixels: Floats, wanted: Floats) -> list[Floats]:
    """Gradients of the mean cross-entropy and of the penalty on weights."""
    inner, outer, inner_bias, outer_bias = values
    signal = np.maximum(pixels @ inner + inner_bias, 0)
    error = softmax(signal @ outer + outer_bias) - wanted
    back = np.where(signal > 0, error @ outer.T, 0.0)
    n = len(pixels)
    return [
        (pixels.T @ back + PENALTY * inner) / n,
        (signal.T @ error + PENALTY * outer) / n,
        back.mean(axis=0),
        error.mean(axis=0),
    ]


def _one_thread() -> AbstractContextManager[object]:
    """Batches this small are slower on several threads than on one, where that can be said."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits


def prune(network: Network, sparsity: float) -> Network:
    """A copy without its smallest weights: exactly `round(sparsity * weights)` of them.

    Magnitudes are compared over all layers at once; biases stay. Among equal magnitudes the
    earlier weight goes first, so a sparser copy never keeps a weight that a denser one dropped.

    >>> network = Network((np.array([[0.5, -2.0], [1.0, -0.1]]),), (np.zeros(2),))
    >>> prune(network, 0.5).weights[0].tolist()
    [[0.0, -2.0], [1.0, 0.0]]
    """
    if not 0.0 <= sparsity <= 1.0:
        raise InputError(
            f"sparsity is {sparsity:g}, but it is the share of weights to remove: "
            "give a number from 0 to 1, such as 0.9."
        )
    flat = np.concatenate([weight.ravel() for weight in network.weights])
    smallest_first = np.argsort(np.abs(flat), kind="stable")
    flat[smallest_first[: round(sparsity * flat.size)]] = 0.0
    parts = np.split(flat, np.cumsum([weight.size for weight in network.weights])[:-1])
    return Network(
        tuple(
            part.reshape(weight.shape) for part, weight in zip(parts, network.weights, strict=True)
        ),
        network.biases,
    )


def quantise(network: Network, *, calibration: Floats) -> Int8Network:
    """An 8-bit copy; the range of each layer's inputs is that of the calibration images.

    >>> network = Network((np.array([[1.27, -0.5]]),), (np.zeros(2),))
    >>> quantise(network, calibration=np.array([[1.0]])).weights[0].tolist()
    [[127, -50]]
    """
    weight_scales = tuple(_scale(weight, 127) for weight in network.weights)
    input_scales = tuple(_scale(signal, 255) for signal in network.layer_inputs(calibration))
    return Int8Network(
        weights=tuple(
            np.rint(weight / scale).astype(np.int8)
            for weight, scale in zip(network.weights, weight_scales, strict=True)
        ),
        biases=tuple(
            np.rint(bias / (weight_scale * input_scale)).astype(np.int32)
            for bias, weight_scale, input_scale in zip(
                network.biases, weight_scales, input_scales, strict=True
            )
        ),
        weight_scales=weight_scales,
        input_scales=input_scales,
    )


def _scale(values: Floats, steps: int) -> float:
    """The size of one step when the largest magnitude takes `steps` of them."""
    largest = float(np.abs(values).max())
    return largest / steps if largest > 0 else 1.0  # all zero: any step represents it exactly


def softmax(logits: Floats) -> Floats:
    """Probabilities of classes.

    >>> softmax(np.array([[0.0, np.log(3.0)]])).round(2).tolist()
    [[0.25, 0.75]]
    """
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares: Floats = odds / odds.sum(axis=1, keepdims=True)
    return shares
