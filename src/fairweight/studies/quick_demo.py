"""Real predictions in seconds: a small classifier of digits and compressed copies of it.

Data, training and compression need only numpy and scikit-learn (whose bundled digits need no
download). Every number follows from the data and the seed.

The default size and sparsities were chosen by looking at held-out accuracy, so that pruning
visibly hurts: an illustration of the audit, not evidence about pruning.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = NDArray[np.float64]

SLANTS = ("right", "upright", "left")  # in the order of rising tilt
INKS = ("light", "medium", "heavy")


@dataclass(frozen=True)
class DemoTables:
    """The three tables that an audit reads.

    predictions    example_id, variant, seed, label, prediction, score (probability of the
                   predicted class); one row per held-out image and variant
    examples       example_id, slant, ink; one row per held-out image
    train          label, slant, ink; one row per training image
    """

    predictions: pd.DataFrame
    examples: pd.DataFrame
    train: pd.DataFrame


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
    import pandas as pd
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    _check_whole("seed", seed, least=0)
    _check_whole("hidden", hidden, least=1)
    _check_whole("epochs", epochs, least=1)

    digits = load_digits()
    labels: NDArray[np.int64] = digits.target
    images: Floats = digits.images / 16.0  # pixels are 0 to 16
    pixels = images.reshape(len(images), -1)
    train, test = train_test_split(
        np.arange(len(labels)), test_size=0.5, stratify=labels, random_state=seed
    )

    dense = fit(pixels[train], labels[train], seed=seed, hidden=hidden, epochs=epochs)
    variants: dict[str, Classifier] = {"dense": dense}
    variants |= {f"pruned-{100 * share:g}": prune(dense, share) for share in sparsities}
    variants["int8"] = quantise(dense, calibration=pixels[train])

    slants, inks = tilt(images), images.mean(axis=(1, 2))
    groups = pd.DataFrame(
        {
            "slant": levels(slants, cuts=terciles(slants[train]), names=SLANTS),
            "ink": levels(inks, cuts=terciles(inks[train]), names=INKS),
        }
    )
    ids = np.array([f"digit-{row:04d}" for row in test])
    examples = groups.iloc[test].reset_index(drop=True)
    examples.insert(0, "example_id", ids)
    training = groups.iloc[train].reset_index(drop=True)
    training.insert(0, "label", labels[train])
    answers = [
        _table(name, ids, labels[test], softmax(variant.logits(pixels[test])))
        for name, variant in variants.items()
    ]
    return DemoTables(pd.concat(answers, ignore_index=True), examples, training)


def _check_whole(name: str, value: int, *, least: int) -> None:
    most = 2**32 - 1  # numpy's limit for seeds, and beyond any sensible size
    if not least <= value <= most:
        raise InputError(f"{name} is {value}, but it must be from {least} to {most}.")


def _table(
    variant: str, ids: NDArray[np.str_], labels: NDArray[np.int64], probabilities: Floats
) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "example_id": ids,
            "variant": variant,
            "seed": 0,  # one member per variant: the place in a population, not the random seed
            "label": labels,
            "prediction": probabilities.argmax(axis=1),
            "score": probabilities.max(axis=1),
        }
    )


# --- models ---------------------------------------------------------------------------------------


class Classifier(Protocol):
    """Anything that scores images: (n, pixels) → (n, classes)."""

    def logits(self, pixels: Floats) -> Floats: ...


@dataclass(frozen=True)
class Network:
    """Fully connected layers with ReLU between them."""

    weights: tuple[Floats, ...]  # each (inputs, outputs)
    biases: tuple[Floats, ...]  # each (outputs,)

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
    """Train one hidden layer with Adam for a fixed number of epochs."""
    from sklearn.neural_network import MLPClassifier
    from threadpoolctl import threadpool_limits

    # A RandomState, not the seed: partial_fit would start the same shuffle again in every epoch.
    model = MLPClassifier(
        (hidden,),
        alpha=0.01,
        batch_size=64,
        learning_rate_init=0.002,
        random_state=np.random.RandomState(seed),
    )
    # Batches this small are slower on several threads than on one.
    with threadpool_limits(1):
        for _ in range(epochs):
            model.partial_fit(pixels, labels, classes=np.unique(labels))
    return Network(tuple(model.coefs_), tuple(model.intercepts_))


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


# --- groups measured on the strokes ---------------------------------------------------------------


def tilt(images: Floats, *, threshold: float = 0.5) -> Floats:
    """Slope of the least-squares line of column on row, over the pixels above `threshold`.

    cov(row, column) / var(row) (Prune Responsibly). Rows are counted downwards, so 0 is upright
    and negative leans right, as `/` does. NaN where no line is determined: fewer than two rows
    have such pixels.

    >>> slash = np.array([[0, 0, 1], [0, 1, 0], [1, 0, 0]], dtype=float)
    >>> tilt(np.stack([slash, slash.T, slash[::-1], 0 * slash])).tolist()
    [-1.0, -1.0, 1.0, nan]
    """
    stroke = (images > threshold).astype(np.float64)
    size = stroke.sum(axis=(1, 2))
    rows = np.arange(images.shape[1], dtype=np.float64)[None, :, None]
    columns = np.arange(images.shape[2], dtype=np.float64)[None, None, :]
    inked = np.maximum(size, 1.0)[:, None, None]  # an empty image has no mean; its spread is 0
    row = rows - (stroke * rows).sum(axis=(1, 2), keepdims=True) / inked
    column = columns - (stroke * columns).sum(axis=(1, 2), keepdims=True) / inked
    spread = (stroke * row**2).sum(axis=(1, 2))
    together = (stroke * row * column).sum(axis=(1, 2))
    undefined = np.full(len(images), np.nan)
    slope: Floats = np.divide(together, spread, out=undefined, where=spread > 0)
    return slope


def terciles(values: Floats) -> Floats:
    """The two cuts between three parts of equal size; undefined values do not count.

    >>> terciles(np.array([0.0, 1.0, 2.0, 3.0, np.nan])).tolist()
    [1.0, 2.0]
    """
    cuts: Floats = np.nanquantile(values, [1 / 3, 2 / 3])
    return cuts


def levels(values: Iterable[float], *, cuts: Floats, names: Sequence[str]) -> list[str | None]:
    """The name of the part in which each value lies; None where the value is undefined.

    >>> levels([0.0, 1.0, 9.0, np.nan], cuts=np.array([1.0, 2.0]), names=INKS)
    ['light', 'medium', 'heavy', None]
    """
    return [
        None if np.isnan(value) else names[int(np.searchsorted(cuts, value, side="right"))]
        for value in values
    ]
