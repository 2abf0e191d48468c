"""The bundled digits in two halves, and what is predicted of the second as tables for an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairweight.data import Images
from fairweight.data import load as load_data
from fairweight.data.dataset import MISSING
from fairweight.data.png import png
from fairweight.data.splits import split_by_seed
from fairweight.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

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
    """Raise for numbers that are no seed and no size."""
    most = 2**32 - 1  # numpy's limit for seeds, and beyond any sensible size
    if not least <= value <= most:
        raise InputError(f"{name} is {value}, but it must be from {least} to {most}.")


def _groups(images: Images) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            name: [None if value == MISSING else value for value in values.tolist()]
            for name, values in images.groups.items()
        }
    )
