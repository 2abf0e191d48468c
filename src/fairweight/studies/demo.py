"""Real predictions in seconds: one small classifier of digits and compressed copies of it.

Data, training and compression need only numpy. Every number follows from the data and the seed.

The default size and sparsities were chosen by looking at held-out accuracy, so that pruning
visibly hurts: an illustration of the audit, not evidence about pruning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fairweight.base.threads import one_thread
from fairweight.base.types import Floats
from fairweight.data import Images
from fairweight.data import load as load_data
from fairweight.data.codecs import png
from fairweight.data.dataset import MISSING, split_by_seed
from fairweight.errors import InputError

# Of training: examples per step, Adam's rate and decays, the penalty on squared weights.
BATCH, RATE, DECAYS, PENALTY = 64, 0.002, (0.9, 0.999), 0.01


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
    with one_thread():
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


# The bundled digits in two halves, and what is predicted of the second as tables for an audit.

HELD_OUT = 0.5  # the share of the digits that models are judged on


@dataclass(frozen=True)
class DemoTables:
    """The tables that an audit reads.

    predictions    example_id, variant, seed, label, prediction, score (probability of the
                   predicted class); one row per held-out image and model
    examples       example_id, slant, ink, image (a PNG); one row per held-out image
    train          label, slant, ink; one row per training image
    variants       variant, seed, parent and what is known of the model; one row per model.
                   None where there is one model per variant
    """

    predictions: pd.DataFrame
    examples: pd.DataFrame
    train: pd.DataFrame
    variants: pd.DataFrame | None = None


@dataclass(frozen=True)
class Halves:
    """The bundled digits, which need no download: one half to train on, one to predict."""

    train: Images
    test: Images

    def tables(self, predictions: pd.DataFrame, variants: pd.DataFrame | None = None) -> DemoTables:
        """The predictions with the groups of the held-out half, and the training half."""
        examples, training = _groups(self.test), _groups(self.train)
        examples.insert(0, "example_id", self.test.example_id)
        examples["image"] = [png(image) for image in self.test.images]
        training.insert(0, "label", self.train.labels)
        return DemoTables(predictions, examples, training, variants)


def load(seed: int) -> Halves:
    """The digits, split by the seed just as `fairweight train` splits them."""
    check_whole("seed", seed, least=0)
    shares = {"train": 1 - HELD_OUT, "test": HELD_OUT}
    digits = split_by_seed(load_data("digits"), shares, seed)
    return Halves(digits.of_split("train"), digits.of_split("test"))


def check_whole(name: str, value: int, *, least: int) -> None:
    """Raise unless the seed and the sizes are valid."""
    most = 2**32 - 1  # numpy's limit for seeds, and beyond any sensible size
    if not least <= value <= most:
        raise InputError(f"{name} is {value}, but it must be from {least} to {most}.")


def _groups(images: Images) -> pd.DataFrame:
    return pd.DataFrame(
        {
            name: [None if value == MISSING else value for value in values.tolist()]
            for name, values in images.groups.items()
        }
    )


def predictions(
    seed: int = 0,
    *,
    sparsities: Sequence[float] = (0.8, 0.9),
    hidden: int = 1024,
    epochs: int = 30,
) -> DemoTables:
    """Train on one half of the digits, compress, and predict the other half.

    Parameters
    ----------
    seed
        Decides the split, the first weights and the order of training.
    sparsities
        Share of weights set to zero in each pruned copy, named `pruned-80` for 0.8.
    hidden, epochs
        Size of the hidden layer, and passes over the training half.

    Returns
    -------
    DemoTables
        Variants `dense`, one per sparsity, and `int8`.
    """
    check_whole("hidden", hidden, least=1)
    check_whole("epochs", epochs, least=1)
    halves = load(seed)
    pixels = _pixels(halves.train)
    dense = fit(pixels, halves.train.labels, seed=seed, hidden=hidden, epochs=epochs)
    variants: dict[str, Network | Int8Network] = {"dense": dense}
    variants |= {f"pruned-{100 * share:g}": prune(dense, share) for share in sparsities}
    variants["int8"] = quantise(dense, calibration=pixels)
    rows = []
    for name, model in variants.items():
        probabilities = softmax(model.logits(_pixels(halves.test)))  # (images, classes)
        answers = {
            "example_id": halves.test.example_id,
            "variant": name,
            "seed": 0,
            "label": halves.test.labels,
            "prediction": probabilities.argmax(axis=1),
            "score": probabilities.max(axis=1),
        }
        rows.append(pd.DataFrame(answers))
    return halves.tables(pd.concat(rows, ignore_index=True))


def _pixels(images: Images) -> Floats:
    """(images, pixels), from 0 to 1."""
    pixels: Floats = images.images.reshape(len(images), -1) / 255.0
    return pixels
