"""The bundled digits in two halves, and what is predicted of the second as tables for an audit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairweight.data.strokes import INKS, SLANTS, levels, terciles, tilt
from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class DemoTables:
    """The tables that an audit reads.

    predictions    example_id, variant, seed, label, prediction, score (probability of the
                   predicted class); one row per held-out image and model
    examples       example_id, slant, ink; one row per held-out image
    train          label, slant, ink; one row per training image
    variants       variant, seed, parent and what is known of the model; one row per model.
                   None where there is one model per variant
    """

    predictions: pd.DataFrame
    examples: pd.DataFrame
    train: pd.DataFrame
    variants: pd.DataFrame | None = None


@dataclass(frozen=True)
class Answer:
    """What one model says of the held-out half."""

    variant: str
    seed: int  # the place in a population, not the random seed
    probabilities: Floats  # (images, classes)


@dataclass(frozen=True)
class Digits:
    """scikit-learn's digits, which need no download, and one split of them."""

    images: Floats  # (n, 8, 8), from 0 to 1
    labels: NDArray[np.int64]
    train: NDArray[np.int64]  # rows
    test: NDArray[np.int64]

    def pixels(self, rows: NDArray[np.int64]) -> Floats:
        """Images of these rows, (rows, 64)."""
        return self.images[rows].reshape(len(rows), -1)

    def tables(self, answers: Iterable[Answer]) -> DemoTables:
        """Predictions of the held-out half, its groups, and the training half."""
        import pandas as pd

        slants, inks = tilt(self.images), self.images.mean(axis=(1, 2))
        groups = pd.DataFrame(
            {
                "slant": levels(slants, cuts=terciles(slants[self.train]), names=SLANTS),
                "ink": levels(inks, cuts=terciles(inks[self.train]), names=INKS),
            }
        )
        ids = np.array([f"digit-{row:04d}" for row in self.test])
        examples = groups.iloc[self.test].reset_index(drop=True)
        examples.insert(0, "example_id", ids)
        training = groups.iloc[self.train].reset_index(drop=True)
        training.insert(0, "label", self.labels[self.train])
        predicted = [
            pd.DataFrame(
                {
                    "example_id": ids,
                    "variant": answer.variant,
                    "seed": answer.seed,
                    "label": self.labels[self.test],
                    "prediction": answer.probabilities.argmax(axis=1),
                    "score": answer.probabilities.max(axis=1),
                }
            )
            for answer in answers
        ]
        return DemoTables(pd.concat(predicted, ignore_index=True), examples, training)


def load(seed: int) -> Digits:
    """The digits, split in halves by the seed, with every class in both."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    check_whole("seed", seed, least=0)
    digits = load_digits()
    labels: NDArray[np.int64] = digits.target
    train, test = train_test_split(
        np.arange(len(labels)), test_size=0.5, stratify=labels, random_state=seed
    )
    return Digits(digits.images / 16.0, labels, train, test)  # pixels are 0 to 16


def check_whole(name: str, value: int, *, least: int) -> None:
    """Raise for numbers that are no seed and no size."""
    most = 2**32 - 1  # numpy's limit for seeds, and beyond any sensible size
    if not least <= value <= most:
        raise InputError(f"{name} is {value}, but it must be from {least} to {most}.")
